"""Measures a look into a batch and its recompression by a broker: the best of some rounds."""

import json
from collections.abc import Callable
from random import Random
from time import process_time

from broker.partition.appends import kept_form
from broker.partition.batch_checks import check_records
from broker.partition.topic_settings import TopicSettings
from wire.batch import Record, build_batch, read_header
from wire.compression import Compression

ROUNDS = 9
BATCH_BYTES = 1_000_000
RECORD_BYTES = 100
LEVELS = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}  # Kafka's defaults


def measure(name: str, run: Callable[[], object]) -> None:
    best = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        run()
        best = min(best, process_time() - started)
    line = {"name": f"recompression {name}", "value": round(best * 1e3, 2), "unit": "ms"}
    print(json.dumps(line | {"rounds": ROUNDS, "batch_bytes": BATCH_BYTES}), flush=True)


def text(random: Random, size: int) -> bytes:
    """As compressible as prose: random words of a small vocabulary."""
    words = [bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(2000)]
    return b" ".join(random.choices(words, k=size // 7 + 1))[:size]


def main() -> None:
    content = text(Random(1), BATCH_BYTES)
    starts = range(0, BATCH_BYTES, RECORD_BYTES)
    records = [Record(key=b"k", value=content[at : at + RECORD_BYTES]) for at in starts]
    batch = build_batch(records, timestamp_ms=1)
    header = read_header(batch)
    compacted = TopicSettings(is_compacted=True)
    measure(
        f"look at {len(records)} records",
        lambda: check_records(batch, header, compacted, partition="t-0", now_ms=1),
    )
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        settings = TopicSettings(
            compression=codec, compression_level=LEVELS.get(codec, 0), max_message_bytes=1 << 30
        )

        def recompress(settings: TopicSettings = settings) -> object:
            return kept_form(batch, header, header, settings, 1)

        measure(f"to {codec.name.lower()}", recompress)
