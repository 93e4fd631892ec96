"""The log: records are sent to partitions and polled from them; what is acknowledged stays.

Every process has a producer and a consumer. It is assigned some of the keys, sends to any of them,
polls, and is sometimes assigned others: a key that it keeps goes on where it was, a new one begins
where the log ends, unless all are to be read from the beginning. At the very end fresh processes
read all keys from zero until they have caught up.

A key is "topic-partition"; a value is an int that is sent once. Judged: acknowledged records that
are lost, values at two offsets, two values at an offset, order, and what was skipped.
Source: Jepsen's kafka workload.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.workloads.workload import (
    UNTIL_CAUGHT_UP,
    NewTopic,
    Turns,
    Wish,
    WorkloadOptions,
    mixed,
)

__all__ = ["Log"]

TOPIC = "chaos"
_READERS = 2  # that read everything at the end
_WEIGHTS = {"send": 60, "poll": 38, "assign": 2}
_NOTHING: Mapping[str, Value] = {}
_FROM_ZERO = {"seek": "beginning"}
_FROM_THE_BEGINNING = 8  # one of so many assignments: it costs a reading of the whole log


@dataclass(slots=True)
class Log:
    options: WorkloadOptions
    name: str = "log"
    _values: Iterator[int] = field(default_factory=lambda: count(1))
    _assigned: set[int] = field(default_factory=set)  # the processes that are
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns.of(self.options)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topics(self) -> Sequence[NewTopic]:
        replicas = self.options.replication_factor
        return [
            NewTopic(
                name=TOPIC,
                partitions=self.options.partitions,
                replication_factor=replicas,
                configs={"min.insync.replicas": str(max(1, replicas - 1))},
            )
        ]

    @property
    def keys(self) -> Sequence[str]:
        return [f"{TOPIC}-{partition}" for partition in range(self.options.partitions)]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        if process not in self._assigned:
            return self._assign(random)
        match mixed(random, _WEIGHTS):
            case "send":
                return self.send(random)
            case "poll":
                return Wish(f="poll", value=[["poll"]])
            case _:
                return self._assign(random)

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
            Wish(f="assign", value=list(self.keys), extra=_FROM_ZERO),
            Wish(f="poll", value=[["poll"]], extra=UNTIL_CAUGHT_UP),
        ]

    def _assign(self, random: Random) -> Wish:
        keys = sorted(random.sample(self.keys, random.randint(1, len(self.keys))))
        again = random.randrange(_FROM_THE_BEGINNING) == 0
        return Wish(f="assign", value=keys, extra=_FROM_ZERO if again else {})
