"""What a core asks of ZooKeeper and hears from it: part of the contract of `quorum.core.effects`.

Results and events come in the order in which they happened. What may be asked, and what is
promised, is told in `wire.zk.session`.
"""

from dataclasses import dataclass

from quorum.core.types import Token
from wire.zk.session import Operation, Result, SessionEvent

__all__ = ["ZkEvent", "ZkRequest", "ZkResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkRequest:
    """Ask ZooKeeper, in the session that is named and in no other. Leads to `ZkResult`, once."""

    token: Token
    session_id: int
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkResult:
    token: Token
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkEvent:
    """A watch has fired, or the session has changed: told to every component of the node."""

    event: SessionEvent
