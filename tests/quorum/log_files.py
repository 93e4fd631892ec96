"""What the storage tests share: batches, a log in a directory, and a disk that fails on order."""

import os
from collections.abc import Callable
from errno import EIO
from typing import Any

from quorum.core.log_settings import LogSettings
from quorum.core.producers import ProducerEntry
from quorum.log.files.disk import Disk
from quorum.log.files.recovery import open_log
from quorum.log.files.segments import SegmentedLog
from wire.batch import Record, build_batch, headers

SMALL = LogSettings(segment_bytes=1000, index_interval_bytes=100)


def batch(
    base_offset: int,
    *,
    records: int = 1,
    epoch: int = 1,
    size: int = 10,
    timestamp_ms: int = 1000,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        [Record(value=b"%08d" % (base_offset + i) + b"x" * size) for i in range(records)],
        timestamp_ms=timestamp_ms,
        base_offset=base_offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


class _Unsynced:
    """The system's calls without syncs: what is in the page cache is all that these tests see."""

    def __getattr__(self, name: str) -> Any:
        return (lambda fd: None) if name in ("fsync", "fdatasync") else getattr(os, name)


def quick_disk(descriptors_max: int = 1000) -> Disk:
    return Disk(descriptors_max=descriptors_max, system=_Unsynced())


def opened(
    directory: str,
    settings: LogSettings = SMALL,
    *,
    disk: Disk | None = None,
    recovery_point: int | None = 0,
    start_offset: int = 0,
    reads_all: bool = False,
    said: list[str] | None = None,
) -> SegmentedLog:
    said = [] if said is None else said
    return open_log(
        disk or quick_disk(),
        directory,
        settings,
        recovery_point=recovery_point,
        start_offset=start_offset,
        reads_all=reads_all,
        say=said.append,
    ).log


def producers_in(directory: str, *, recovery_point: int = 0) -> tuple[ProducerEntry, ...]:
    return open_log(quick_disk(), directory, SMALL, recovery_point=recovery_point).producers


def everything(log: SegmentedLog, *, bytes_max: int = 1 << 20) -> bytes:
    parts = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(start_offset=offset, end_offset=log.end_offset, bytes_max=bytes_max)
        assert part, offset
        parts.append(part)
        offset = next_offset(part)
    return b"".join(parts)


def next_offset(batches: bytes) -> int:
    *_, (_, last) = headers(batches)
    return last.next_offset


class FailingSystem:
    """The system's calls, of which one fails when `fails` says so: (name, arguments) -> error."""

    def __init__(self) -> None:
        self.fails: Callable[[str, tuple[Any, ...]], OSError | None] = lambda name, arguments: None
        self.calls: list[str] = []

    def fail(self, name: str, errno: int = EIO) -> None:
        """From now on, `name` fails."""

        def fails(called: str, arguments: tuple[Any, ...]) -> OSError | None:
            return OSError(errno, os.strerror(errno)) if called == name else None

        self.fails = fails

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            error = self.fails(name, arguments)
            if error is not None:
                raise error
            return real(*arguments)

        return call
