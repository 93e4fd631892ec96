"""What nodes said of their partitions: one leader an epoch, epochs that go on, one state each.

An observation is one line of a history, f "observe", process "node-<id>": of each partition
[leader, leader epoch, partition epoch, ISR], as that node saw it then. Nodes may be behind each
other; they may not contradict each other:

    two-leaders              two leaders of one partition in one leader epoch, whoever saw them
    two-states               one partition epoch that names two different states
    leader-epoch-backwards   one node saw a leader epoch, and later an earlier one
    partition-epoch-backwards
    leader-outside-isr       a leader that is not in the ISR of the same state

Not looked at: an extra `incarnation` that changes (a node that was started again) is another node.
Source: KIP-497 and KIP-841 for the epochs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from jepsen_like.checkers.operations import OBSERVE
from jepsen_like.history import Kind, MalformedHistory, Op, Value
from jepsen_like.verdict import Finding, Verdict

__all__ = ["check_observations"]

_NO_LEADER = -1
_UNKNOWN = -1  # a partition epoch that an observer cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    key: str
    observer: Value
    index: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]  # sorted: its order says nothing


@dataclass(slots=True)
class _Watching:
    leaders: dict[tuple[str, int], _Seen] = field(default_factory=dict)
    states: dict[tuple[str, int], _Seen] = field(default_factory=dict)
    latest: dict[tuple[str, Value], _Seen] = field(default_factory=dict)

    def broken(self, seen: _Seen) -> Iterator[Finding]:
        of = self.leaders.setdefault((seen.key, seen.leader_epoch), seen)
        if of.leader != seen.leader:
            told = f"in leader epoch {seen.leader_epoch} {of.leader} leads, and {seen.leader}"
            yield _finding("two-leaders", told, of, seen)
        state = self.states.setdefault((seen.key, seen.partition_epoch), seen)
        if seen.partition_epoch != _UNKNOWN and _state(state) != _state(seen):
            told = f"partition epoch {seen.partition_epoch} is {_told(state)}, and {_told(seen)}"
            yield _finding("two-states", told, state, seen)
        if seen.leader != _NO_LEADER and seen.leader not in seen.isr:
            told = f"{seen.leader} leads and is not in the ISR {list(seen.isr)}"
            yield _finding("leader-outside-isr", told, seen)
        before = self.latest.get((seen.key, seen.observer), seen)
        yield from _backwards(before, seen)
        self.latest[seen.key, seen.observer] = seen


def check_observations(ops: Iterable[Op]) -> Verdict:
    watching = _Watching()
    findings: dict[tuple[str, str, str], Finding] = {}
    keys: dict[str, None] = {}
    count = 0
    for op in ops:
        if op.f != OBSERVE or op.kind in (Kind.INVOKE, Kind.FAIL) or op.value is None:
            continue
        for seen in _seen(op):
            count += 1
            keys[seen.key] = None
            for finding in watching.broken(seen):
                # One contradiction is seen again in every later observation of it.
                findings.setdefault((finding.rule, finding.object, finding.detail), finding)
    return Verdict.of(findings.values(), {"observations": count}, objects=keys)


def _seen(op: Op) -> Iterator[_Seen]:
    observer = op.process, op.extra.get("incarnation")
    try:
        hash(observer)
        for key, (leader, leader_epoch, partition_epoch, isr) in op.value.items():
            if not all(type(each) is int for each in (leader, leader_epoch, partition_epoch)):
                raise ValueError(key)
            yield _Seen(
                key=key,
                observer=observer,
                index=op.index,
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                isr=tuple(sorted(isr)),
            )
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedHistory(
            f"operation {op.index}: no observation: {op.value!r:.100}"
        ) from error


def _backwards(before: _Seen, after: _Seen) -> Iterator[Finding]:
    name = after.observer[0]
    if after.leader_epoch < before.leader_epoch:
        told = f"{name} saw leader epoch {before.leader_epoch}, and later {after.leader_epoch}"
        yield _finding("leader-epoch-backwards", told, before, after)
    if after.partition_epoch < before.partition_epoch:
        told = (
            f"{name} saw partition epoch {before.partition_epoch}, "
            f"and later {after.partition_epoch}"
        )
        yield _finding("partition-epoch-backwards", told, before, after)


def _state(seen: _Seen) -> tuple[int, int, tuple[int, ...]]:
    return seen.leader, seen.leader_epoch, seen.isr


def _told(seen: _Seen) -> str:
    return f"leader {seen.leader} in epoch {seen.leader_epoch} with ISR {list(seen.isr)}"


def _finding(rule: str, detail: str, *seen: _Seen) -> Finding:
    ops = tuple(dict.fromkeys(each.index for each in seen))
    return Finding(rule=rule, object=seen[0].key, detail=detail, ops=ops)
