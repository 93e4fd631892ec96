"""Where the jobs of a storage run: in a few small pools of threads, by the machine's clock.

Each thread has a queue of its own, and a job goes to the thread that became idle last: one thread
is woken, and mostly the one whose stack is still in the processor's cache. A queue that threads
share wakes a second one for each job, which finds nothing and competes with the driver's thread.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any

from quorum.log.files.jobs import Outcome, Pool

__all__ = ["Threads"]

_THREADS_MAX = {
    Pool.SYNC: 2,
    Pool.REWRITE: 2,
    Pool.BACKGROUND: 3,
    Pool.CLEANING: 1,
    Pool.SNAPSHOT: 1,
}
_LOGGER = logging.getLogger(__name__)


class Threads:
    """The shipped `quorum.log.files.jobs.Workers`."""

    seconds = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self._pools = {pool: _ThreadPool(pool.value, most) for pool, most in _THREADS_MAX.items()}

    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        self._pools[pool].run(_Task(job, done))

    def wait(self) -> None:
        for pool in self._pools.values():
            pool.wait()

    def shut_down(self) -> None:
        """Nothing may be run any more."""
        for pool in self._pools.values():
            pool.shut_down()


@dataclass(frozen=True, slots=True)
class _Returned:
    value: object

    def result(self) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException

    def result(self) -> Any:
        try:
            raise self.error
        finally:
            del self  # the traceback holds this frame, which must not hold the error in turn


@dataclass(frozen=True, slots=True)
class _Task:
    job: Callable[[], object]
    done: Callable[[Outcome], None]

    def run(self) -> None:
        self.done(_outcome(self.job))


def _outcome(job: Callable[[], object]) -> Outcome:
    try:
        return _Returned(job())
    except BaseException as error:  # noqa: BLE001 - `result` raises it
        return _Raised(error)


_Inbox = SimpleQueue[_Task | None]  # of one thread; None ends it


class _ThreadPool:
    """At most `threads_max` threads: one is started when a job finds none idle, and stays.

    They are daemons, for a disk that hangs must not keep a process that wants to end; whoever ends
    it in order calls `shut_down`.
    """

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._threads: list[Thread] = []
        self._idle: list[_Inbox] = []  # the last is the one that became idle last
        self._queued: deque[_Task] = deque()  # empty unless all threads work
        self._is_shut = False
        self._changed = Condition()  # guards all of the above

    def run(self, task: _Task) -> None:
        with self._changed:
            assert not self._is_shut, f"{self._name}: a job after the end"
            if self._idle:
                self._idle.pop().put(task)
            elif len(self._threads) < self._threads_max:
                self._start(task)
            else:
                self._queued.append(task)

    def _start(self, first: _Task) -> None:
        inbox: _Inbox = SimpleQueue()
        inbox.put(first)
        name = f"{self._name}-{len(self._threads)}"
        thread = Thread(target=self._work, args=(inbox,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self, inbox: _Inbox) -> None:
        while (task := inbox.get()) is not None:
            try:
                task.run()
            except Exception:
                # Nobody can be told, if for example the loop is closed; but the pool must end.
                _LOGGER.exception("%s: that a job has ended could not be told", self._name)
            del task  # nothing of the job stays alive while this thread is idle
            self._take_next(inbox)

    def _take_next(self, inbox: _Inbox) -> None:
        with self._changed:
            if self._queued:
                inbox.put(self._queued.popleft())
            else:
                self._idle.append(inbox)
                self._changed.notify_all()

    def _is_quiet(self) -> bool:
        return len(self._idle) == len(self._threads)

    def wait(self) -> None:
        """Until no job runs and none is queued."""
        with self._changed:
            self._changed.wait_for(self._is_quiet)

    def shut_down(self) -> None:
        """End the threads once everything is done."""
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(self._is_quiet)
            for inbox in self._idle:
                inbox.put(None)
        for thread in self._threads:
            thread.join()
