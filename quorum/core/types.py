"""The nouns of the quorum, as values."""

from dataclasses import dataclass
from uuid import UUID

from wire.message import Message
from wire.primitives import INT32_MAX, ZERO_UUID

__all__ = [
    "EPOCH_MAX",
    "NO_EPOCH",
    "ElectionState",
    "Endpoint",
    "LeaderAndEpoch",
    "OffsetAndEpoch",
    "ReplicaKey",
    "Token",
]

NO_EPOCH = -1
# The last epoch that is believed and entered: one that none could follow, as int32 has it, would
# leave a quorum that can never elect again.
EPOCH_MAX = INT32_MAX - 1


class Token(Message, kw_only=False):
    """What a core tags its requests with; see `quorum.core.effects`."""

    owner: str
    number: int


class ReplicaKey(Message, kw_only=False):
    """A replica: its node id and the id of the directory that holds its metadata log.

    A directory id of ZERO_UUID means "not known" (KIP-853).
    """

    id: int
    directory_id: UUID = ZERO_UUID

    def matches(self, other: "ReplicaKey") -> bool:
        """Is `other` whom this key, a voter's or a vote's, names? Without a directory: any disk.

        Not the other way round: who does not say which disk it has may have a wiped one.
        """
        return self.id == other.id and self.directory_id in (other.directory_id, ZERO_UUID)


class OffsetAndEpoch(Message, kw_only=False):
    """A place in a log: `offset` is exclusive (the next record), `epoch` that of the last record.

    The order of logs is by epoch first: `is_at_least` compares them, and there is no `<`.
    """

    offset: int
    epoch: int

    def is_at_least(self, other: "OffsetAndEpoch") -> bool:
        """Is a log that ends here as up to date as one that ends at `other`? (thesis 3.6.1)"""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class LeaderAndEpoch(Message, kw_only=False):
    """`leader_id` is None while the leader of `epoch` is unknown."""

    leader_id: int | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionState:
    """What quorum-state holds: what this replica must remember across a crash.

    Both a leader and a vote may be present (pre-vote, KIP-996).
    """

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None


class Endpoint(Message, kw_only=False):
    """Where a node listens. `node_id` is negative for a bootstrap server of unknown id."""

    node_id: int
    host: str
    port: int
