"""Workloads on logs: records are sent to partitions and polled, and what is acknowledged stays.

`log`: every process has a producer and a consumer. It is assigned some of the keys, sends to any of
them, polls, and is sometimes assigned others: a key that it keeps goes on where it was, a new one
begins where the log ends, unless all are to be read from the beginning. At the very end fresh
processes read all keys from zero until they have caught up. A key is "topic-partition"; a value is
an int that is sent once. Judged: acknowledged records that are lost, values at two offsets, two
values at an offset, order, and what was skipped. Source: Jepsen's kafka workload.

`kafka`: the log with what clients of Kafka do beside: numbered sends, groups, committed offsets.
Every process is also a member of one of two groups. A key belongs to one process of each group,
which commits how far it has read; no offset is committed twice, and none below one that was. From
time to time a process looks what is committed, goes on from there, or takes its producer's next
epoch. While faults come and go, the answer may be old. At the very end it is not: the committed
offsets are read, and resumed from. The topic of offsets is made before, and small: else the first
request for a group would have fifty partitions made. Source: KIP-62, KIP-98, KIP-360.

`admin`: the log while an operator works on it. One process is the operator, the others are the
log's clients, and judged as such: an operator's work may never cost a record. The voters must live
in the log, or changes of voters are refused; partitions have fewer replicas than there are brokers,
so that there is where to move.

    reassign       {key: [broker, ...]}         begun, not awaited
    elect          key                          its preferred leader
    remove-voter   node id
    add-voter      node id                      the one that was removed
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import ClassVar

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.workloads.workload import (
    FROM_ZERO,
    UNTIL_CAUGHT_UP,
    NewTopic,
    Turns,
    Wish,
    WorkloadOptions,
    mixed,
)

__all__ = ["OPERATIONS", "Admin", "Kafka", "Log"]

TOPIC = "chaos"
_READERS = 2  # that read everything at the end
_NOTHING: Mapping[str, Value] = {}
_FROM_THE_BEGINNING = 8  # one of so many assignments: it costs a reading of the whole log


class Log:
    """Also the base of the workloads on logs that do more."""

    pauses: ClassVar[int] = 1  # the mean pause of a process, in pauses of the log workload
    weights: ClassVar[Mapping[str, int]] = {"write": 60, "poll": 38, "assign": 2}

    def __init__(self, options: WorkloadOptions, name: str = "log") -> None:
        self.options = options
        self.name = name
        self._values = count(1)
        self._assigned: set[int] = set()  # the processes that are
        self._turns = Turns.of(options, self.pauses)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topic(self) -> NewTopic:
        replicas = self.options.replication_factor
        return NewTopic(
            name=TOPIC,
            partitions=self.options.partitions,
            replication_factor=replicas,
            configs={"min.insync.replicas": str(max(1, replicas - 1))},
        )

    @property
    def topics(self) -> Sequence[NewTopic]:
        return [self.topic]

    @property
    def keys(self) -> Sequence[str]:
        return [f"{TOPIC}-{partition}" for partition in range(self.options.partitions)]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        drawn = mixed(random, self.weights) if process in self._assigned else "assign"
        match drawn:
            case "write":
                return self.write(random)
            case "poll":
                return Wish(f="poll", value=[["poll"]])
            case _:
                return self._assign(random)

    def write(self, random: Random) -> Wish:
        return self.send(random)

    def send(self, random: Random, extra: Mapping[str, Value] = _NOTHING) -> Wish:
        key = random.choice(self.keys)
        return Wish(f="send", value=[["send", key, next(self._values)]], extra=extra)

    def completed(self, op: Op) -> None:
        if op.f == "assign" and op.kind is Kind.OK and isinstance(op.process, int):
            self._assigned.add(op.process)

    def final(self, process: int) -> Sequence[Wish]:
        if process % self.options.processes >= _READERS:
            return []
        return [
            Wish(f="assign", value=list(self.keys), extra=FROM_ZERO),
            Wish(f="poll", value=[["poll"]], extra=UNTIL_CAUGHT_UP),
        ]

    def _assign(self, random: Random) -> Wish:
        keys = sorted(random.sample(self.keys, random.randint(1, len(self.keys))))
        again = random.randrange(_FROM_THE_BEGINNING) == 0
        return Wish(f="assign", value=keys, extra=FROM_ZERO if again else {})


_GROUPS = 2
_OFFSETS = "__consumer_offsets"
_KAFKA_PAUSES = 8  # as long as a log's, between two operations that a log does not have
_KAFKA_WEIGHTS = {"commit": 60, "look": 15, "resume": 15, "epoch": 10}


class Kafka(Log):
    def __init__(self, options: WorkloadOptions) -> None:
        super().__init__(options, "kafka")
        self._turns_of_groups = Turns.of(options, _KAFKA_PAUSES)
        self._members: set[int] = set()  # processes that are
        self._read: dict[tuple[int, str], int] = {}  # by process: read so far
        self._wished: dict[tuple[str, str], int] = {}  # to be committed, by group
        self._committed: set[tuple[str, str]] = set()  # keys of which something is

    @property
    def topics(self) -> Sequence[NewTopic]:
        log = self.topic
        configs = {**log.configs, "cleanup.policy": "compact"}
        offsets = NewTopic(
            name=_OFFSETS,
            partitions=_GROUPS,
            replication_factor=log.replication_factor,
            configs=configs,
        )
        return [log, offsets]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns_of_groups.take(process, now_ms)
        wish = None if random is None else self._of_its_group(process, random)
        return super().next(process, now_ms) if wish is None else wish

    def completed(self, op: Op) -> None:
        super().completed(op)
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
            return super().final(process)
        group, keys = self._group(process), list(self.keys)
        known = [key for key in keys if (group, key) in self._committed]
        resumed = Wish(f="assign", value=known, extra={"group": group, "seek": "committed"})
        return [
            Wish(f="committed", value=keys, extra={"group": group}),
            *([resumed, Wish(f="poll", value=[["poll"]], extra=UNTIL_CAUGHT_UP)] if known else []),
            *super().final(process),
        ]

    # --- what a log does not have -----------------------------------------------------------

    def _of_its_group(self, process: int, random: Random) -> Wish | None:
        """None where there is nothing to do for it."""
        of_group = {"group": self._group(process)}
        if process not in self._members:
            return Wish(f="join", value=of_group["group"], extra=of_group)
        match mixed(random, _KAFKA_WEIGHTS):
            case "commit":
                offsets = self._progress(process)
                return Wish(f="commit", value=offsets, extra=of_group) if offsets else None
            case "look":
                return Wish(f="committed-stale", value=list(self.keys), extra=of_group)
            case "resume":
                keys = [key for key in self.keys if self._is_owner(process, key)]
                seek = {"seek": "committed-stale"}
                return Wish(f="assign", value=keys, extra={**of_group, **seek}) if keys else None
            case _:
                return self.send(random, {"epoch": "next"})

    def _progress(self, process: int) -> Mapping[str, int]:
        """How far it has read its own keys, beyond all that anybody was to commit."""
        group = self._group(process)
        offsets = {
            key: self._read[process, key]
            for key in self.keys
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
        return self.keys.index(key) % members == slot // _GROUPS


OPERATIONS = ("reassign", "elect", "remove-voter", "add-voter")
_ADMIN_WEIGHTS = {"reassign": 40, "elect": 30, "voter": 30}
_ADMIN_PAUSES = 40  # as long as a log's: moving a replica copies it
_VOTERS_MIN = 3  # with fewer, a change of voters would leave none to spare


class Admin(Log):
    def __init__(self, options: WorkloadOptions) -> None:
        replicas = min(3, max(1, len(options.brokers) - 1))
        super().__init__(replace(options, replicas=replicas), "admin")
        self._turns_of_operator = Turns.of(options, _ADMIN_PAUSES)
        self._away: int | None = None  # the voter that was removed, or may have been

    def next(self, process: int, now_ms: int) -> Wish | None:
        if process % self.processes:
            return super().next(process, now_ms)
        random = self._turns_of_operator.take(process, now_ms)
        if random is None:
            return None
        match mixed(random, _ADMIN_WEIGHTS):
            case "reassign":
                return self._reassign(random)
            case "elect":
                return Wish(f="elect", value=random.choice(self.keys))
            case _:
                return self._change_voters(random)

    def completed(self, op: Op) -> None:
        match op:
            case Op(f="remove-voter", kind=Kind.OK | Kind.INFO, value=int(node)):
                self._away = node
            case Op(f="add-voter", kind=Kind.OK):
                self._away = None
            case _:
                super().completed(op)

    def _reassign(self, random: Random) -> Wish:
        brokers = random.sample(self.options.brokers, self.options.replication_factor)
        return Wish(f="reassign", value={random.choice(self.keys): brokers})

    def _change_voters(self, random: Random) -> Wish | None:
        if self._away is not None:
            return Wish(f="add-voter", value=self._away)
        if len(self.options.controllers) < _VOTERS_MIN:
            return None
        return Wish(f="remove-voter", value=random.choice(self.options.controllers))
