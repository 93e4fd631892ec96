"""Many seeds on several processes: what failed, what fired, how fast.

A seed that raises, or whose process dies, is a failure like any other, and the sweep goes on.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from jepsen_like.installation import ROOT, has_history
from jepsen_like.sim.assemblies.quorum.simulation import Outcome, run
from jepsen_like.sim.runs.workers import Died, mapped
from jepsen_like.sim.time.ending import ANY_ERROR, ERROR, Ending, error_ending
from jepsen_like.sim.world.coverage import Coverage
from jepsen_like.sim.world.observer import Observer

__all__ = ["Run", "SweepResult", "commit_of_code", "error_outcome", "run_all", "run_seed", "sweep"]


class Run(Protocol):
    def __call__(
        self, seed: int, /, *, plant: str | None, tracer: Observer | None = None
    ) -> Outcome:
        """One seed, on the shipped rules or with a planted bug."""
        ...


@dataclass(slots=True)
class SweepResult:
    """What a sweep came to. `failures` are in the order of their seeds."""

    seeds: int = 0
    seconds: float = 0.0
    events: int = 0
    virtual_ms: int = 0
    elections: int = 0
    committed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    failures: list[Outcome] = field(default_factory=list)
    was_interrupted: bool = False  # by Ctrl-C: then these are the first of the seeds

    @property
    def convicted(self) -> list[Outcome]:
        """The failures in which a rule was broken: an error convicts nothing."""
        return [outcome for outcome in self.failures if outcome.kind != ERROR]

    @property
    def seeds_per_second(self) -> float:
        return self.seeds / self.seconds if self.seconds else 0.0

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds if self.seconds else 0.0

    @property
    def virtual_seconds_per_second(self) -> float:
        return self.virtual_ms / 1000 / self.seconds if self.seconds else 0.0

    def never_fired(self, kinds: Iterable[str]) -> tuple[str, ...]:
        return tuple(kind for kind in kinds if not self.faults[kind])

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.events += outcome.event
        self.virtual_ms += outcome.now_ms
        self.elections += outcome.elections
        self.committed += outcome.committed
        self.faults.update(outcome.faults)
        if outcome.kind != "ok":
            self.failures.append(outcome)

    def include(self, other: "SweepResult") -> None:
        """Add the result of later seeds. The time is that of whoever waits for both."""
        self.seeds += other.seeds
        self.events += other.events
        self.virtual_ms += other.virtual_ms
        self.elections += other.elections
        self.committed += other.committed
        self.faults.update(other.faults)
        self.coverage.add(other.coverage)
        self.failures += other.failures


def sweep(
    seeds: Sequence[int],
    plant: str | None = None,
    processes: int = 2,
    progress: Callable[[SweepResult], None] | None = None,
    failures_max: int | None = None,
    run: Run = run,
) -> SweepResult:
    """Run `seeds`; stop early once `failures_max` of them have broken a rule, or at Ctrl-C.

    `run` is a function of some module: it is called in other processes.
    """
    result = SweepResult()
    began = time.monotonic()
    try:
        with closing(mapped(partial(_run_one, run, plant), seeds, processes)) as parts:
            for seed, part in parts:
                if isinstance(part, Died):
                    result.add(error_outcome(seed, part.ending))
                else:
                    result.include(part)
                result.seconds = time.monotonic() - began
                if progress is not None:
                    progress(result)
                if failures_max is not None and len(result.convicted) >= failures_max:
                    break
    except KeyboardInterrupt:
        result.was_interrupted = True
    return result


def run_all(run: Run, plant: str | None, seeds: Iterable[int]) -> SweepResult:
    """One after the other, here."""
    result = SweepResult()
    for seed in seeds:
        result.add(run_seed(run, seed, plant=plant, tracer=result.coverage))
    result.coverage.detach()
    return result


def _run_one(run: Run, plant: str | None, seed: int) -> SweepResult:
    return run_all(run, plant, [seed])


def run_seed(run: Run, seed: int, **how: Any) -> Outcome:
    """Also what is raised before there is a run, or while it is judged, is an outcome."""
    try:
        return run(seed, **how)
    except ANY_ERROR as error:
        return error_outcome(seed, error_ending(error))


def error_outcome(seed: int, ending: Ending) -> Outcome:
    """Nothing is known of it but how it ended."""
    return Outcome(seed=seed, kind=ending.kind, rule=ending.rule, detail=ending.detail)


def commit_of_code() -> str:
    """The commit that a failing seed belongs to; "unknown" outside a repository."""
    if not has_history():
        return "unknown"
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607 - whichever git is in use
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
            cwd=ROOT,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
