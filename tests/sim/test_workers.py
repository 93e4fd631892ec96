"""Worker processes end with their work."""

import multiprocessing
import os
import signal

import pytest

from jepsen_like.sim.workers import workers


def test_interrupt_ends_what_is_under_way() -> None:
    with pytest.raises(KeyboardInterrupt):
        begin_and_interrupt()
    assert multiprocessing.active_children() == []


def begin_and_interrupt() -> None:
    with workers(2) as pool:
        for _ in range(5):
            pool.submit(signal.pause)
        assert multiprocessing.active_children()
        raise KeyboardInterrupt


def test_workers_leave_ctrl_c_to_their_parent() -> None:
    with workers(1) as pool:
        (process,) = {pool.submit(os.getpid).result()}
        os.kill(process, signal.SIGINT)
        assert pool.submit(os.getpid).result() == process
