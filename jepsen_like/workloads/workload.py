"""The contract of a workload, and the pieces that workloads share.

A workload runs unchanged on real processes and in the simulator, because it never touches a client.
A runner asks it what a process does next, gives that to the client of the process, and tells the
workload how it ended. There is one client a process. After an operation that ended as `info` the
runner drops the client, and another one takes its place under a new process number.

    runner                     workload                 client of process 3
      |  next(3, now) ---------->|                            |
      |<-------- Wish(f, value)--|                            |
      |  invoke(Wish) ------------------------------------->  |
      |<------------------------------------- Done(kind, ...) |
      |  completed(op) --------->|

Phases: the topics are created before; then come wishes while faults come and go; when everything is
healed, each process carries out its list of `final` wishes. The checkers of a history are chosen by
the name of the workload, which is in its header: `jepsen_like.checkers.judges`.

Every process draws from a generator of its own, made from the run's seed and its number: what one
process does never depends on how fast another one is. Only unique values are counted over all.

The lines of a history are made here; whoever enters them gives each its index and its time. The
invocation is entered before its request leaves, the completion after its answer came. A completion
that is not `ok` carries the value that was asked for, because nothing else is known of it.

Pure, and deterministic: the same seed and the same answers give the same wishes.
Source: jepsen.generator (stagger, mix, each-thread, phases), jepsen.client, jepsen.history.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Protocol, TypeVar

from jepsen_like.checkers.operations import OBSERVE
from jepsen_like.histories.history import NEMESIS, Kind, Op, Value
from wire.zk.designs import Design

__all__ = [
    "FROM_ZERO",
    "UNTIL_CAUGHT_UP",
    "Client",
    "Done",
    "DrawnWorkload",
    "NewTopic",
    "Turns",
    "Wish",
    "Workload",
    "WorkloadOptions",
    "comparable",
    "completion",
    "deed",
    "invocation",
    "is_to_be_repeated",
    "mixed",
    "observation",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a process shall do."""

    f: str
    value: Value = None
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How it ended: `ok`, `fail` (surely not done) or `info` (nobody knows)."""

    kind: Kind
    value: Value = None
    error: str | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What must be there before a workload begins."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


class Client(Protocol):
    """One process's way to the cluster, in the thread of that process."""

    def invoke(self, wish: Wish) -> Done:
        """Do it, within the client's own time-out. Raises nothing for what a cluster may say."""
        ...

    def close(self) -> None: ...


class Workload(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def processes(self) -> int:
        """How many clients work at a time."""
        ...

    @property
    def topics(self) -> Sequence[NewTopic]:
        """The topics that `setup` creates."""
        ...

    def next(self, process: int, now_ms: int) -> Wish | None:
        """What `process` shall do now; None: nothing yet, ask again in a few ms."""
        ...

    def completed(self, op: Op) -> None:
        """An operation has ended, in whatever way."""
        ...

    def final(self, process: int) -> Sequence[Wish]:
        """What a process does at the very end, on a healed cluster."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """Goes into the header of the history, so that the same run can be made again."""

    seed: int
    brokers: Sequence[int] = (1, 2, 3)
    controllers: Sequence[int] = (101, 102, 103)
    processes: int = 6
    partitions: int = 6
    replicas: int = 3  # of a partition, at most: there may be fewer brokers
    pause_ms: int = 20  # of a process between two operations, on the average
    idempotent: bool = True  # producers
    # A mistake that the checker must catch; only tests set it.
    stale_reads_as_reads: bool = False

    @property
    def replication_factor(self) -> int:
        return max(1, min(self.replicas, len(self.brokers)))

    def described(self) -> Mapping[str, Value]:
        described = asdict(self)
        del described["seed"]
        return described | {"brokers": list(self.brokers), "controllers": list(self.controllers)}


# In the extra of a wish: it is done again and again, until an ok of it has extra "caught_up".
UNTIL_CAUGHT_UP: Mapping[str, str] = {"until": "caught_up"}
FROM_ZERO: Mapping[str, str] = {"seek": "beginning"}  # in the extra of an assignment
Choice = TypeVar("Choice")


@dataclass(slots=True, kw_only=True)
class Turns:
    """When each process may go on, and what it draws from then.

    A pause lasts `mean_ms` on the average.
    """

    seed: int
    mean_ms: int
    _randoms: dict[int, Random] = field(default_factory=dict)
    _due_ms: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, options: WorkloadOptions, pauses: int = 1) -> "Turns":
        return cls(seed=options.seed, mean_ms=pauses * options.pause_ms)

    def take(self, process: int, now_ms: int) -> Random | None:
        """None while the process pauses; else its generator, and a pause begins anew."""
        if now_ms < self._due_ms.get(process, 0):
            return None
        if process not in self._randoms:
            # A string, since numbers that are neighbours would be seeds of the same run twice.
            self._randoms[process] = Random(f"{self.seed}/{process}")
        random = self._randoms[process]
        self._due_ms[process] = now_ms + random.randint(0, 2 * self.mean_ms)
        return random


def mixed(random: Random, weights: Mapping[Choice, int]) -> Choice:
    """One of the keys, as often as its weight says."""
    choices: Sequence[Choice] = tuple(weights)
    return random.choices(choices, tuple(weights.values()))[0]


@dataclass(slots=True, kw_only=True)
class DrawnWorkload:
    """A workload whose wishes are drawn independently, each process at its own pace."""

    name: str
    options: WorkloadOptions
    pauses: int  # the mean pause of a process, in pauses of the log workload
    draw: Callable[[int, Random], Wish]
    final: Callable[[int], Sequence[Wish]] = lambda process: []
    topics: Sequence[NewTopic] = ()
    completed: Callable[[Op], None] = lambda op: None
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns.of(self.options, self.pauses)

    @property
    def processes(self) -> int:
        return self.options.processes

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        return None if random is None else self.draw(process, random)


def is_to_be_repeated(wish: Wish, ended: Op) -> bool:
    """Whether a final wish is done once more: what it waits for was not seen."""
    if wish.extra.get("until") != UNTIL_CAUGHT_UP["until"]:
        return False
    return not (ended.kind is Kind.OK and ended.extra.get("caught_up"))


_UNKNOWN_EPOCH = -1


def invocation(process: int, wish: Wish) -> Op:
    return Op(kind=Kind.INVOKE, process=process, f=wish.f, value=wish.value, extra=dict(wish.extra))


def completion(process: int, wish: Wish, done: Done) -> Op:
    return Op(
        kind=done.kind,
        process=process,
        f=wish.f,
        value=done.value if done.kind is Kind.OK else wish.value,
        error=done.error,
        extra={**wish.extra, **done.extra},
    )


def observation(node: int, states: Mapping[str, Value], *, incarnation: int) -> Op:
    """A sample of a node's view of partitions; see `checkers.observations`."""
    return Op(
        kind=Kind.OK,
        process=f"node-{node}",
        f=OBSERVE,
        value=states,
        extra={"incarnation": incarnation},
    )


def comparable(states: Mapping[str, Value], design: Design | None) -> Mapping[str, Value]:
    """The states that can be compared with what others have told; None stands for the quorum.

    Where replicas elect, the leader and the ISR are two nodes, which no epoch names together; that
    nobody leads is no epoch of its own; and in `zk-v1` there are none at all.
    """
    if design is None or design.has_controller:
        return states
    if not design.has_leader_epochs:
        return {}
    return {
        key: [leader, leader_epoch, _UNKNOWN_EPOCH, *rest]
        for key, (leader, leader_epoch, _, *rest) in states.items()
        if leader >= 0
    }


def deed(f: str, value: Value, **extra: Value) -> Op:
    """A line of the nemesis."""
    return Op(kind=Kind.INFO, process=NEMESIS, f=f, value=value, extra=extra)
