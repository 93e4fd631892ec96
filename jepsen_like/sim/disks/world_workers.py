"""The jobs of the shipped storage on virtual time: threads without threads.

A job does its work at one instant, when it is asked for or when it is due; who asked is told when
it is due. So what the driver's thread does meanwhile comes before it or after it. If the process
ends first, each job that has not worked gets as far as chance has it (`die`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from jepsen_like.sim.disks.virtual_files import Died, VirtualFiles
from jepsen_like.sim.time.virtual_time import VirtualTime
from quorum.core.storage import StorageError
from quorum.log.files.jobs import Outcome, Pool

__all__ = ["Done", "QueuedWorkers", "WorldWorkers"]

_AT_ONCE = 0.25  # the share of jobs that work when they are asked for
_CALLS_MAX = 12  # of a job that does not come to its end: most have fewer


class Done:
    """The outcome of a job that is run here and now."""

    __slots__ = ("_error", "_value")

    def __init__(self, job: Callable[[], object]) -> None:
        self._error: StorageError | None = None
        try:
            self._value = job()
        except StorageError as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


@dataclass(slots=True, eq=False)
class _Task:
    job: Callable[[], object]
    done: Callable[[Outcome], None]
    outcome: Done | None = None

    def work(self) -> Done:
        if self.outcome is None:
            self.outcome = Done(self.job)
        return self.outcome


class QueuedWorkers:
    """Jobs that are done when somebody waits for them, outside of all time: for who looks on."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        self._waiting.append(lambda: done(Done(job)))

    def wait(self) -> None:
        while self._waiting:
            self._waiting.pop(0)()

    def shut_down(self) -> None:
        """There are no threads."""

    def seconds(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        """It is over at once."""


class WorldWorkers:
    """The `quorum.log.files.jobs.Workers` of one process."""

    def __init__(
        self,
        *,
        world: VirtualTime,
        random: Random,
        files: VirtualFiles,
        delay_us: Callable[[Pool], int],
    ) -> None:
        self.busy_until_us = 0
        self._world = world
        self._random = random
        self._files = files
        self._delay_us = delay_us
        self._tasks: list[_Task] = []  # of which nobody has been told

    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        task = _Task(job, done)
        if self._random.random() < _AT_ONCE:
            task.work()
        self._tasks.append(task)
        due_us = self._world.now_us + self._delay_us(pool)
        self.busy_until_us = max(self.busy_until_us, due_us)
        self._world.at(due_us, lambda: self._due(task))

    def _due(self, task: _Task) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
            task.done(task.work())

    def wait(self) -> None:
        for task in tuple(self._tasks):
            self._due(task)

    def die(self) -> None:
        """The process ends; nobody will be told."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            calls = self._random.choice((0, self._random.randrange(_CALLS_MAX), None))
            self._files.die_after(calls)
            with suppress(Died):
                task.work()
        self._files.die_after(None)

    def shut_down(self) -> None:
        """There are no threads."""

    def seconds(self) -> float:
        return self._files.seconds

    def sleep(self, seconds: float) -> None:
        """A job is over at the instant at which it works."""
