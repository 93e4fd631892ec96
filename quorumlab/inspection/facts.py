"""What a diagnosis rests on, and what it comes to: values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from quorumlab.inspection.identity import VoterSet

__all__ = ["Finding", "Holdings", "Level", "LiveFacts", "LiveVoter", "ReplicaFacts"]


class Level(Enum):
    PROBLEM = "problem"
    WARNING = "warning"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """A directory. What could not be read is None or empty."""

    name: str  # as it was given
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    last_epoch: int = -1
    end_offset: int = -1
    voters: VoterSet = field(default_factory=VoterSet)
    problems: tuple[str, ...] = ()
    torn_tail: str = ""  # a write that was cut off, or is under way


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveVoter:
    """A voter, or an observer that is no broker, as the leader knows it."""

    id: int
    end_offset: int
    behind_ms: int  # since it was last caught up; -1: it has never fetched
    directory_id: str | None = None  # None: the leader does not know it
    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """What an address said. `failure` is why it said nothing."""

    name: str
    failure: str | None = None
    no_quorum: str = ""  # what it said instead of describing one: a design on ZooKeeper
    cluster_id: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    is_dynamic: bool = False  # kraft.version 1 and later: voters come and go as records
    voters: tuple[LiveVoter, ...] = ()
    observers: tuple[LiveVoter, ...] = ()
    clock_difference_ms: int = 0  # of the leader's to ours
    unreachable: Mapping[str, str] = field(default_factory=dict)  # endpoints of voters, and why

    @property
    def option(self) -> str:
        """The option of `quorumlab quorum` that names this node."""
        is_controller = any(voter.endpoint == self.name for voter in self.voters)
        return f"--bootstrap-{'controller' if is_controller else 'server'} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What would go with a broker."""

    broker_id: int
    is_registered: bool = False
    replicas: int = 0
    only_in_sync: int = 0  # partitions of which nobody else is in sync
