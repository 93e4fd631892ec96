"""Outcomes, endpoints and leaders: the structs that several families share."""

from wire.errors import ErrorCode
from wire.message import Message


class Outcome(Message):
    error_code: ErrorCode = ErrorCode.NONE


class ExplainedOutcome(Outcome):
    error_message: str | None = None


class Throttled(Message):
    throttle_time_ms: int = 0


class ThrottledOutcome(Throttled):
    error_code: ErrorCode = ErrorCode.NONE


class ThrottledExplanation(ThrottledOutcome):
    error_message: str | None = None


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
