"""Seeds on several processors: worker processes that are gone as soon as their work is not wanted.

Decides nothing about what is run; `jepsen_like.sim.sweep` does.
"""

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from jepsen_like.python_children import python_variables, with_variables

__all__ = ["workers"]


@contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """What is under way is waited for, unless an exception leaves: then it is ended."""
    pool = ProcessPoolExecutor(count, initializer=_leave_signals_to_the_parent)
    try:
        with with_variables(python_variables()):  # for start methods that begin a new Python
            yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_signals_to_the_parent() -> None:
    """A terminal's Ctrl-C reaches everybody, and one traceback a worker would be told of it.

    What the parent does on SIGTERM was inherited with the rest of it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
