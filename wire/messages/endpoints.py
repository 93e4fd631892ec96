"""Endpoints and leaders: the structs that several families share."""

from wire.message import Message


class NodeEndpoint(Message):
    """The address of a leader that a response names (KIP-853, KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None = None  # absent from Raft's own messages


class Listener(Message):
    """A listener of a leader or of a voter, in requests (KIP-853)."""

    name: str
    host: str
    port: int


class LeaderIdAndEpoch(Message):
    leader_id: int = -1
    leader_epoch: int = -1
