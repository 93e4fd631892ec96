"""Where the jobs of a storage run: in a few small pools of threads, by the machine's clock."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from quorum.log.files.jobs import Outcome, Pool

__all__ = ["Threads"]

_THREADS = {Pool.SYNC: 2, Pool.REWRITE: 2, Pool.BACKGROUND: 3, Pool.SNAPSHOT: 1}


class Threads:
    """The shipped `quorum.log.files.jobs.Workers`."""

    seconds = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self._pools = {
            pool: ThreadPoolExecutor(threads, pool.value) for pool, threads in _THREADS.items()
        }
        self._running: set[Future[Any]] = set()

    def run(self, pool: Pool, job: Callable[[], object], done: Callable[[Outcome], None]) -> None:
        future: Future[Any] = self._pools[pool].submit(job)
        self._running.add(future)

        def has_ended(_: Future[Any]) -> None:
            self._running.discard(future)
            done(future)

        future.add_done_callback(has_ended)

    def wait(self) -> None:
        wait(tuple(self._running))

    def shut_down(self) -> None:
        for pool in self._pools.values():
            pool.shutdown()
