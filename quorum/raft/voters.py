"""The voters of the quorum and the arithmetic of majorities.

Knows who votes, where they are, and what more than half of them means. No Raft in here: no
epochs, no roles, no messages.

Source: Raft thesis 3.4 (majority of votes) and 3.5 (majority of logs); KIP-853 for voter keys.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from quorum.core.types import Endpoint, ReplicaKey
from wire.control_records import KRaftVersionRange, VoterEndpoint

__all__ = [
    "KRAFT_VERSION",
    "SUPPORTED_KRAFT_VERSIONS",
    "VoteResult",
    "Voter",
    "VoterSet",
    "is_split",
    "majority_count",
    "majority_offset",
    "vote_result",
]

KRAFT_VERSION = "kraft.version"  # the feature
SUPPORTED_KRAFT_VERSIONS = KRaftVersionRange(min_supported_version=0, max_supported_version=1)
_STATIC_ONLY = KRaftVersionRange(min_supported_version=0, max_supported_version=0)


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter and its controller listener, the one that we use.

    A voter of the configuration has said nothing of itself yet: what is known of it is `endpoint`.
    """

    key: ReplicaKey
    endpoint: Endpoint
    listeners: tuple[VoterEndpoint, ...] = ()  # all that it has, in its own order
    kraft_versions: KRaftVersionRange = _STATIC_ONLY  # that it can live with

    def __post_init__(self) -> None:
        assert self.key.id == self.endpoint.node_id, (self.key, self.endpoint)

    def supports(self, kraft_version: int) -> bool:
        known = self.kraft_versions
        return known.min_supported_version <= kraft_version <= known.max_supported_version


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Voters in the order of their ids, no id twice. Empty where the voters are not known yet."""

    voters: tuple[Voter, ...] = ()
    ids: tuple[int, ...] = field(init=False, repr=False, compare=False)
    keys: tuple[ReplicaKey, ...] = field(init=False, repr=False, compare=False)
    _by_id: Mapping[int, Voter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = [voter.key.id for voter in self.voters]
        assert ids == sorted(set(ids)), f"voter ids must be ascending and distinct: {ids}"
        object.__setattr__(self, "ids", tuple(ids))
        object.__setattr__(self, "keys", tuple(voter.key for voter in self.voters))
        object.__setattr__(self, "_by_id", {voter.key.id: voter for voter in self.voters})

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        return cls(tuple(sorted(voters, key=lambda voter: voter.key.id)))

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def get(self, node_id: int) -> Voter | None:
        return self._by_id.get(node_id)

    def contains(self, key: ReplicaKey) -> bool:
        """Is this replica a voter? A node with another directory is another replica (KIP-853)."""
        voter = self._by_id.get(key.id)
        return voter is not None and voter.key.matches(key)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """With `voter` in the place of who had its id, if anybody had."""
        return VoterSet.of((*self.others(voter.key.id), voter))

    def without(self, node_id: int) -> "VoterSet":
        return VoterSet(self.others(node_id))

    def others(self, node_id: int) -> tuple[Voter, ...]:
        return tuple(voter for voter in self.voters if voter.key.id != node_id)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        voter = self.get(node_id)
        return None if voter is None else voter.endpoint

    def describe(self, ends: Mapping[int, int]) -> str:
        """A bar for each voter's log end offset, and the offset that a majority has reached."""
        top = max([1, *ends.values()])
        lines = []
        for voter_id in self.ids:
            end = ends.get(voter_id, 0)
            lines.append(f"  {voter_id:>6} |{'=' * (24 * end // top):<24}| {end}")
        if self.voters:
            reached = majority_offset({voter_id: ends.get(voter_id, 0) for voter_id in self.ids})
            lines.append(f"  majority {' ' * (24 * reached // top)}^ {reached}")
        return "\n".join(lines)


class VoteResult(Enum):
    PENDING = "pending"
    WON = "won"
    LOST = "lost"  # a majority can no longer be had


def majority_count(voter_count: int) -> int:
    """The fewest voters that are more than half: any two majorities share a voter."""
    return voter_count // 2 + 1


def vote_result(votes: Mapping[int, bool | None]) -> VoteResult:
    """The state of a poll. `votes` maps every voter to its answer, None while there is none."""
    assert votes, "an election needs voters"
    needed = majority_count(len(votes))
    granted = sum(1 for vote in votes.values() if vote is True)
    rejected = sum(1 for vote in votes.values() if vote is False)
    if granted >= needed:
        return VoteResult.WON
    return VoteResult.LOST if len(votes) - rejected < needed else VoteResult.PENDING


def is_split(votes: Mapping[int, bool | None]) -> bool:
    """Has a voter refused, and would one more refusal lose the poll?"""
    refused = sum(1 for vote in votes.values() if vote is False)
    return 0 < refused == len(votes) - majority_count(len(votes))


def majority_offset(ends: Mapping[int, int]) -> int:
    """The largest offset that more than half of the voters have reached.

    `ends` maps every voter to its log end offset (exclusive), 0 where nothing is known. The
    leader must still check that the offset lies in its own epoch (thesis 3.6.2).
    """
    assert ends, "a majority needs voters"
    descending = sorted(ends.values(), reverse=True)
    return descending[len(descending) // 2]
