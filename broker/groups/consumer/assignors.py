"""Assignors work out who should have what: `uniform` and `range`. They are pure.

`uniform` gives all members as many partitions as their subscriptions allow, and moves as few as it
can. `range` gives each member of a topic a row of neighbours, the n-th member the n-th row: topics
with as many partitions each are split alike, so that what belongs together in two of them comes to
one member.

What they decide is a rule of ours: coordinators of Kafka may give other members other partitions.

Source: KIP-848; Kafka's UniformAssignor and RangeAssignor.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heapreplace
from uuid import UUID

from broker.groups.consumer.consumer_values import Target, TopicPartition

__all__ = ["ASSIGNORS", "Assignor", "Subscriber"]

_PASSES_MAX = 16  # of balancing, as in Kafka


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A member as an assignor sees it."""

    instance_id: str | None = None
    topics: frozenset[UUID]
    target: Target  # the last one


Subscribers = Mapping[str, Subscriber]  # by member id
Counts = Mapping[UUID, int]  # of partitions, of the topics that exist
Assignor = Callable[[Subscribers, Counts], dict[str, Target]]


# --- uniform --------------------------------------------------------------------------------


def uniform(members: Subscribers, counts: Counts) -> dict[str, Target]:
    shares = _kept(members, counts)
    interested = _interested(members, counts)
    wants_alike = len({member.topics for member in members.values()}) == 1
    if wants_alike:
        _cut(shares, sum(counts[topic_id] for topic_id in interested))
    taken = {partition for share in shares.values() for partition in share}
    for topic_id in sorted(interested, key=lambda each: (len(interested[each]), each)):
        free = [index for index in range(counts[topic_id]) if (topic_id, index) not in taken]
        _give(shares, interested[topic_id], ((topic_id, index) for index in free))
    if not wants_alike:
        _even_out(shares, interested)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _cut(shares: dict[str, set[TopicPartition]], total: int) -> None:
    """Nobody keeps more than its part; of what does not come out even, whoever has it already."""
    quota, extra = divmod(total, len(shares))
    for share in shares.values():
        has_extra = len(share) > quota and extra > 0
        extra -= has_extra
        surplus = len(share) - quota - has_extra
        if surplus > 0:
            share.difference_update(sorted(share)[-surplus:])


def _even_out(shares: dict[str, set[TopicPartition]], interested: Mapping[UUID, list[str]]) -> None:
    own: dict[UUID, dict[str, list[TopicPartition]]] = {topic_id: {} for topic_id in interested}
    for member_id, share in shares.items():
        for partition in sorted(share):
            own[partition[0]].setdefault(member_id, []).append(partition)
    for _ in range(_PASSES_MAX):
        moved = [_balance(shares, own[topic_id], who) for topic_id, who in interested.items()]
        if not any(moved):
            break


def _kept(members: Subscribers, counts: Counts) -> dict[str, set[TopicPartition]]:
    """What each has already, and still wants."""
    return {
        member_id: {
            (topic_id, index)
            for topic_id, index in member.target
            if topic_id in member.topics and index < counts.get(topic_id, 0)
        }
        for member_id, member in members.items()
    }


def _interested(members: Subscribers, counts: Counts) -> dict[UUID, list[str]]:
    """By topic, in the order of members."""
    found: dict[UUID, list[str]] = {}
    for member_id, member in members.items():
        for topic_id in member.topics:
            if topic_id in counts:
                found.setdefault(topic_id, []).append(member_id)
    return {topic_id: found[topic_id] for topic_id in sorted(found)}


def _give(
    shares: dict[str, set[TopicPartition]],
    interested: list[str],
    partitions: Iterator[TopicPartition],
) -> None:
    """Each to the one who has least."""
    least = [(len(shares[id_]), place, id_) for place, id_ in enumerate(interested)]
    heapify(least)
    for partition in partitions:
        size, place, member_id = least[0]
        shares[member_id].add(partition)
        heapreplace(least, (size + 1, place, member_id))


def _balance(
    shares: dict[str, set[TopicPartition]],
    own: dict[str, list[TopicPartition]],
    interested: list[str],
) -> bool:
    """Move partitions of a topic, of which each has its `own`, to those who have fewer in all,
    while two differ by two. Any moved?"""
    has_moved = False
    if not own:
        return False
    fewest = [(len(shares[id_]), id_) for id_ in interested]
    heapify(fewest)
    for most in sorted(own, key=lambda id_: (len(shares[id_]), id_), reverse=True):
        while own[most] and len(shares[most]) - fewest[0][0] >= 2:
            count, least = fewest[0]
            if count != len(shares[least]):  # it gave some away
                heapreplace(fewest, (len(shares[least]), least))
                continue
            moved = own[most].pop()
            own.setdefault(least, []).append(moved)
            shares[most].remove(moved)
            shares[least].add(moved)
            heapreplace(fewest, (count + 1, least))
            has_moved = True
        if not own[most]:
            del own[most]
    return has_moved


# --- range ----------------------------------------------------------------------------------


def range_(members: Subscribers, counts: Counts) -> dict[str, Target]:
    ordered = dict(sorted(members.items(), key=lambda item: _rank(*item)))
    shares: dict[str, set[TopicPartition]] = {member_id: set() for member_id in members}
    for topic_id, interested in _interested(ordered, counts).items():
        quota, extra = divmod(counts[topic_id], len(interested))
        begin = 0
        for place, member_id in enumerate(interested):
            end = begin + quota + (place < extra)
            shares[member_id].update((topic_id, index) for index in range(begin, end))
            begin = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _rank(member_id: str, member: Subscriber) -> tuple[bool, str]:
    """Static members first: they keep their places."""
    return member.instance_id is None, member.instance_id or member_id


ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform, "range": range_}
