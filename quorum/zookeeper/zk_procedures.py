"""Procedures: what is done in ZooKeeper step by step, written as it is read.

A procedure is a generator. It yields the operations that it wants done, and gets their results when
all of them are there: one operation at a time is a synchronous call, several are pipelined. So the
documents' numbered steps stay steps in the code, and what a procedure waits for is where it stands.

`Procedures` runs them one after another, each to its end: the single thread, or the lock, of the
documents. What has not begun yet is held back at most once under one name: a procedure reads what
there is when it runs, so that a second one in the queue would find nothing new.

When the session fails, what is under way cannot go on as if nothing had happened:

- `resumes` (ZkClient's manner, seed 001 "ZkClient obstructs client state management"): what failed
  is asked again as soon as there is a session, this one or the next, and the procedure goes on with
  what it knew before. That is how a deposed controller comes to write (KAFKA-3083).
- otherwise: a procedure is begun anew when the same session is back; when it has expired, that one
  and all that wait are dropped.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from quorum.core.effects import Event
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from wire.zk.session import (
    Exists,
    Failed,
    GetChildren,
    GetData,
    Operation,
    Result,
    Session,
    SessionState,
    Unwatch,
)

__all__ = ["Procedure", "Procedures", "Start", "all_at_once", "one", "one_by_one"]

_T = TypeVar("_T")
Procedure = Generator[tuple[Operation, ...], tuple[Result, ...], _T]
Start = Callable[[], Procedure[None]]
_WAITING_MAX = 10_000


def one(operation: Operation) -> Procedure[Result]:
    (result,) = yield (operation,)
    return result


def one_by_one(operations: Iterable[Operation]) -> Procedure[list[Result]]:
    """Each operation is asked after the answer to the one before it."""
    results: list[Result] = []
    for operation in operations:
        results += yield (operation,)
    return results


def all_at_once(operations: Iterable[Operation]) -> Procedure[list[Result]]:
    """All operations are in flight together."""
    asked = tuple(operations)
    return list((yield asked)) if asked else []


@dataclass(slots=True, eq=False)
class _Running:
    name: str
    start: Start
    steps: Procedure[None]
    asked: tuple[Operation, ...] = ()
    results: list[Result | None] = field(default_factory=list)
    missing: int = 0


class Procedures:
    """Runs procedures of one owner in one session after another."""

    def __init__(self, outbox: Outbox, session: Session, *, resumes: bool = False) -> None:
        self._outbox = outbox
        self._session = session
        self._resumes = resumes
        self._waiting: deque[tuple[str, Start]] = deque()
        self._running: _Running | None = None
        self._is_held = False  # what runs was cut off by the session, and waits for it
        self._watching: dict[Unwatch, None] = {}  # how to end each watch that may have been left
        self.now_ms = 0  # when the last answer came

    def __len__(self) -> int:
        return len(self._waiting) + (self._running is not None)

    def submit(self, name: str, start: Start) -> bool:
        """Run it after those before it; False if there are too many."""
        if all(waiting != name for waiting, _ in self._waiting):
            if len(self._waiting) >= _WAITING_MAX:
                return False
            self._waiting.append((name, start))
        self._advance()
        return True

    def clear(self) -> None:
        """Drop all of it; what is in flight may be carried out, and nobody will hear of it."""
        self._waiting.clear()
        running, self._running = self._running, None
        self._is_held = False
        if running is not None:
            running.steps.close()

    def drop_waiting(self) -> None:
        """Drop what has not begun."""
        self._waiting.clear()

    def watch_fired(self, path: str) -> None:
        for is_of_children in (False, True):
            self._watching.pop(Unwatch(path=path, is_of_children=is_of_children), None)

    def unwatch(self, *, but: str) -> Procedure[None]:
        """End all watches that procedures have left in this session, except that of `but`."""
        ended = [each for each in self._watching if each.path != but]
        yield from all_at_once(ended)
        for each in ended:
            self._watching.pop(each, None)

    def session_changed(self) -> None:
        """The session has become what it is now."""
        if self._session.state is SessionState.CLOSED:
            self._watching.clear()
        match self._session.state:
            case SessionState.CONNECTED:
                self._continue()
            case SessionState.CLOSED if not self._resumes:
                self.clear()
            case _:
                pass

    # --- running ----------------------------------------------------------------------------

    def _advance(self) -> None:
        while self._running is None and self._waiting and self._session.is_connected:
            name, start = self._waiting.popleft()
            self._begin(name, start)

    def _begin(self, name: str, start: Start) -> None:
        self._running = _Running(name, start, start())
        self._step(None)

    def _step(self, results: tuple[Result, ...] | None) -> None:
        """Give the procedure its results, and ask what it wants next."""
        running = self._running
        assert running is not None
        try:
            asked = next(running.steps) if results is None else running.steps.send(results)
        except StopIteration:
            if self._running is running:
                self._running = None
            return
        if self._running is running:  # it may have had everything cleared
            assert asked, f"{running.name} waits for nothing"
            self._ask(running, asked)

    def _ask(self, running: _Running, asked: tuple[Operation, ...]) -> None:
        running.asked = asked
        running.results = [None] * len(asked)
        running.missing = len(asked)
        for place in range(len(asked)):
            self._send(running, place)

    def _send(self, running: _Running, place: int) -> None:
        operation = running.asked[place]
        if isinstance(operation, GetData | Exists | GetChildren) and operation.watch:
            is_of_children = isinstance(operation, GetChildren)
            self._watching[Unwatch(path=operation.path, is_of_children=is_of_children)] = None
        token = self._outbox.expect(partial(self._answered, running, place))
        self._outbox.emit(ZkRequest(token=token, session_id=self._session.id, operation=operation))

    def _answered(self, running: _Running, place: int, event: Event, now_ms: int) -> None:
        self.now_ms = now_ms
        if running is not self._running:
            return
        assert isinstance(event, ZkResult), event
        running.results[place] = event.result
        running.missing -= 1
        if running.missing:
            return
        results = tuple(result for result in running.results if result is not None)
        if any(isinstance(result, Failed) and result.is_of_session for result in results):
            self._is_held = True
            if self._session.is_connected:
                self._continue()
            return
        self._step(results)
        self._advance()

    def _continue(self) -> None:
        running = self._running
        if running is None:
            self._advance()
        elif self._is_held and self._resumes:
            self._is_held = False
            failed = [
                place
                for place, result in enumerate(running.results)
                if isinstance(result, Failed) and result.is_of_session
            ]
            running.missing = len(failed)
            for place in failed:
                self._send(running, place)
        elif self._is_held:
            self._is_held = False
            running.steps.close()
            self._begin(running.name, running.start)
            self._advance()
