"""The roles of a replica, and the transitions between them.

Values only: who decides to change role is in `electing`, `leading` and `following`, and the one
place that does it is `RaftNode._become`, which checks `ALLOWED`.

Every role remembers the vote of its epoch. Losing it while the epoch lasts would allow a second
vote, hence a second leader (thesis 3.4).

Source: Kafka's EpochState classes and QuorumState's table; KIP-996 for Prospective.
"""

from dataclasses import dataclass, field

from quorum.core.effects import EpochStart, SnapshotFile
from quorum.core.parking import Parking
from quorum.core.types import ElectionState, Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.log.fetch_progress import FetchProgress
from quorum.raft.voters import Voter, VoterSet
from wire.message import Message
from wire.messages.fetching import FetchPartition, PartitionSnapshot

__all__ = [
    "ALLOWED",
    "AskedSnapshot",
    "Candidate",
    "Download",
    "Follower",
    "Leader",
    "ParkedFetch",
    "Progress",
    "Prospective",
    "Resigned",
    "Role",
    "Unattached",
    "VoterChange",
    "election_of",
    "leader_of",
    "name_of",
]


@dataclass(slots=True, kw_only=True)
class Unattached:
    """Knows no leader that it can reach. A voter waits for one, or for its time to campaign."""

    epoch: int
    leader_id: int | None = None  # known by id, but not where it is
    voted: ReplicaKey | None = None
    election_deadline_ms: int | None  # None: an observer, which never campaigns


@dataclass(slots=True, kw_only=True)
class Prospective:
    """Asks whether it would win, before it disturbs anybody with a new epoch (KIP-996)."""

    epoch: int
    leader_id: int | None = None
    leader_endpoint: Endpoint | None = None
    voted: ReplicaKey | None = None
    election_deadline_ms: int
    votes: dict[int, bool | None]  # every voter; itself is True from the start
    retries: int = 0  # elections lost in a row


@dataclass(slots=True, kw_only=True)
class Candidate:
    epoch: int
    voted: ReplicaKey  # itself
    election_deadline_ms: int
    votes: dict[int, bool | None]  # every voter; itself is True from the start
    retries: int = 0
    backoff_until_ms: int | None = None  # set once the election is lost
    is_split: bool = False  # its deadline has been brought forward


@dataclass(slots=True, kw_only=True)
class Progress(FetchProgress):
    """That of a replica of the metadata log, which acknowledges only what is durable there."""

    key: ReplicaKey


class ParkedFetch(Message):
    """A Fetch that waits for records, for a higher watermark, or for its time to run out."""

    token: int
    partition: FetchPartition
    bytes_max: int
    is_voter: bool = False
    host: str = ""  # of whoever asks; empty where there are no sockets


@dataclass(slots=True, kw_only=True)
class VoterChange:
    """A voter is being added or removed. One change at a time (thesis 4.1, KIP-853)."""

    token: int | None  # of the request; None once it is answered
    adds: Voter | None  # None: a removal
    ack_when_committed: bool = True
    deadline_ms: int
    asking: int | None = None  # token of the question to the new voter, while it is in flight
    last_offset: int | None = None  # of the record, once it is written


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSnapshot:
    """A FetchSnapshot that waits for the bytes."""

    token: int
    partition: PartitionSnapshot


@dataclass(slots=True, kw_only=True)
class Leader:
    epoch: int
    voted: ReplicaKey  # itself
    epoch_start_offset: int  # offset of this epoch's LeaderChange
    granting: tuple[ReplicaKey, ...]  # who voted for it, itself included
    progress: dict[int, Progress]  # the other voters, all of them
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    high_watermark: int | None = None  # unknown until a record of this epoch is committed
    heard: set[int] = field(default_factory=set)  # voters that fetched since the last majority
    check_quorum_deadline_ms: int
    begin_epoch_due_ms: int
    updated_voters: VoterSet = field(default_factory=VoterSet)  # what the voters tell of themselves
    change: VoterChange | None = None
    watermark_due_ms: int | None = None  # when voters hear of the watermark without records
    parked: Parking[ParkedFetch] = field(default_factory=Parking)
    reading: dict[int, tuple[ParkedFetch, ...]] = field(default_factory=dict)  # by read token
    reading_snapshots: dict[int, AskedSnapshot] = field(default_factory=dict)  # by read token
    since: EpochStart = field(init=False)

    def __post_init__(self) -> None:
        self.since = EpochStart(self.epoch, self.epoch_start_offset)


@dataclass(slots=True, kw_only=True)
class Download:
    """How much of a snapshot has come from a node; kept while leaders and epochs change."""

    id: OffsetAndEpoch
    source_id: int
    position: int = 0  # all before it has been given to the disk
    size_bytes: int = -1  # known with the first piece
    finishing: int | None = None  # token of the last piece, until the disk has judged the whole
    file: SnapshotFile | None = None  # then: to be adopted when the next leader agrees


@dataclass(slots=True, kw_only=True)
class Follower:
    epoch: int
    leader_id: int
    leader_endpoint: Endpoint
    voted: ReplicaKey | None = None
    fetch_deadline_ms: int  # then the leader counts as gone
    has_fetched: bool = False  # an answer of this leader has arrived: it was there
    is_leader_silent: bool = False  # the last request to it failed: look for another
    snapshot_id: OffsetAndEpoch | None = None  # what the leader wants fetched before records
    report_due_ms: int = 0  # when to see whether the voters' record says of us what it should
    reporting: int | None = None  # token of what we had to say about that, while in flight
    has_reported: bool = False  # this leader has taken it in


@dataclass(slots=True, kw_only=True)
class Resigned:
    """Led this epoch and will not again: tells the others, and waits for a new epoch."""

    epoch: int
    voted: ReplicaKey | None  # itself, or nothing where an old quorum-state did not say
    election_deadline_ms: int
    unacknowledged: dict[int, Endpoint]  # voters that have not heard of it
    preferred: tuple[ReplicaKey, ...] = ()  # the most up to date voter first


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned

# The only truth about transitions. Missing on purpose: nothing leads but a candidate (thesis
# 3.4), and nothing leads again once resigned (KAFKA-10527).
ALLOWED: dict[type, tuple[type, ...]] = {
    Unattached: (Unattached, Prospective, Candidate, Follower),
    Prospective: (Unattached, Candidate, Follower),
    Candidate: (Unattached, Prospective, Leader, Follower),
    Leader: (Unattached, Follower, Resigned),
    Follower: (Unattached, Prospective, Candidate, Follower),
    Resigned: (Unattached, Candidate, Follower),
}


def leader_of(role: Role, node_id: int) -> int | None:
    """The leader of the role's epoch as far as known. A resigned leader was the one."""
    match role:
        case Leader() | Resigned():
            return node_id
        case Candidate():
            return None
        case Unattached() | Prospective() | Follower():
            return role.leader_id


def election_of(role: Role, node_id: int) -> ElectionState:
    """What must survive a crash. Equal for a leader and the resigned one it becomes."""
    return ElectionState(epoch=role.epoch, leader_id=leader_of(role, node_id), voted=role.voted)


def name_of(role: Role) -> str:
    return type(role).__name__.lower()
