"""Where the syncs of real files run: in the driver's thread, or in another (`sync_pace`)."""

import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest

from quorum.core.effects import Stored
from quorum.core.storage import METADATA_LOG
from quorum.log.files.sync_pace import SYNCS_TO_BEGIN, SYNCS_TO_TRUST_AGAIN
from quorum.log.files.threads import Threads
from tests.quorum.storages import LOG, SETTINGS, Storage
from wire.primitives import METADATA_TOPIC_ID

INLINE = replace(SETTINGS, inline_sync_seconds=0.002)
FAST, SLOW = 0.0001, 0.0021


@dataclass
class Medium:
    """The system's calls, with syncs that take as long as they are told to, by a clock of ours."""

    takes_seconds: float = FAST
    seconds: float = 0.0
    is_inline: bool | None = None  # was the last one?
    may_end: Signal = field(default_factory=Signal)

    def __post_init__(self) -> None:
        self.may_end.set()

    def fdatasync(self, _fd: int) -> None:
        self.is_inline = threading.current_thread() is threading.main_thread()
        self.seconds += self.takes_seconds
        assert self.may_end.wait(10)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


class Bench:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, *, settings: Any = INLINE):
        self.medium = Medium()
        monkeypatch.setattr(Threads, "seconds", lambda _threads: self.medium.seconds)
        self.storage = Storage(path, system=self.medium, settings=settings)
        self.storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
        self.storage.settle()
        self.offset = 0

    def sync(self, takes_seconds: float = FAST) -> bool:
        """One append; was its sync inline?"""
        self.medium.takes_seconds = takes_seconds
        append = self.storage.append(self.offset)
        self.offset += 1
        assert self.storage.do(append) == [Stored(log=METADATA_LOG, token=append.token)]
        assert self.medium.is_inline is not None
        return self.medium.is_inline

    def sync_until_inline(self) -> int:
        """How many were not."""
        count = 0
        while not self.sync():
            count += 1
            assert count <= SYNCS_TO_TRUST_AGAIN
        return count


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_syncs_are_inline_once_they_are_known_to_be_fast(bench: Bench) -> None:
    assert bench.sync_until_inline() == SYNCS_TO_BEGIN
    assert all(bench.sync() for _ in range(20))
    assert bench.storage.files.syncs.inline == 21
    assert bench.storage.files.syncs.too_slow == 0


def test_inline_sync_is_answered_before_anything_else_is_done(bench: Bench) -> None:
    bench.sync_until_inline()
    append = bench.storage.append(100)
    bench.storage.files.perform(append)
    assert bench.storage.files.take_events() == [Stored(log=METADATA_LOG, token=append.token)]
    assert not bench.storage.files.is_busy


def test_sync_that_stops_the_node_is_counted_and_the_last_for_long(bench: Bench) -> None:
    bench.sync_until_inline()
    assert bench.sync(takes_seconds=SLOW)
    assert bench.storage.files.syncs.too_slow == 1
    assert [line for line in bench.storage.said if "stopped this node for 2 ms" in line]
    assert not bench.sync(takes_seconds=SLOW), "in a thread it stops nobody"
    assert bench.sync_until_inline() == SYNCS_TO_TRUST_AGAIN
    assert bench.storage.files.syncs.too_slow == 1


def test_no_sync_is_inline_while_something_else_is_under_way(bench: Bench) -> None:
    """The disk has something to do already, and the core may be waiting for it."""
    bench.sync_until_inline()
    bench.storage.open()
    bench.medium.may_end.clear()
    other = bench.storage.append(0, LOG)
    bench.storage.files.perform(other)
    assert bench.storage.files.take_events() == []
    append = bench.storage.append(100)
    bench.storage.files.perform(append)
    assert bench.storage.files.take_events() == [], "it would have waited for the other"
    bench.medium.may_end.set()
    tokens = {event.token for event in bench.storage.settle() if isinstance(event, Stored)}
    assert tokens == {other.token, append.token}


def test_slow_sync_in_a_thread_has_stopped_nobody(bench: Bench) -> None:
    """Though the next would have been inline. The disk is slow, so that it is not."""
    bench.sync_until_inline()
    bench.storage.open()
    bench.medium.may_end.clear()
    bench.storage.files.perform(bench.storage.append(0, LOG))
    assert bench.storage.files.take_events() == []
    bench.medium.takes_seconds = SLOW
    bench.storage.files.perform(bench.storage.append(bench.offset))
    assert bench.storage.files.take_events() == []
    bench.medium.may_end.set()
    bench.storage.settle()
    assert bench.storage.files.syncs.too_slow == 0
    assert not [line for line in bench.storage.said if "stopped this node" in line]
    bench.offset += 1
    assert not bench.sync()


def test_without_a_bound_every_sync_has_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, settings=SETTINGS)
    assert not any(bench.sync() for _ in range(2 * SYNCS_TO_BEGIN))
