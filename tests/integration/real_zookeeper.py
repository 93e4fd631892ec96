"""A real ZooKeeper for tests, and clients of it on a loop of their own."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.zookeeper import ZooKeeper
from wire.zk.kazoo_session import KazooSession
from wire.zk.session import (
    GetData,
    Operation,
    Result,
    Session,
    SessionChanged,
    SessionEvent,
    SessionState,
)

__all__ = ["KazooClients", "paused", "started"]

_SECONDS = 15.0


@contextmanager
def started(directory: Path, count: int = 1) -> Iterator[ZooKeeper]:
    zookeeper = ZooKeeper.create(directory, count=count, ports=free_ports())
    try:
        zookeeper.start_all()
        zookeeper.wait_ready()
        yield zookeeper
    finally:
        zookeeper.stop_all()


@contextmanager
def paused(zookeeper: ZooKeeper, server_id: int) -> Iterator[None]:
    """The server holds its connections and says nothing."""
    server = zookeeper.server(server_id)
    process = zookeeper.process(server)
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    while zookeeper.ask(server, "ruok"):  # threads stop one by one
        time.sleep(0.02)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


class KazooClients:
    """By name; each keeps what it was told, results and events, in its order."""

    def __init__(self, runner: asyncio.Runner, connect: str, *, timeout_ms: int = 1000) -> None:
        self._runner = runner
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._sessions: dict[str, KazooSession] = {}
        self._news = runner.run(self._event())
        self.told: dict[str, list[Result | SessionEvent]] = {}
        self.session: dict[str, Session] = {}

    async def _event(self) -> asyncio.Event:
        return asyncio.Event()

    def open(self, name: str) -> None:
        """Connected when this returns."""
        told: list[Result | SessionEvent] = []
        session = Session()
        self.told[name], self.session[name] = told, session

        def hear(event: SessionEvent) -> None:
            told.append(event)
            if isinstance(event, SessionChanged):
                session.become(event, 0)
            self._news.set()

        client = KazooSession(self._connect, timeout_ms=self._timeout_ms, hear=hear)
        self._sessions[name] = client

        async def start() -> None:
            client.start()

        self._runner.run(start())
        self.wait_for(name, SessionState.CONNECTING, SessionState.CONNECTED)

    def states(self, name: str) -> list[SessionState]:
        return [each.state for each in self.told[name] if isinstance(each, SessionChanged)]

    def wait_for(self, name: str, *states: SessionState) -> None:
        """Until exactly these have been told."""

        async def wait() -> None:
            async with asyncio.timeout(_SECONDS):
                while len(self.states(name)) < len(states):
                    self._news.clear()
                    await self._news.wait()

        self._runner.run(wait())
        assert self.states(name) == list(states)

    def comes_to(self, name: str, *states: SessionState, within_seconds: float = _SECONDS) -> bool:
        """Are these the last that are told, at some time before that?"""

        async def wait() -> bool:
            try:
                async with asyncio.timeout(within_seconds):
                    while self.states(name)[-len(states) :] != list(states):
                        self._news.clear()
                        await self._news.wait()
            except TimeoutError:
                return False
            return True

        return self._runner.run(wait())

    def kazoo(self, name: str) -> KazooClient:
        """What is underneath."""
        return self._sessions[name]._client

    def close(self, name: str) -> None:
        self._runner.run(self._sessions.pop(name).close())

    def close_all(self) -> None:
        for name in list(self._sessions):
            self.close(name)

    def ask(self, name: str, *operations: Operation, session_id: int | None = None) -> list[Result]:
        """Sent without waiting for each other; returns all answers."""
        answers: list[Result] = []
        told = self.told[name]
        meant_for = self.session[name].id if session_id is None else session_id

        def done(result: Result) -> None:
            answers.append(result)
            told.append(result)
            self._news.set()

        async def run() -> None:
            for operation in operations:
                self._sessions[name].ask(operation, session_id=meant_for, done=done)
            async with asyncio.timeout(_SECONDS):
                while len(answers) < len(operations):
                    self._news.clear()
                    await self._news.wait()

        self._runner.run(run())
        return answers

    def settle(self, name: str) -> None:
        """Every event of what was done by now has come: a read's answer comes after it."""
        self.ask(name, GetData(path="/"))
        self.told[name].pop()
