"""What is entered in a history, before whoever keeps it gives it an index and a time.

An invocation is entered before its request leaves, a completion after its answer came. What failed,
or may have, carries the value that was asked for: nothing else is known of it.

Pure. Source: jepsen.history.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen_like.checkers.operations import OBSERVE
from jepsen_like.histories.history import NEMESIS, Kind, Op, Value
from jepsen_like.workloads.workload import Done, Wish
from wire.zk.designs import Design

__all__ = ["Entry", "comparable", "completion", "deed", "invocation", "observation"]

_UNKNOWN_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    kind: Kind
    process: int | str
    f: str
    value: Value = None
    error: str | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)

    def at(self, *, index: int, time_ns: int) -> Op:
        return Op(
            index=index,
            time_ns=time_ns,
            kind=self.kind,
            process=self.process,
            f=self.f,
            value=self.value,
            error=self.error,
            extra=self.extra,
        )


def invocation(process: int, wish: Wish) -> Entry:
    return Entry(
        kind=Kind.INVOKE, process=process, f=wish.f, value=wish.value, extra=dict(wish.extra)
    )


def completion(process: int, wish: Wish, done: Done) -> Entry:
    return Entry(
        kind=done.kind,
        process=process,
        f=wish.f,
        value=done.value if done.kind is Kind.OK else wish.value,
        error=done.error,
        extra={**wish.extra, **done.extra},
    )


def observation(node: int, states: Mapping[str, Value], *, incarnation: int) -> Entry:
    """What a node believes of its partitions; it has no invocation. See `checkers.observations`."""
    return Entry(
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


def deed(f: str, value: Value, **extra: Value) -> Entry:
    """An entry of the nemesis."""
    return Entry(kind=Kind.INFO, process=NEMESIS, f=f, value=value, extra=extra)
