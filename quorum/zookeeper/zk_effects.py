"""What a core asks of ZooKeeper and hears from it, beside `quorum.core.effects`.

Results and events come in the order in which they happened. What may be asked, and what is
promised, is told in `wire.zk.session`.
"""

from quorum.core.effects import Answer, Event, Told
from quorum.core.types import Token
from wire.zk.session import Error, Failed, Operation, Result, SessionEvent

__all__ = ["ZkEvent", "ZkRequest", "ZkResult"]


class ZkRequest(Told):
    """Ask ZooKeeper, in the session that is named and in no other. Leads to `ZkResult`, once."""

    token: Token
    session_id: int
    operation: Operation

    def withheld(self) -> Event:
        return ZkResult(token=self.token, result=Failed(error=Error.CONNECTION_LOSS))


class ZkResult(Answer):
    result: Result


class ZkEvent(Event):
    """A watch has fired, or the session has changed: told to every component of the node."""

    event: SessionEvent
