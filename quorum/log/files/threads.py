"""Where the jobs of a storage run: in a few small pools of threads, by the machine's clock.

Each thread has a queue of its own, and a job goes to the one that rested last: a job wakes one
thread, and mostly the one whose stack is still in the processor's cache. Threads that share a queue
are all woken, look for the one job, and stand in the way of the driver's.
"""

import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any

from quorum.log.files.jobs import Outcome, Pool

__all__ = ["Threads"]

_THREADS = {Pool.SYNC: 2, Pool.REWRITE: 2, Pool.BACKGROUND: 3, Pool.SNAPSHOT: 1}

_Task = tuple[Callable[[], object], Callable[[Outcome], None]]


class Threads:
    """The shipped `quorum.log.files.jobs.Workers`."""

    seconds = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self._pools = {pool: _Threads(pool.value, most) for pool, most in _THREADS.items()}

    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        self._pools[pool].run((job, done))

    def wait(self) -> None:
        for pool in self._pools.values():
            pool.wait()

    def shut_down(self) -> None:
        for pool in self._pools.values():
            pool.shut_down()


class _Ended:
    """The outcome of a job."""

    __slots__ = ("_error", "_value")

    def __init__(self, job: Callable[[], object]) -> None:
        self._error: BaseException | None = None
        try:
            self._value = job()
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


class _Threads:
    """One pool. Threads are started when they are needed, and stay."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._threads: list[Thread] = []
        self._lock = Lock()
        self._resting: list[SimpleQueue[_Task | None]] = []  # the last to rest is the next to work
        self._waiting: deque[_Task] = deque()  # while all work
        self._all_rest = Condition(self._lock)

    def run(self, task: _Task) -> None:
        with self._lock:
            if self._resting:
                self._resting.pop().put(task)
            elif len(self._threads) < self._most:
                self._start().put(task)
            else:
                self._waiting.append(task)

    def _start(self) -> SimpleQueue[_Task | None]:
        inbox: SimpleQueue[_Task | None] = SimpleQueue()
        name = f"{self._name}-{len(self._threads)}"
        thread = Thread(target=self._work, args=(inbox,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return inbox

    def _work(self, inbox: SimpleQueue[_Task | None]) -> None:
        task = inbox.get()
        while task is not None:
            job, done = task
            done(_Ended(job))
            del task, job, done  # nothing stays alive while this thread rests
            task = self._next(inbox)

    def _next(self, inbox: SimpleQueue[_Task | None]) -> _Task | None:
        """The next job of this thread; None: there will be none."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._resting.append(inbox)
            if len(self._resting) == len(self._threads):
                self._all_rest.notify_all()
        return inbox.get()

    def wait(self) -> None:
        """Until nothing runs and nothing waits."""
        with self._all_rest:
            self._all_rest.wait_for(lambda: len(self._resting) == len(self._threads))

    def shut_down(self) -> None:
        self.wait()
        for inbox in self._resting:
            inbox.put(None)
        for thread in self._threads:
            thread.join()
