"""Seeds on several processors: worker processes that are gone as soon as their work is not wanted.

A worker that dies takes with it what all of them had under way. That is done again, in a process
that tells the result of each item as soon as it has it: so it is known at which of them it died.

Decides nothing about what is run; `jepsen_like.sim.runs.sweep` does.
"""

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeVar

from jepsen_like.python_children import python_variables, with_variables
from jepsen_like.sim.time.ending import ERROR, Ending

__all__ = ["Died", "Lost", "apart", "died", "mapped", "workers"]

Item = TypeVar("Item")
Result = TypeVar("Result")
_AHEAD = 4  # items that are given out for each process


@dataclass(frozen=True, slots=True)
class Died:
    """In place of a result: the process that was to find it ended."""

    how: str


def died(process: Died) -> Ending:
    return Ending(kind=ERROR, rule="died", detail=f"the process of the run: {process.how}")


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of a result: some worker died, of this item or of another."""


def mapped(
    work: Callable[[Item], Result], items: Iterable[Item], processes: int
) -> Generator[tuple[Item, Result | Lost], None, None]:
    """In the order of the items, with few of them under way at a time."""
    left = iter(items)
    is_over = False
    while not is_over:
        with workers(processes) as pool:
            waiting: deque[tuple[Item, Future[Result] | Lost]] = deque()
            is_broken = False
            while not is_broken:
                while len(waiting) < _AHEAD * processes and not (is_over or is_broken):
                    is_over, is_broken = _give_out(pool, work, left, waiting)
                if not waiting:
                    break
                item, future = waiting.popleft()
                result = _result_of(future)
                is_broken = is_broken or isinstance(result, Lost)
                yield item, result
            for item, future in waiting:
                late = _result_of(future)
                yield item, late


def _give_out(
    pool: ProcessPoolExecutor,
    work: Callable[[Item], Result],
    left: Iterator[Item],
    waiting: deque[tuple[Item, Future[Result] | Lost]],
) -> tuple[bool, bool]:
    """One item. Was it the last, and is the pool broken?"""
    for item in left:
        try:
            waiting.append((item, pool.submit(work, item)))
        except BrokenProcessPool:
            waiting.append((item, Lost()))
            return False, True
        return False, False
    return True, False


def _result_of(future: Future[Result] | Lost) -> Result | Lost:
    if isinstance(future, Lost):
        return future
    try:
        return future.result()
    except BrokenProcessPool:
        return Lost()


def apart(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | Died]:
    """One after the other in a process of their own, and in another one after it has died."""
    left = deque(items)
    while left:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=_tell_each, args=(work, tuple(left), sender))
        with with_variables(python_variables()):
            process.start()
        sender.close()
        try:
            with suppress(EOFError, OSError):  # the latter if it ends within a result
                while left:
                    result = receiver.recv()
                    left.popleft()
                    yield result
            process.join()
        finally:
            process.terminate()  # which is nothing to a process that has ended
            receiver.close()
        if left:
            left.popleft()
            yield Died(how=_how(process.exitcode))


def _tell_each(work: Callable[[Item], Result], items: tuple[Item, ...], sender: Connection) -> None:
    _begin()
    for item in items:
        sender.send(work(item))


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


@contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """What is under way is waited for, unless an exception leaves: then it is ended."""
    pool = ProcessPoolExecutor(count, initializer=_begin)
    try:
        with with_variables(python_variables()):  # for start methods that begin a new Python
            yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """A worker has its modules for ever: the garbage collector need not look at them again."""
    gc.freeze()
    _leave_signals_to_the_parent()


def _leave_signals_to_the_parent() -> None:
    """A terminal's Ctrl-C reaches everybody, and one traceback a worker would be told of it.

    What the parent does on SIGTERM was inherited with the rest of it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
