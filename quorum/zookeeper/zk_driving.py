"""How a driver asks ZooKeeper what its core wants asked, and hears what comes of it."""

from collections.abc import Callable
from typing import Protocol

from quorum.core.effects import Effect, Event
from quorum.zookeeper.zk_effects import ZkEvent, ZkRequest, ZkResult
from wire.zk.session import Result, SessionEvent, ZkClient

__all__ = ["ZkDriver", "ask_by", "session_hearer"]


class ZkDriver(Protocol):
    def hear(self, event: Event) -> None: ...

    def perform_with(self, kind: type[Effect], perform: Callable[[ZkRequest], None]) -> None: ...


def session_hearer(driver: ZkDriver) -> Callable[[SessionEvent], None]:
    """What a client is to call with the news of its session."""
    return lambda event: driver.hear(ZkEvent(event=event))


def ask_by(driver: ZkDriver, client: ZkClient) -> None:
    """Have `client` asked what the core asks of ZooKeeper."""

    def ask(request: ZkRequest) -> None:
        def done(result: Result) -> None:
            driver.hear(ZkResult(token=request.token, result=result))

        client.ask(request.operation, session_id=request.session_id, done=done)

    driver.perform_with(ZkRequest, ask)
