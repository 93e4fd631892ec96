"""A broker fails: the cost to another one, for each partition that the two share.

Three broker cores, on a disk and a network in memory, have a replica of every partition, and each
leads a third. One fails, and another is given what a controller writes then, in its batches. It
leads what the failed one did. Measured are its processor time, and its Python calls, which do not
depend on the machine.

    python -m benchmarks applied-failure [PARTITIONS ...]
"""

import gc
import sys
import time
from collections.abc import Iterator

from benchmarks.figures import print_figure, progress
from benchmarks.profiling import Calls
from broker.broker import Broker
from controller.accumulator import spread_records_max
from controller.metadata.changes import Change, encode_changes, split_changes
from controller.metadata.partitions import UNCHANGED
from tests.broker.brokers import METADATA_VERSION, Brokers
from wire.batch import assign, read_header
from wire.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from wire.partition_block import grouped
from wire.partition_columns import PartitionChanges

__all__ = ["calls_of_a_partition"]

PARTITIONS = (1_000, 10_000, 30_000)
COUNTED = 1_000  # with more, as many calls for each
ORDERS = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
TOPIC_PARTITIONS = 1000
FAILED, SURVIVOR = 3, 1
IDLE_MS = 2000  # until all fetch sessions are idle


def main() -> None:
    for count in tuple(map(int, sys.argv[1:])) or PARTITIONS:
        progress(f"applied_failure: {count:,} partitions")
        broker, batches, now_ms = failure(count)
        gc.collect()
        began = time.process_time()
        apply(broker, batches, now_ms)
        taken_us = (time.process_time() - began) * 1e6 / count
        print_figure("applied failure: a partition", taken_us, "us", partitions=count)
    print_figure("applied failure: Python calls", calls_of_a_partition(), "", partitions=COUNTED)


def calls_of_a_partition() -> float:
    broker, batches, now_ms = failure(COUNTED)
    with Calls() as calls:
        apply(broker, batches, now_ms)
    return calls.python.total() / COUNTED


def failure(count: int) -> tuple[Broker, list[bytes], int]:
    """A broker of an idle cluster, and the log of the failure of another one."""
    cluster = Brokers(3).start()
    for first in range(0, count, TOPIC_PARTITIONS):
        indexes = range(min(TOPIC_PARTITIONS, count - first))
        cluster.create_topic(f"idle-{first}", *(ORDERS[index % 3] for index in indexes))
    cluster.run(IDLE_MS)
    return cluster.brokers[SURVIVOR], list(log_of(cluster)), cluster.now_ms


def log_of(cluster: Brokers) -> Iterator[bytes]:
    fenced = BrokerRegistrationChangeRecord(
        broker_id=FAILED, broker_epoch=cluster.epochs[FAILED], fenced=1
    )
    changes = [
        PartitionChangeRecord(
            topic_id=topic_id,
            partition_id=index,
            isr=tuple(member for member in state.isr if member != FAILED),
            leader=SURVIVOR if state.leader == FAILED else UNCHANGED,
        )
        for (topic_id, index), state in cluster.states.items()
    ]
    block = grouped(PartitionChanges.from_records(changes))
    records_max = spread_records_max(len(cluster.brokers))
    batches: list[tuple[Change, ...]] = [(fenced,), *split_changes((block,), records_max)]
    offset = cluster.metadata_end
    for batch in batches:
        written = encode_changes(
            batch, timestamp_ms=cluster.now_ms, metadata_version=METADATA_VERSION
        )
        yield assign(written, base_offset=offset, leader_epoch=1)
        offset += read_header(written).record_count


def apply(broker: Broker, batches: list[bytes], now_ms: int) -> None:
    for after_ms, batch in enumerate(batches):
        broker.committed(batch, read_header(batch).next_offset, now_ms + after_ms)
        broker.deadline_ms()
