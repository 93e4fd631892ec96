"""The log with what clients of Kafka do beside: numbered sends, groups, committed offsets.

Every process sends, polls and is assigned keys as in the log workload, and is a member of one of
two groups. A key belongs to one process of each group, which commits how far it has read; no offset
is committed twice, and none below one that was. From time to time a process looks what is
committed, goes on from there, or takes its producer's next epoch.

While faults come and go, what is said to be committed may be old. At the very end it is not: it is
read, and resumed from. The topic of offsets is made before, small: whoever asks for a group first
would have fifty partitions made.

Source: KIP-62, KIP-98, KIP-360; Jepsen's kafka workload.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from jepsen_like.histories.history import Kind, Op
from jepsen_like.workloads.log import Log
from jepsen_like.workloads.workload import (
    UNTIL_CAUGHT_UP,
    NewTopic,
    Turns,
    Wish,
    WorkloadOptions,
    mixed,
)

__all__ = ["Kafka"]

_GROUPS = 2
_OFFSETS = "__consumer_offsets"
_PAUSES = 8  # as long as a log's, between two operations that a log does not have
_WEIGHTS = {"commit": 60, "look": 15, "resume": 15, "epoch": 10}


@dataclass(slots=True)
class Kafka:
    options: WorkloadOptions
    name: str = "kafka"
    _log: Log = field(init=False)
    _turns: Turns = field(init=False)
    _members: set[int] = field(default_factory=set)  # processes that are
    _read: dict[tuple[int, str], int] = field(default_factory=dict)  # by process: read so far
    _wished: dict[tuple[str, str], int] = field(default_factory=dict)  # to be committed, by group
    _committed: set[tuple[str, str]] = field(default_factory=set)  # keys of which something is

    def __post_init__(self) -> None:
        self._log = Log(self.options)
        self._turns = Turns.of(self.options, _PAUSES)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topics(self) -> Sequence[NewTopic]:
        [log] = self._log.topics
        configs = {**log.configs, "cleanup.policy": "compact"}
        offsets = NewTopic(
            name=_OFFSETS,
            partitions=_GROUPS,
            replication_factor=log.replication_factor,
            configs=configs,
        )
        return [log, offsets]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        wish = None if random is None else self._of_its_group(process, random)
        return self._log.next(process, now_ms) if wish is None else wish

    def completed(self, op: Op) -> None:
        self._log.completed(op)
        match op:
            case Op(f="join", kind=Kind.OK, process=int(process)):
                self._members.add(process)
            case Op(f="commit", kind=Kind.OK, value=offsets, extra={"group": group}):
                self._committed |= {(group, key) for key in offsets}
            case Op(f="join" | "commit", kind=Kind.FAIL, process=int(process)):
                self._members.discard(process)
            case Op(f="assign", kind=Kind.OK, process=int(process)):
                self._read = {at: end for at, end in self._read.items() if at[0] != process}
            case Op(f="poll", kind=Kind.OK, process=int(process), value=[["poll", found]]):
                for key, records in found.items():
                    self._read[process, key] = records[-1][0] + 1
            case _:
                pass

    def final(self, process: int) -> Sequence[Wish]:
        slot = process % self.processes
        if slot >= _GROUPS:
            return self._log.final(process)
        group, keys = self._group(process), list(self._log.keys)
        known = [key for key in keys if (group, key) in self._committed]
        resumed = Wish(f="assign", value=known, extra={"group": group, "seek": "committed"})
        return [
            Wish(f="committed", value=keys, extra={"group": group}),
            *([resumed, Wish(f="poll", value=[["poll"]], extra=UNTIL_CAUGHT_UP)] if known else []),
            *self._log.final(process),
        ]

    # --- what a log does not have -----------------------------------------------------------

    def _of_its_group(self, process: int, random: Random) -> Wish | None:
        """None where there is nothing to do for it."""
        of_group = {"group": self._group(process)}
        if process not in self._members:
            return Wish(f="join", value=of_group["group"], extra=of_group)
        match mixed(random, _WEIGHTS):
            case "commit":
                offsets = self._progress(process)
                return Wish(f="commit", value=offsets, extra=of_group) if offsets else None
            case "look":
                return Wish(f="committed-stale", value=list(self._log.keys), extra=of_group)
            case "resume":
                keys = [key for key in self._log.keys if self._is_owner(process, key)]
                seek = {"seek": "committed-stale"}
                return Wish(f="assign", value=keys, extra={**of_group, **seek}) if keys else None
            case _:
                return self._log.send(random, {"epoch": "next"})

    def _progress(self, process: int) -> Mapping[str, int]:
        """What it has read beyond all that anybody was to commit, of the keys that are its own."""
        group = self._group(process)
        offsets = {
            key: self._read[process, key]
            for key in self._log.keys
            if self._is_owner(process, key)
            and self._read.get((process, key), 0) > self._wished.get((group, key), 0)
        }
        for key, offset in offsets.items():
            self._wished[group, key] = offset
        return offsets

    def _group(self, process: int) -> str:
        return f"readers-{process % self.processes % _GROUPS}"

    def _is_owner(self, process: int, key: str) -> bool:
        slot = process % self.processes
        members = len(range(slot % _GROUPS, self.processes, _GROUPS))
        return self._log.keys.index(key) % members == slot // _GROUPS
