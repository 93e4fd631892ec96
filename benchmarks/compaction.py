"""Cleaning a compacted log: MB of it a second, with the map of its keys and with the rewriting.

Half of the records are hidden by later ones. In the current directory's file system, alone in its
process, so that the pauses which leave the interpreter to others count as well; `busy` is the
processor time alone. The codec none has records that are copied, lz4 has all of them opened and
closed again, small batches hold one record each, as commits of offsets do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from threading import Event
from time import perf_counter, process_time
from uuid import UUID

from benchmarks.figures import print_figure, progress
from benchmarks.peers.local import scratch_directory
from quorum.core.cleaning import Clean, Cleaned
from quorum.core.effects import Append, OpenLog, Token
from quorum.core.log_settings import CleaningOrder, CleaningRules, LogSettings
from quorum.log.files.file_storage import FileStorage
from wire.batch import Compression, Record, assign, build_batch, read_header, repacked

LOG_BYTES = 16 << 20
SEGMENT_BYTES = 4 << 20
ROUNDS = 3
LOG = "t-0"


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    batch_records: int
    value_bytes: int
    codec: Compression = Compression.NONE


SHAPES = (
    Shape("batches of 100 records", 100, 100),
    Shape("batches of 100 records in lz4", 100, 100, Compression.LZ4),
    Shape("batches of 16 large records", 16, 1000),
    Shape("batches of one record", 1, 100),
)


def fill(storage: FileStorage, shape: Shape) -> int:
    random, offset, size, number = Random(1), 0, 0, 0
    keys = LOG_BYTES // (shape.value_bytes + 30) // 2
    value = random.randbytes(shape.value_bytes)
    while size < LOG_BYTES:
        records = [
            Record(key=b"key-%08d" % random.randrange(keys), value=value)
            for _ in range(shape.batch_records)
        ]
        plain = build_batch(records, timestamp_ms=1)
        header = read_header(plain)
        batch = repacked(header, plain[61:], shape.codec, level=9)
        placed = assign(batch, base_offset=offset, leader_epoch=1)
        storage.perform(Append(log=LOG, token=Token("broker", number), records=placed))
        storage.take_events()
        offset, size, number = offset + len(records), size + len(placed), number + 1
    return offset


def until(storage: FileStorage, kind: type, woken: Event) -> object:
    while True:
        woken.clear()
        for event in storage.take_events():
            if isinstance(event, kind):
                return event
        woken.wait(1)


def measure(shape: Shape) -> tuple[float, float, float]:
    """MB a second, the same by processor time, and the share that is left."""
    with scratch_directory() as directory:
        storage, woken = FileStorage(str(directory)), Event()
        storage.wake_with(woken.set)
        settings = LogSettings(segment_bytes=SEGMENT_BYTES)
        storage.perform(
            OpenLog(log=LOG, token=Token("broker", 0), topic_id=UUID(int=1), settings=settings)
        )
        woken.wait(5)
        end_offset = fill(storage, shape)
        order = CleaningOrder(rules=CleaningRules(), now_ms=2, end_offset=end_offset)
        wall, busy = perf_counter(), process_time()
        storage.perform(Clean(log=LOG, token=Token("broker", 1), order=order))
        cleaned = until(storage, Cleaned, woken)
        wall, busy = perf_counter() - wall, process_time() - busy
        storage.close(broker_epoch=None)
    assert isinstance(cleaned, Cleaned)
    assert cleaned.size_bytes is not None
    assert cleaned.size_bytes < 0.9 * LOG_BYTES, cleaned
    megabytes = LOG_BYTES / 1e6
    return megabytes / wall, megabytes / busy, cleaned.size_bytes / LOG_BYTES


def main() -> None:
    for shape in SHAPES:
        progress(shape.name)
        rounds = [measure(shape) for _ in range(ROUNDS)]
        parameters = {
            "log_bytes": LOG_BYTES,
            "value_bytes": shape.value_bytes,
            "left": round(rounds[0][2], 2),
        }
        places: dict[str, Callable[[tuple[float, float, float]], float]] = {
            "": lambda each: each[0],
            " busy": lambda each: each[1],
        }
        for name, place in places.items():
            values = [round(place(each), 1) for each in rounds]
            print_figure(
                f"compaction of {shape.name}{name}",
                max(values),
                "MB/s",
                **parameters,
                of_rounds=values,
            )
