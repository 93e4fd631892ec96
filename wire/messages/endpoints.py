"""Where nodes listen and who leads, in every message that says so."""

from wire.message import Message


class NodeEndpoint(Message):
    """In answers: where the leader that they name is (KIP-853, KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None  # Raft's own messages lack it


class Listener(Message):
    """In requests: a listener of a leader or of a voter (KIP-853)."""

    name: str
    host: str
    port: int


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1
