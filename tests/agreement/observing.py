"""What nodes say of two partitions, honest or not, and which rules that breaks, word by word."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import Any

from jepsen_like.histories.history import History, Kind, Value
from tests.jepsen_like.play import Play

__all__ = ["broken_observations", "observed_history"]

_KEYS = ("a", "b")
_REPLICAS = (1, 2, 3)
_UNKNOWN = -1  # a partition epoch that its observer cannot tell


@dataclass(slots=True)
class _Partition:
    """Its states from the first to the last, and how far each node has heard of them."""

    states: list[list[Any]]
    heard: dict[int, int]
    ends: dict[int, int]
    marks: dict[int, int]  # high watermarks, as each node knows them


def observed_history(random: Random, lying: float) -> History:
    play = Play(workload="observe")
    partitions = {key: _partition() for key in _KEYS}
    incarnations = dict.fromkeys(_REPLICAS, 0)
    for _ in range(random.randint(3, 14)):
        node = random.choice(_REPLICAS)
        if random.random() < 0.1:
            incarnations[node] += 1
            for partition in partitions.values():
                partition.heard[node] = random.randrange(partition.heard[node] + 1)
                partition.marks[node] = random.randrange(partition.marks[node] + 1)
        for partition in partitions.values():
            _goes_on(partition, random)
        keys = random.sample(_KEYS, random.choice([1, 2, 2]))
        told = {key: _said(partitions[key], node, random, lying) for key in keys}
        extra = {"incarnation": incarnations[node]}
        play.line(Kind.OK, f"node-{node}", "observe", told, None, extra)
    return play.history


def _partition() -> _Partition:
    nothing = dict.fromkeys(_REPLICAS, 0)
    first = [1, 0, 0, [1, 2, 3], []]
    return _Partition([first], dict(nothing), dict(nothing), dict(nothing))


def _goes_on(partition: _Partition, random: Random) -> None:
    """The log grows, or leader, ISR and ELR become others."""
    for node in _REPLICAS:
        partition.ends[node] += random.choice([0, 1])
    if random.random() < 0.5:
        return
    leader, epoch, number, isr, _ = partition.states[-1]
    isr = sorted(random.sample(_REPLICAS, random.choice([1, 2, 3])))
    if leader not in isr or random.random() < 0.3:
        leader, epoch = random.choice([-1, *isr]), epoch + 1
    elr = [node for node in _REPLICAS if node not in isr and random.random() < 0.3]
    partition.states.append([leader, epoch, number + 1, isr, elr])


def _said(partition: _Partition, node: int, random: Random, lying: float) -> Value:
    heard = random.randrange(partition.heard[node], len(partition.states))
    before, partition.heard[node] = partition.states[partition.heard[node]], heard
    leader, epoch, number, isr, elr = partition.states[heard]
    if epoch != before[1]:
        partition.marks[node] = random.randrange(partition.marks[node] + 1)
    end = partition.ends[node]
    partition.marks[node] = mark = random.randint(partition.marks[node], end)
    if random.random() < lying:
        leader = random.choice([*_REPLICAS, leader])
        epoch = max(0, epoch + random.choice([-1, 0, 1]))
        number = max(0, number + random.choice([-1, 0, 1]))
        isr = random.choice([isr, [1, 4], [2]])
        mark = max(0, mark + random.choice([-2, 0, 2]))
    if random.random() < 0.1:
        number = _UNKNOWN
    more = {"high_watermark": mark, "log_end": end, "replicas": [*_REPLICAS], "elr": elr}
    told = {name: value for name, value in more.items() if random.random() < 0.8}
    shuffled = random.sample(isr, len(isr))
    return [leader, epoch, number, shuffled, *([told] if told or random.random() < 0.5 else [])]


# --- the rules ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Seen:
    at: int
    by: tuple[int | str, int]  # the node, and which of its lives
    node: str
    key: str
    leader: int
    epoch: int
    number: int  # the partition epoch
    isr: frozenset[int]
    more: dict[str, Any]


def broken_observations(history: History) -> set[tuple[str, str]]:
    seen = [*_seen(history)]
    broken = {(rule, each.key) for each in seen for rule in _alone(each)}
    for one, other in permutations(seen, 2):
        if one.key == other.key:
            broken |= {(rule, one.key) for rule in _together(one, other)}
            if one.by == other.by and one.at < other.at:
                broken |= {(rule, one.key) for rule in _one_after_the_other(one, other)}
    return broken


def _seen(history: History) -> Iterator[_Seen]:
    for at, op in enumerate(history.ops):
        for key, (leader, epoch, number, isr, *more) in op.value.items():
            by = op.process, op.extra.get("incarnation", 0)
            node = str(op.process).removeprefix("node-")
            told = more[0] if more else {}
            yield _Seen(at, by, node, key, leader, epoch, number, frozenset(isr), told)


def _alone(each: _Seen) -> Iterator[str]:
    if each.leader >= 0 and each.leader not in each.isr:
        yield "leader-outside-isr"
    elr = set(each.more.get("elr", ()))
    replicas = set(each.more.get("replicas", each.isr | elr))
    if not each.isr | elr <= replicas or each.isr & elr:
        yield "isr-outside-replicas"
    if each.more.get("high_watermark", 0) > each.more.get("log_end", 1 << 60):
        yield "high-watermark-beyond-log"


def _together(one: _Seen, other: _Seen) -> Iterator[str]:
    if one.epoch == other.epoch and one.leader != other.leader:  # none is one, too
        yield "two-leaders"
    states = [(each.leader, each.epoch, each.isr) for each in (one, other)]
    if one.number == other.number != _UNKNOWN and states[0] != states[1]:
        yield "two-states"
    are_known = _UNKNOWN not in (one.number, other.number)
    if are_known and one.by != other.by and one.epoch < other.epoch and one.number > other.number:
        yield "epochs-disagree"


def _one_after_the_other(one: _Seen, other: _Seen) -> Iterator[str]:
    if one.epoch > other.epoch:
        yield "leader-epoch-backwards"
    if one.number > other.number != _UNKNOWN:
        yield "partition-epoch-backwards"
    is_leading = str(one.leader) == one.node and str(other.leader) == other.node
    if is_leading and one.epoch == other.epoch:
        mark, later = one.more.get("high_watermark"), other.more.get("high_watermark")
        if mark is not None and later is not None and mark > later:
            yield "high-watermark-backwards"
