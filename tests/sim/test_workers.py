"""Worker processes end with their work."""

import multiprocessing
import os
import signal
import struct
from multiprocessing.connection import Connection

import pytest

from jepsen_like.sim.runs.workers import Died, apart, workers


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


def test_a_worker_that_ends_within_its_result_is_only_that_ones_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jepsen_like.sim.runs.workers._tell_each", tell_half)
    assert list(apart(abs, [1, 2])) == [Died(how="exit code 3")] * 2


def tell_half(_work: object, _items: object, sender: Connection) -> None:
    os.write(sender.fileno(), struct.pack(">i", 100) + b"half")
    os._exit(3)
