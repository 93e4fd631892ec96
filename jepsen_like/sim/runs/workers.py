"""Seeds on several processors: worker processes that are gone as soon as their work is not wanted.

Each worker has its share of the items, one after the other, and tells the result of each as soon as
it has it. So it is known at which of them it died, and another one goes on behind that.

Decides nothing about what is run; `jepsen_like.sim.runs.sweep` does.
"""

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from jepsen_like.python_children import python_variables, with_variables
from jepsen_like.sim.time.ending import ERROR, Ending

__all__ = ["Died", "mapped"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Died:
    """In place of a result: the process that was to find it ended."""

    how: str

    @property
    def ending(self) -> Ending:
        return Ending(kind=ERROR, rule="died", detail=f"the process of the run: {self.how}")


def mapped(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int
) -> Generator[tuple[Item, Result | Died], None, None]:
    """In the order of the items. `work` is a function of some module."""
    workers: list[_Worker[Item, Result]] = []
    try:
        shares = (items[first::processes] for first in range(min(processes, len(items))))
        workers.extend(_Worker(work, share) for share in shares)
        for place, item in enumerate(items):
            yield item, workers[place % processes].next()
    finally:
        for worker in workers:
            worker.end()


class _Worker(Generic[Item, Result]):
    def __init__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> None:
        self._work = work
        self._left = deque(items)
        self._begin()

    def _begin(self) -> None:
        self._receiver, sender = multiprocessing.Pipe(duplex=False)
        self._process = multiprocessing.Process(
            target=_tell_each, args=(self._work, tuple(self._left), sender)
        )
        with with_variables(python_variables()):  # for start methods that begin a new Python
            self._process.start()
        sender.close()

    def next(self) -> Result | Died:
        self._left.popleft()
        try:
            result: Result = self._receiver.recv()
        except (EOFError, OSError):  # the latter if it ends within a result
            self._process.join()
            died = Died(how=_how(self._process.exitcode))
            self.end()
            if self._left:
                self._begin()
            return died
        return result

    def end(self) -> None:
        self._process.terminate()  # which is nothing to a process that has ended
        self._process.join()
        self._receiver.close()


def _tell_each(work: Callable[[Item], Result], items: tuple[Item, ...], sender: Connection) -> None:
    _leave_signals_to_the_parent()
    gc.freeze()  # the modules are here for ever
    for item in items:
        sender.send(work(item))


def _leave_signals_to_the_parent() -> None:
    """A terminal's Ctrl-C reaches everybody, and one traceback a worker would be told of it.

    What the parent does on SIGTERM was inherited with the rest of it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"
