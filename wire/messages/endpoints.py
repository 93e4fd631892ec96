"""Where nodes listen, in every message that says so."""

from dataclasses import dataclass

__all__ = ["LeaderEndpoint", "Listener", "NodeEndpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """In answers: where the leader that they name is (KIP-853, KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None  # Raft's own messages lack it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEndpoint:
    """In requests of a leader: one of its listeners."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """In requests about a voter: one of its listeners (KIP-853)."""

    name: str
    host: str
    port: int
