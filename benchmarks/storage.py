"""The metadata log on disk: appends and syncs as a leader asks for them, and reading them back.

`in_flight` appends wait for their sync at any time. With one, the figure is the latency of a sync
and of handing it to a thread; with many, how much one sync carries. Rounds with and without
preallocation take turns, on fresh directories in the current directory's file system.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from time import perf_counter

from benchmarks.figures import percentile, print_figure, progress
from benchmarks.peers.local import scratch_directory
from quorum.core.effects import Append, Durability, Read, ReadDone, Stored, Token
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG
from quorum.log.files.file_storage import FileStorage, StorageSettings
from wire.batch import assign, data_batch
from wire.primitives import METADATA_TOPIC_ID

ROUNDS = 3
SECONDS = 1.0
VALUE_BYTES = 200
IN_FLIGHT = (1, 16, 256)
PREALLOCATE_BYTES = {"preallocated": 4 << 20, "growing": 0}
READ_BYTES = 1 << 20


@contextmanager
def storage_with(preallocate_bytes: int) -> Iterator[FileStorage]:
    with scratch_directory() as directory:
        metadata = LogSettings(preallocate_bytes=preallocate_bytes)
        storage = FileStorage(str(directory), settings=StorageSettings(metadata=metadata))
        storage.load(METADATA_LOG, METADATA_TOPIC_ID)
        try:
            yield storage
        finally:
            storage.close(broker_epoch=None)


def measure_appends(storage: FileStorage, in_flight: int, offset: int) -> tuple[list[float], float]:
    """Latencies of all appends that became durable, and how long that took."""
    batch = data_batch([b"x" * VALUE_BYTES], timestamp_ms=1)
    ready = Event()
    storage.wake_with(ready.set)
    started: dict[int, float] = {}
    latencies = []
    begin = perf_counter()
    while perf_counter() - begin < SECONDS:
        while len(started) < in_flight:
            started[offset] = perf_counter()
            storage.perform(
                Append(
                    log=METADATA_LOG,
                    token=Token("benchmark", offset),
                    records=assign(batch, base_offset=offset, leader_epoch=1),
                    durability=Durability.SYNCED,
                )
            )
            offset += 1
        events = storage.take_events()
        if not events:
            ready.wait(1)
            ready.clear()
        now = perf_counter()
        for event in events:
            assert isinstance(event, Stored), event
            covered = [number for number in started if number <= event.token.number]
            latencies += [now - started.pop(number) for number in covered]
    return latencies, perf_counter() - begin


def measure_read(storage: FileStorage, end_offset: int) -> float:
    """Bytes a second, from the start of the log to its end."""
    offset = size = 0
    begin = perf_counter()
    while offset < end_offset:
        token = Token("benchmark", end_offset + offset)
        storage.perform(
            Read(
                log=METADATA_LOG,
                token=token,
                start_offset=offset,
                end_offset=end_offset,
                bytes_max=READ_BYTES,
            )
        )
        (done,) = [event for event in storage.take_events() if isinstance(event, ReadDone)]
        batch_bytes = len(done.records) // max(1, done.records.count(b"x" * VALUE_BYTES))
        offset += len(done.records) // batch_bytes
        size += len(done.records)
    return size / (perf_counter() - begin)


def main() -> None:
    latencies: dict[tuple[str, int], list[float]] = {}
    rates: dict[tuple[str, int], list[float]] = {}
    reads: list[float] = []
    for number in range(ROUNDS):
        for way, preallocate_bytes in PREALLOCATE_BYTES.items():
            progress(f"round {number + 1} of {ROUNDS}: {way}")
            with storage_with(preallocate_bytes) as storage:
                offset = 0
                for in_flight in IN_FLIGHT:
                    found, seconds = measure_appends(storage, in_flight, offset)
                    offset += len(found) + in_flight
                    while storage.is_busy:
                        storage.take_events()
                    latencies.setdefault((way, in_flight), []).extend(found)
                    rates.setdefault((way, in_flight), []).append(len(found) / seconds)
                if preallocate_bytes:
                    reads.append(measure_read(storage, offset - IN_FLIGHT[-1]))
    for (way, in_flight), found in latencies.items():
        about = {"file": way, "in_flight": in_flight, "value_bytes": VALUE_BYTES}
        for percent in (50, 99):
            name = f"append and sync p{percent}"
            print_figure(name, percentile(found, percent) * 1000, "ms", **about)
        rate = sorted(rates[way, in_flight])[ROUNDS // 2]
        print_figure("append and sync", rate, "records/s", **about)
    print_figure("read back", sorted(reads)[ROUNDS // 2] / 1e6, "MB/s", read_bytes=READ_BYTES)
