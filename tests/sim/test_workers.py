"""Worker processes end with their work."""

import multiprocessing
import os
import signal
import struct
from contextlib import closing
from multiprocessing.connection import Connection

import pytest

from jepsen_like.sim.runs.workers import Died, mapped


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(mapped(abs, [-1, -2, -3, -4, -5], 2)) == [(-n, n) for n in range(1, 6)]
    assert list(mapped(abs, [], 2)) == []


def test_what_is_under_way_ends_when_it_is_not_wanted_any_more() -> None:
    with closing(mapped(waits_but_for_one, [0, 1, 2], 3)) as results:
        assert next(results) == (0, 0)
        assert multiprocessing.active_children()
    assert multiprocessing.active_children() == []


def waits_but_for_one(item: int) -> int:
    if item:
        signal.pause()
    return item


def test_workers_leave_ctrl_c_to_their_parent() -> None:
    [(_, outlived)] = mapped(interrupts_itself, [signal.SIGINT], 1)
    assert outlived


def interrupts_itself(number: signal.Signals) -> bool:
    os.kill(os.getpid(), number)
    return True


def test_a_worker_that_ends_within_its_result_is_only_that_ones_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jepsen_like.sim.runs.workers._tell_each", tell_half)
    died = Died(how="exit code 3")
    assert list(mapped(abs, [1, 2], 1)) == [(1, died), (2, died)]


def tell_half(_work: object, _items: object, sender: Connection) -> None:
    os.write(sender.fileno(), struct.pack(">i", 100) + b"half")
    os._exit(3)
