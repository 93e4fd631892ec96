"""What a core asks of ZooKeeper and hears from it, beside `quorum.core.effects`, and how a driver
performs it.

Results and events come in the order in which they happened. `wire.zk.session` says what may be
asked, and what is promised.
"""

from collections.abc import Callable
from typing import Protocol

from quorum.core.effects import Answer, Effect, Event, Told
from quorum.core.types import Token
from wire.zk.session import Error, Failed, Operation, Result, SessionEvent, ZkClient

__all__ = ["ZkDriver", "ZkEvent", "ZkRequest", "ZkResult", "ask_by", "session_hearer"]


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


class ZkDriver(Protocol):
    def hear(self, event: Event) -> None: ...

    def perform_with(self, kind: type[Effect], perform: Callable[[ZkRequest], None]) -> None: ...


def session_hearer(driver: ZkDriver) -> Callable[[SessionEvent], None]:
    """What a client is to call with the news of its session."""
    return lambda event: driver.hear(ZkEvent(event=event))


def _ignore(_operation: Operation, _result: Result) -> None:
    """The default: nobody looks on."""


def ask_by(
    driver: ZkDriver, client: ZkClient, note: Callable[[Operation, Result], None] = _ignore
) -> None:
    """Have `client` asked what the core asks of ZooKeeper. `note` sees every result before the
    core does.
    """

    def ask(request: ZkRequest) -> None:
        def done(result: Result) -> None:
            note(request.operation, result)
            driver.hear(ZkResult(token=request.token, result=result))

        client.ask(request.operation, session_id=request.session_id, done=done)

    driver.perform_with(ZkRequest, ask)
