"""Work in threads, and what follows from it in the thread that asked for it.

A job blocks; its `finish` does not, and runs when the driver's thread next settles. So everything
but the jobs themselves belongs to one thread, and needs no locks.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Protocol

from quorum.core.storage import StorageError

__all__ = ["Finish", "Jobs", "Outcome"]


class Outcome(Protocol):
    """What has come of a job, as a `Future` that is done has it."""

    def result(self) -> Any:
        """What the job has returned; raises what it has raised."""
        ...


Finish = Callable[[Outcome], None]


class _Done:
    __slots__ = ("_error", "_value")

    def __init__(self, value: object, error: StorageError | None = None) -> None:
        self._value, self._error = value, error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


class Jobs:
    def __init__(self) -> None:
        self._pools: list[ThreadPoolExecutor] = []
        self._running: set[Future[Any]] = set()
        self.finished: deque[Callable[[], None]] = deque()
        self._wake: Callable[[], None] = _nobody

    @property
    def are_running(self) -> bool:
        """Something runs, or has run and was not settled yet."""
        return bool(self._running or self.finished)

    def pool(self, name: str, threads: int) -> ThreadPoolExecutor:
        pool = ThreadPoolExecutor(threads, name)
        self._pools.append(pool)
        return pool

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when there is something to settle."""
        self._wake = wake

    def submit(self, pool: ThreadPoolExecutor, job: Callable[[], object], finish: Finish) -> None:
        """Run `job` in a thread of `pool`, then `finish` when its outcome is settled."""
        future: Future[Any] = pool.submit(job)
        self._running.add(future)

        def settle() -> None:
            self._running.discard(future)
            finish(future)

        def done(_: Future[Any]) -> None:
            self.finished.append(settle)
            self._wake()

        future.add_done_callback(done)

    def at_once(self, job: Callable[[], object], finish: Finish) -> None:
        """Run `job` here, to be settled like the others."""
        try:
            outcome = _Done(job())
        except StorageError as error:
            outcome = _Done(None, error)
        self.finished.append(partial(finish, outcome))

    def settle(self) -> None:
        while self.finished:
            self.finished.popleft()()

    def wait(self) -> None:
        """Until everything that runs now is done; it is not settled by that."""
        wait(tuple(self._running))

    def shut_down(self) -> None:
        for pool in self._pools:
            pool.shutdown()


def _nobody() -> None:
    """Who has not been asked to be woken looks by itself."""
