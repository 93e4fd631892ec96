"""What nodes said of their partitions: one leader an epoch, epochs that go on, one state each.

An observation is one line of a history, f "observe", process "node-<id>": of each partition
[leader, leader epoch, partition epoch, ISR], as that node saw it then, and if it tells more of them
a map behind these: high_watermark and log_end of its own log, replicas and elr. Nodes may be behind
each other; they may not contradict each other:

    two-leaders              two leaders of one partition in one leader epoch, whoever saw them
    two-states               one partition epoch that names two different states
    epochs-disagree          another node saw an earlier leader epoch with a later partition epoch
    leader-epoch-backwards   one node saw a leader epoch, and later an earlier one
    partition-epoch-backwards
    leader-outside-isr       a leader that is not in the ISR of the same state
    isr-outside-replicas     an ISR or ELR with somebody who is no replica, or one that is in both
    high-watermark-backwards a leader's went back within its leader epoch
    high-watermark-beyond-log

A new leader may begin with a lower high watermark than the last one had: it does not know better
until it reaches the first offset of its epoch. Not looked at: an extra `incarnation` that changes
(a node that was started again) is another node.
Source: KIP-497, KIP-841 and KIP-966; reliability facts, M-1L, M-PE, M-SUB, M-LI, D-HWE.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jepsen_like.checkers.operations import OBSERVE
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind, MalformedHistory, Op, Value

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
    more: Mapping[str, Value]

    @property
    def is_leader(self) -> bool:
        return bool(self.observer[0] == f"node-{self.leader}")

    @property
    def high_watermark(self) -> int | None:
        mark: int | None = self.more.get("high_watermark")
        return mark


@dataclass(slots=True)
class _Watching:
    leaders: dict[tuple[str, int], _Seen] = field(default_factory=dict)
    states: dict[tuple[str, int], _Seen] = field(default_factory=dict)
    latest: dict[tuple[str, Value], _Seen] = field(default_factory=dict)
    told: dict[tuple[str, Value], _Seen] = field(default_factory=dict)  # with a partition epoch
    led: dict[tuple[str, Value, int], _Seen] = field(default_factory=dict)  # with high watermarks
    by_epoch: dict[str, list[_Seen]] = field(default_factory=dict)  # by partition epoch

    def broken(self, seen: _Seen) -> Iterator[Finding]:
        of = self.leaders.setdefault((seen.key, seen.leader_epoch), seen)
        if of.leader != seen.leader:
            told = f"in leader epoch {seen.leader_epoch} {of.leader} leads, and {seen.leader}"
            yield _finding("two-leaders", told, of, seen)
        state = self.states.setdefault((seen.key, seen.partition_epoch), seen)
        if seen.partition_epoch != _UNKNOWN and _state(state) != _state(seen):
            told = f"partition epoch {seen.partition_epoch} is {_told(state)}, and {_told(seen)}"
            yield _finding("two-states", told, state, seen)
        yield from _impossible(seen)
        yield from self._epochs_disagree(seen)
        yield from self._backwards(seen)

    def _backwards(self, seen: _Seen) -> Iterator[Finding]:
        """Against what this observer told last: of its leader epoch, partition epoch, and mark."""
        by = seen.key, seen.observer
        yield from _epoch_backwards("leader-epoch-backwards", self.latest.get(by, seen), seen)
        self.latest[by] = seen
        if seen.partition_epoch != _UNKNOWN:
            yield from _epoch_backwards("partition-epoch-backwards", self.told.get(by, seen), seen)
            self.told[by] = seen
        if seen.is_leader and seen.high_watermark is not None:
            yield from _mark_backwards(self.led.get((*by, seen.leader_epoch), seen), seen)
            self.led[*by, seen.leader_epoch] = seen

    def _epochs_disagree(self, seen: _Seen) -> Iterator[Finding]:
        """Against the neighbours by partition epoch, of all that anybody saw of the partition."""
        if seen.partition_epoch == _UNKNOWN:
            return
        known = self.by_epoch.setdefault(seen.key, [])
        at = bisect_left(known, seen.partition_epoch, key=lambda each: each.partition_epoch)
        before, after = known[at - 1 : at] if at else [], known[at : at + 1]
        for one, other in (*((each, seen) for each in before), *((seen, each) for each in after)):
            is_later = other.partition_epoch > one.partition_epoch
            by_another = one.observer != other.observer  # else it is seen to go backwards
            if is_later and by_another and other.leader_epoch < one.leader_epoch:
                told = (
                    f"partition epoch {one.partition_epoch} has leader epoch {one.leader_epoch}, "
                    f"and {other.partition_epoch} has {other.leader_epoch}"
                )
                yield _finding("epochs-disagree", told, one, other)
        if not after or after[0].partition_epoch != seen.partition_epoch:
            known.insert(at, seen)


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
        for key, (leader, leader_epoch, partition_epoch, isr, *rest) in op.value.items():
            if not all(type(each) is int for each in (leader, leader_epoch, partition_epoch)):
                raise ValueError(key)
            more = dict(rest[0]) if rest else {}
            if not all(type(more.get(name, 0)) is int for name in ("high_watermark", "log_end")):
                raise ValueError(key)
            for nodes in (isr, *(more.get(name, ()) for name in ("elr", "replicas"))):
                if not all(type(each) is int for each in nodes):
                    raise ValueError(nodes)
            yield _Seen(
                key=key,
                observer=observer,
                index=op.index,
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                isr=tuple(sorted(isr)),
                more=more,
            )
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedHistory(
            f"operation {op.index}: no observation: {op.value!r:.100}"
        ) from error


def _impossible(seen: _Seen) -> Iterator[Finding]:
    """Finds what is impossible in one state by itself."""
    if seen.leader != _NO_LEADER and seen.leader not in seen.isr:
        told = f"{seen.leader} leads and is not in the ISR {list(seen.isr)}"
        yield _finding("leader-outside-isr", told, seen)
    elr, isr = set(seen.more.get("elr", ())), set(seen.isr)
    strangers = (isr | elr).difference(seen.more.get("replicas", isr | elr))
    if strangers or isr & elr:
        told = f"ISR {sorted(isr)} and ELR {sorted(elr)} of replicas {seen.more.get('replicas')}"
        yield _finding("isr-outside-replicas", told, seen)
    mark, end = seen.more.get("high_watermark", 0), seen.more.get("log_end")
    if end is not None and mark > end:
        told = f"{seen.observer[0]} has high watermark {mark}, and its log ends at {end}"
        yield _finding("high-watermark-beyond-log", told, seen)


def _epoch_backwards(rule: str, before: _Seen, after: _Seen) -> Iterator[Finding]:
    name = rule.removesuffix("-backwards").replace("-", " ")
    earlier, later = (getattr(each, name.replace(" ", "_")) for each in (before, after))
    if later < earlier:
        told = f"{after.observer[0]} saw {name} {earlier}, and later {later}"
        yield _finding(rule, told, before, after)


def _mark_backwards(before: _Seen, after: _Seen) -> Iterator[Finding]:
    """Of one leader in one epoch, as it told it last and tells it now."""
    mark, later = before.high_watermark or 0, after.high_watermark or 0
    if later < mark:
        told = f"{after.observer[0]} leads, and its high watermark went from {mark} back to {later}"
        yield _finding("high-watermark-backwards", told, before, after)


def _state(seen: _Seen) -> tuple[int, int, tuple[int, ...]]:
    return seen.leader, seen.leader_epoch, seen.isr


def _told(seen: _Seen) -> str:
    return f"leader {seen.leader} in epoch {seen.leader_epoch} with ISR {list(seen.isr)}"


def _finding(rule: str, detail: str, *seen: _Seen) -> Finding:
    ops = tuple(sorted({each.index for each in seen}))
    return Finding(rule=rule, object=seen[0].key, detail=detail, ops=ops)
