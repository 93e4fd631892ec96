"""Work beside the driver's thread, and what follows from it in the thread that asked for it.

A job blocks; its `finish` does not, and runs when the driver's thread next settles. So everything
but the jobs themselves belongs to one thread, and needs no locks. Where jobs run is up to the
`Workers`: threads (`quorum.log.files.threads`), or the simulator's virtual time.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, Protocol

__all__ = ["Finish", "Jobs", "Outcome", "Pool", "Workers"]


class Pool(Enum):
    """Jobs of one pool wait for each other, if there are many; for those of another, never."""

    SYNC = "sync"  # somebody waits for them; those of the metadata log hold up a whole quorum
    REWRITE = "rewrite"  # of partition logs: a role waits; after an election there may be many
    BACKGROUND = "background"
    SNAPSHOT = "snapshot"  # one after the other: each may take minutes
    CLEANING = "cleaning"  # so may these


class Outcome(Protocol):
    """What has come of a job, as a `Future` that is done has it."""

    def result(self) -> Any:
        """What the job has returned; raises what it has raised."""
        ...


HERE_SECONDS = 0.005  # the other work of the driver's thread waits that long for its jobs

Finish = Callable[[Outcome], None]


class Workers(Protocol):
    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        """Run `job`, then `done` on whatever thread that was."""
        ...

    def wait(self) -> None:
        """Until the jobs that run now are done."""
        ...

    def shut_down(self) -> None: ...

    def seconds(self) -> float:
        """A clock by which jobs are measured."""
        ...

    def sleep(self, seconds: float) -> None:
        """Leave the processor to others; called in jobs."""
        ...


class _Here:
    """The outcome of a job that runs when it is asked for."""

    def __init__(self, job: Callable[[], object]) -> None:
        self.result = job


class Jobs:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._running = 0  # or not settled yet
        self.finished: deque[Callable[[], None]] = deque()
        self._here: deque[Callable[[], None]] = deque()  # for this thread
        self._wake: Callable[[], None] = _nobody

    @property
    def are_running(self) -> bool:
        """Something runs or is to run, or has run and was not settled yet."""
        return bool(self._running or self.finished or self._here)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when there is something to settle."""
        self._wake = wake

    def submit(self, pool: Pool, job: Callable[[], object], finish: Finish) -> None:
        """Have `job` run in `pool`, then `finish` when its outcome is settled."""
        self._running += 1

        def done(outcome: Outcome) -> None:
            self.finished.append(partial(self._finish, finish, outcome))
            self._wake()

        self._workers.run(pool, job, done)

    def submit_here(self, job: Callable[[], object], finish: Finish) -> None:
        """Have a short `job`, then `finish`, run in this thread by `run_here`.

        A job in another thread takes turns with this one at each of its calls to the system. If it
        makes a dozen of them, and this thread is busy, that takes a hundred times as long.
        """
        self._here.append(partial(finish, _Here(job)))
        self._wake()

    def run_here(self) -> None:
        """Run some of the jobs for this thread; if there are more, it is woken again."""
        began = self._workers.seconds()
        while self._here and self._workers.seconds() - began < HERE_SECONDS:
            self._here.popleft()()
        if self._here:
            self._wake()

    def _finish(self, finish: Finish, outcome: Outcome) -> None:
        self._running -= 1
        finish(outcome)

    def settle(self) -> None:
        while self.finished:
            self.finished.popleft()()

    def wait(self) -> None:
        """Until everything that runs now is done; it is not settled by that."""
        self._workers.wait()

    def shut_down(self) -> None:
        self._workers.shut_down()


def _nobody() -> None:
    """Who has not been asked to be woken looks by itself."""
