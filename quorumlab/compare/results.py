"""results.json: what was measured, cell by cell, in one versioned schema.

Written whole after every cell, by a rename: whoever stops the comparison keeps what it has.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from msgspec import convert

from jepsen_like.real.layout import write_json
from quorumlab.compare.node_measurements import Phase

__all__ = [
    "FAILED",
    "GAVE_UP",
    "MEASURED",
    "NOT_THERE",
    "Cell",
    "CellKey",
    "Records",
    "Results",
    "Spread",
    "spread_of",
]

SCHEMA = "quorumlab-compare/1"
MEASURED, GAVE_UP, NOT_THERE, FAILED = "measured", "gave up", "not there", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    subject: str
    experiment: str
    partitions: int
    timeouts: str
    run: int = 1  # a cell is measured as often as was asked for

    def __str__(self) -> str:
        again = f", run {self.run}" if self.run > 1 else ""
        size = f"{self.partitions} partitions"
        return f"{self.experiment}, {self.subject}, {size}, {self.timeouts}{again}"

    @property
    def file_name(self) -> str:
        name = f"{self.experiment}-{self.subject}-{self.partitions}-{self.timeouts}-{self.run}"
        return name.replace("/", "-").replace(" ", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Durations in milliseconds; `never` counts those that had no end."""

    count: int
    never: int = 0
    least: float | None = None
    half: float | None = None  # so many are not longer; None: more never ended
    most_99: float | None = None  # of a hundred, 99 are not longer
    most: float | None = None


def spread_of(values: Sequence[float | None]) -> Spread:
    """A duration that never ends is longer than all that do; `most` is the longest that did."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return Spread(count=len(values), never=len(values))
    never = len(values) - len(known)
    ranked = [*known, *[None] * never]
    return Spread(
        count=len(values),
        never=never,
        least=known[0],
        half=ranked[(len(ranked) - 1) // 2],
        most_99=ranked[(len(ranked) * 99 + 99) // 100 - 1],
        most=known[-1],
    )


_NO_CLIENT = dict.fromkeys(("first_ms", "others_ms", "longest_ms"), Spread(count=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    acknowledged: int = 0
    lost: int = 0
    unread: int = 0  # partitions
    admitted: str = ""  # the design's document says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    subject: str
    experiment: str
    partitions: int
    timeouts: str
    outcome: str
    run: int = 1
    why: str = ""  # it was not measured
    silence_ms: int = 0  # after which a broker is given up
    seconds: float = 0.0  # all in all, the start of the cluster included
    limit_seconds: float = 0.0  # when it would have given up
    affected: int = 0  # partitions that had to get another leader
    phases: Mapping[str, Phase] = field(default_factory=dict)  # by step
    seen: Mapping[str, float] = field(default_factory=dict)  # by step: ms since the fault
    client: Mapping[str, Spread] = field(default_factory=lambda: dict(_NO_CLIENT))
    errors: Mapping[str, int] = field(default_factory=dict)  # that the client met, by code
    records: Records = Records()
    ledger: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by role and name

    @property
    def key(self) -> CellKey:
        return CellKey(
            subject=self.subject,
            experiment=self.experiment,
            partitions=self.partitions,
            timeouts=self.timeouts,
            run=self.run,
        )

    def is_final(self, limit_seconds: float) -> bool:
        """A cell that failed is tried again, and so is one that gave up in less time than it has
        now."""
        if self.outcome == GAVE_UP:
            return self.limit_seconds >= limit_seconds
        return self.outcome != FAILED

    def done_ms(self, step: str) -> float | None:
        """Returns when a step was done, whoever has seen it."""
        if step == "first write":
            spread = self.client["first_ms"]
            return None if spread.never else spread.most
        if step in self.seen:
            return self.seen[step]
        phase = self.phases.get(step)
        return None if phase is None else phase.done_ms


@dataclass(slots=True)
class Results:
    """Owned by one comparison; `cells` in the order in which they were made."""

    path: Path
    machine: Mapping[str, Any]
    seed: int
    zookeeper_delay_ms: int = 0
    security: str = ""  # what clients of the clusters spoke
    cells: dict[CellKey, Cell] = field(default_factory=dict)

    def add(self, cell: Cell) -> None:
        self.cells[cell.key] = cell
        self.save()

    def adds_commit(self, commit: str) -> None:
        """Cells of several commits are told to be that."""
        known = str(self.machine.get("commit", ""))
        if commit and commit not in known.split(", "):
            self.machine = {**self.machine, "commit": f"{known}, {commit}".removeprefix(", ")}

    def save(self) -> None:
        stored = {
            "schema": SCHEMA,
            "machine": dict(self.machine),
            "seed": self.seed,
            "zookeeper_delay_ms": self.zookeeper_delay_ms,
            "security": self.security,
            "cells": list(map(asdict, self.cells.values())),
        }
        write_json(self.path, stored)

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Raises ValueError for what is no results.json of this schema."""
        stored = json.loads(path.read_text())
        schema = stored.get("schema") if isinstance(stored, dict) else None
        if schema != SCHEMA:
            raise ValueError(f"{path} is {schema or 'something else'}, not {SCHEMA}")
        cells = convert(stored["cells"], list[Cell])
        return cls(
            path=path,
            machine=stored["machine"],
            seed=stored["seed"],
            zookeeper_delay_ms=stored["zookeeper_delay_ms"],
            security=stored.get("security", ""),
            cells={cell.key: cell for cell in cells},
        )
