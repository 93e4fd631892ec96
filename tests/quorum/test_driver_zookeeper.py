"""What a core asks of ZooKeeper through the driver, and what it hears."""

import errno
from collections.abc import Callable
from pathlib import Path

from quorum.core.effects import Event, Stop, Token
from quorum.core.storage import METADATA_LOG
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from quorum.node.driver import Driver
from quorum.zookeeper.zk_effects import ZkEvent, ZkRequest, ZkResult, ask_by
from tests.quorum.log_files import FailingSystem
from tests.quorum.test_driver import ToyCore, append, make_driver, run
from wire.primitives import METADATA_TOPIC_ID
from wire.zk.session import (
    Create,
    Created,
    Error,
    Failed,
    Operation,
    Result,
    SessionChanged,
    SessionState,
)

TOKEN = Token("toy", 1)
REQUEST = ZkRequest(token=TOKEN, session_id=7, operation=Create(path="/n"))
CONNECTED = SessionChanged(state=SessionState.CONNECTED, session_id=7, timeout_ms=1000)


class ToyClient:
    """Creates whatever is asked of it, in the session that it says it has."""

    def __init__(self, driver: Driver) -> None:
        self.asked: list[tuple[Operation, int]] = []
        self._driver = driver

    def ask(self, operation: Operation, *, session_id: int, done: Callable[[Result], None]) -> None:
        self.asked.append((operation, session_id))
        self._driver.call(lambda _now_ms: done(Created(path="/n")))


def stop_when(core: ToyCore, kind: type[Event]) -> None:
    def see(event: Event, _now_ms: int) -> None:
        if isinstance(event, kind):
            core.effects.append(Stop(reason="seen", exit_code=0))

    core.on_event = see


def test_request_is_answered_with_its_token_after_the_event_before_it(tmp_path: Path) -> None:
    noted: list[tuple[Operation, Result]] = []

    async def work() -> None:
        async with make_driver(tmp_path) as driver:
            client = ToyClient(driver)
            ask_by(driver, client, lambda *told: noted.append(told))
            core = ToyCore()
            core.effects.append(REQUEST)
            stop_when(core, ZkResult)
            driver.hear(ZkEvent(event=CONNECTED))
            await driver.run(core)
        assert noted == [(REQUEST.operation, Created(path="/n"))]
        assert client.asked == [(REQUEST.operation, 7)]
        assert core.events == [
            ZkEvent(event=CONNECTED),
            ZkResult(token=TOKEN, result=Created(path="/n")),
        ]

    run(work())


def test_nothing_is_asked_that_rests_on_a_write_that_failed(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = FileStorage(str(tmp_path), disk=Disk(system=system))
    storage.load(METADATA_LOG, METADATA_TOPIC_ID)
    driver = Driver(storage, listeners=[], client_id="toy")
    client = ToyClient(driver)
    ask_by(driver, client)
    core = ToyCore()
    core.effects += [append(0), REQUEST]
    stop_when(core, ZkResult)

    async def work() -> None:
        async with driver:
            system.fail("pwrite", errno.ENOSPC)
            await driver.run(core)

    run(work())
    assert client.asked == []
    lost = ZkResult(token=TOKEN, result=Failed(error=Error.CONNECTION_LOSS))
    assert lost in core.events
