"""Plays faults on real processes: a thread that waits until the next one is due."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from jepsen_like.faults.nemesis import Nemesis

__all__ = ["NemesisThread"]


class NemesisThread:
    def __init__(self, nemesis: Nemesis) -> None:
        self._nemesis = nemesis
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="nemesis")
        self._playing: Future[None] | None = None

    def start(self) -> None:
        self._nemesis.begin()
        self._playing = self._threads.submit(self._run)

    def stop(self) -> None:
        """No further fault, and all that is in force is healed. Raises what went wrong."""
        self._stop.set()
        self._threads.shutdown()
        if self._playing is not None:
            self._playing.result()

    def _run(self) -> None:
        wait_ms: int | None = 0
        try:
            while wait_ms is not None and not self._stop.wait(wait_ms / 1000):
                wait_ms = self._nemesis.play()
        finally:
            self._nemesis.end()
