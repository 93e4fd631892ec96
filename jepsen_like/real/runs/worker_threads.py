"""The threads of a run: one for each process of the workload, and one for the nemesis.

A worker asks the workload what to do, does it, and tells how it ended. A client whose operation
ended as `info` is dropped: what it sent may still be on its way. Its thread goes on with another
one, under a process number that was never used.

The history is written while the run goes on. An invocation is written before its request leaves,
and a completion after its answer came, each in its turn: so the order of lines is an order of
events, and what a checker concludes from it is true.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Self

from jepsen_like.faults.nemesis import Nemesis
from jepsen_like.histories.history import Header, Kind, Op, encode_header, encode_op
from jepsen_like.real.clients.client_choice import OpenClient
from jepsen_like.workloads.workload import (
    Client,
    Wish,
    Workload,
    completion,
    invocation,
    is_to_be_repeated,
)

__all__ = ["NemesisThread", "Recording", "Workers"]

_NOTHING_TO_DO_SECONDS = 0.005
_LOOK_SECONDS = 0.05


class Recording:
    """Any thread may write; listeners get every op in the order of the history."""

    def __init__(self, path: Path, header: Header) -> None:
        self._file = path.open("wb")
        self._file.write(encode_header(header))
        self._file.flush()
        self._lock = threading.Lock()
        self._began_ns = time.monotonic_ns()
        self._next_index = 0
        self.counts: Counter[Kind] = Counter()  # of clients
        self.listeners: list[Callable[[Op], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._file.close()

    def now_ms(self) -> int:
        """The time of the run's clock, which begins with the history."""
        return (time.monotonic_ns() - self._began_ns) // 1_000_000

    def enter(self, op: Op) -> Op:
        with self._lock:
            now_ns = time.monotonic_ns() - self._began_ns
            written = replace(op, index=self._next_index, time_ns=now_ns)
            self._next_index += 1
            self._file.write(encode_op(written))
            self._file.flush()
            if isinstance(written.process, int):
                self.counts[written.kind] += 1
            for listener in self.listeners:
                listener(written)
            return written


class Workers:
    def __init__(self, workload: Workload, open_client: OpenClient, recording: Recording) -> None:
        self._workload = workload
        self._open_client = open_client
        self._recording = recording
        self._lock = threading.Lock()  # a workload is not made for threads
        self._stop = threading.Event()
        self._given_up = threading.Event()
        self._next_process = workload.processes  # above those that begin
        self._threads = ThreadPoolExecutor(workload.processes, thread_name_prefix="process")
        self._running: list[Future[None]] = []

    def start(self) -> None:
        for process in range(self._workload.processes):
            self._running.append(self._threads.submit(self._work, process))

    def check(self) -> None:
        """Raises what a client raised: a mistake of ours, after which nothing can be trusted."""
        for future in self._running:
            if future.done():
                future.result()

    def ask_to_stop(self) -> None:
        self._stop.set()
        self._given_up.set()

    def stop(self) -> None:
        """Let every process finish what it does."""
        self._stop.set()
        for future in self._running:
            future.result()

    def final(self, seconds: float, is_interrupted: Callable[[], bool]) -> bool:
        """The final wishes, by fresh processes. False if they were not all done in time."""
        deadline = time.monotonic() + seconds
        futures = []
        for slot in range(self._workload.processes):
            process = self._fresh(slot)
            wishes = self._workload.final(process)
            if wishes:
                futures.append(self._threads.submit(self._finish, process, wishes, deadline))
        while not all(future.done() for future in futures):
            if is_interrupted():
                self._given_up.set()
            time.sleep(_LOOK_SECONDS)
        return all(future.result() for future in futures)

    def close(self) -> None:
        self.ask_to_stop()
        self._threads.shutdown(cancel_futures=True)

    def _work(self, process: int) -> None:
        while not self._stop.is_set():
            with closing(self._open_client()) as client:
                self._until_in_doubt(client, process)
            process = self._fresh(process)

    def _until_in_doubt(self, client: Client, process: int) -> None:
        """Work until an operation ends as `info`: then another process takes over."""
        while not self._stop.is_set():
            with self._lock:
                wish = self._workload.next(process, self._recording.now_ms())
            if wish is None:
                self._stop.wait(_NOTHING_TO_DO_SECONDS)
            elif self._perform(client, process, wish).kind is Kind.INFO:
                return

    def _finish(self, process: int, wishes: Sequence[Wish], deadline: float) -> bool:
        with closing(self._open_client()) as client:
            for wish in wishes:
                while True:
                    ended = self._perform(client, process, wish)
                    if ended.kind is Kind.OK and not is_to_be_repeated(wish, ended):
                        break
                    late = time.monotonic() > deadline or self._given_up.is_set()
                    if late or ended.kind is Kind.INFO:
                        return False
        return True

    def _perform(self, client: Client, process: int, wish: Wish) -> Op:
        self._recording.enter(invocation(process, wish))
        ended = self._recording.enter(completion(process, wish, client.invoke(wish)))
        with self._lock:
            self._workload.completed(ended)
        return ended

    def _fresh(self, process: int) -> int:
        """A number that nobody has had, of the same slot."""
        with self._lock:
            slot = process % self._workload.processes
            while self._next_process % self._workload.processes != slot:
                self._next_process += 1
            self._next_process += 1
            return self._next_process - 1


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
