"""Where nodes listen, in every message that says so."""

from wire.message import Message

__all__ = ["LeaderEndpoint", "Listener", "NodeEndpoint"]


class NodeEndpoint(Message):
    """In answers: where the leader that they name is (KIP-853, KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None  # Raft's own messages lack it


class LeaderEndpoint(Message):
    """In requests of a leader: one of its listeners."""

    name: str
    host: str
    port: int


class Listener(Message):
    """In requests about a voter: one of its listeners (KIP-853)."""

    name: str
    host: str
    port: int
