"""Measures the controller's decisions: one JSON line a figure.

    python benchmarks/run.py controller
    python -m benchmarks controller --quick

`controller_failure_*`: one of 30 brokers fails, at replication factor 3, where 5 % of the ISRs are
short of a member: finding and deciding (`decide`), encoding in batches as they are appended
(`encode`), applying (`apply`), and decoding and applying on a standby (`follow`). Run at several
sizes in one process, so that they can be compared. `controller_alter_partition_*`: one ISR change
out of a million partitions, from request to next image. `controller_put_*`: one config record
where 100 topics have 1,000 of them; the best of many, and calls of Python functions. All are
processor time.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from random import Random
from uuid import UUID

import numpy as np

from benchmarks.figures import print_figure
from controller.config import ControllerConfig
from controller.decisions import brokers, config_changes, replica_reports
from controller.metadata.apply import apply, apply_with_delta
from controller.metadata.changes import (
    Change,
    decode_changes,
    encode_changes,
    record_count,
    split_changes,
)
from controller.metadata.image import MetadataImage
from quorum.core.types import OffsetAndEpoch
from wire.batch import assign, read_header
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.partitions import AlterPartitionRequest, BrokerState, IsrPartition, IsrTopic
from wire.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from wire.partition_columns import REPLICAS_MAX, NewPartitions
from wire.primitives import random_uuid

BROKERS = 30
FACTOR = 3
PER_TOPIC = 32
FAILED = 7
RECORDS_MAX = 10_000
PUT_TOPICS = 100
PUT_VALUES = {
    "delete.retention.ms": "86400000",
    "flush.messages": "100",
    "flush.ms": "100",
    "index.interval.bytes": "4096",
    "max.message.bytes": "1000012",
    "retention.bytes": "10000000",
    "retention.ms": "1000000",
    "segment.bytes": "1048576000",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
}
CONFIG = ControllerConfig(node_id=3000, cluster_id="benchmark")


def median_ms(run: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        gc.collect()
        started = time.process_time()
        run()
        taken.append((time.process_time() - started) * 1000)
    return statistics.median(taken)


def step(image: MetadataImage, *changes: Change) -> MetadataImage:
    end = image.at.offset + record_count(changes)
    return apply(image, changes, OffsetAndEpoch(end, 1))


def cluster(random: Random) -> MetadataImage:
    directories = [random_uuid(random) for _ in range(BROKERS)]
    return step(
        MetadataImage(),
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        *(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=broker_id + 1),
                broker_epoch=broker_id,
                end_points=(),
                features=(),
                rack=None,
                fenced=False,
                log_dirs=(directory,),
            )
            for broker_id, directory in enumerate(directories)
        ),
    )


def with_partitions(image: MetadataImage, count: int, seed: int) -> MetadataImage:
    """Topics of 32 partitions; replicas at random, 5 % of the ISRs without a random member."""
    random, draw = Random(seed), np.random.default_rng(seed)
    topics = [random_uuid(random) for _ in range((count + PER_TOPIC - 1) // PER_TOPIC)]
    created = [
        TopicRecord(name=f"topic-{number}", topic_id=topic_id)
        for number, topic_id in enumerate(topics)
    ]
    image = step(image, *created)
    for start in range(0, count, RECORDS_MAX):
        rows = np.arange(start, min(count, start + RECORDS_MAX))
        image = step(image, new_partitions(image, topics, rows, draw))
    return image


def new_partitions(
    image: MetadataImage, topics: list[UUID], rows: "np.ndarray", draw: np.random.Generator
) -> NewPartitions:
    count = len(rows)
    replicas = np.full((count, REPLICAS_MAX), -1, np.int32)
    replicas[:, :FACTOR] = np.argsort(draw.random((count, BROKERS)), axis=1)[:, :FACTOR]
    isr = replicas.copy()
    counts = np.full(count, FACTOR, np.int8)
    short = np.flatnonzero(draw.random(count) < 0.05)
    kept = np.sort(np.argsort(draw.random((len(short), FACTOR)), axis=1)[:, : FACTOR - 1], axis=1)
    isr[short, : FACTOR - 1] = np.take_along_axis(replicas[short], kept, axis=1)
    isr[short, FACTOR - 1] = -1
    counts[short] = FACTOR - 1
    ids = np.array([np.void(topic_id.bytes) for topic_id in topics], "V16")
    own = np.array([np.void(image.brokers[b].log_dirs[0].bytes) for b in range(BROKERS)], "V16")
    directories = np.zeros((count, REPLICAS_MAX), "V16")
    directories[:, :FACTOR] = own[replicas[:, :FACTOR]]
    return NewPartitions(
        topic_ids=ids[rows // PER_TOPIC],
        partition_ids=(rows % PER_TOPIC).astype(np.int32),
        replicas=replicas,
        replica_counts=np.full(count, FACTOR, np.int8),
        isr=isr,
        isr_counts=counts,
        leaders=isr[:, 0].copy(),
        leader_epochs=np.zeros(count, np.int32),
        partition_epochs=np.zeros(count, np.int32),
        directories=directories,
        directory_counts=np.full(count, FACTOR, np.int8),
    )


def encoded(changes: tuple[Change, ...]) -> list[bytes]:
    return [
        encode_changes(part, timestamp_ms=0, metadata_version=25)
        for part in split_changes(changes, RECORDS_MAX)
    ]


def appended(batches: list[bytes], image: MetadataImage) -> bytes:
    """The batches with offsets, as a standby gets them."""
    base, parts = image.at.offset, []
    for batch in batches:
        parts.append(assign(batch, base_offset=base, leader_epoch=1))
        base = read_header(parts[-1]).next_offset
    return b"".join(parts)


def follow(image: MetadataImage, log: bytes) -> MetadataImage:
    for batch in decode_changes(log):
        image, _ = apply_with_delta(image, batch)
    return image


def broker_failure(image: MetadataImage, count: int, times: int) -> None:
    changes = brokers.fence(image, FAILED, CONFIG)
    batches = encoded(changes)
    log = appended(batches, image)
    about = {"partitions": count, "records": record_count(changes), "bytes": len(log)}
    phases: dict[str, Callable[[], object]] = {
        "decide": lambda: brokers.fence(image, FAILED, CONFIG),
        "encode": lambda: encoded(changes),
        "apply": lambda: step(image, *changes),
        "follow": lambda: follow(image, log),
    }
    for phase, run in phases.items():
        run()  # warm: the row index of the topics is built once
        print_figure(f"controller_failure_{phase}", median_ms(run, times), "ms", **about)


def alter_partition(image: MetadataImage, count: int, times: int) -> None:
    topic = next(iter(image.topics.by_id.values()))
    state = image.partition(topic.id, 0)
    assert state is not None
    asked = IsrPartition(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=(BrokerState(broker_id=state.leader),),
    )
    request = AlterPartitionRequest(
        broker_id=state.leader,
        broker_epoch=image.brokers[state.leader].epoch,
        topics=(IsrTopic(topic_id=topic.id, partitions=(asked,)),),
    )

    def once() -> MetadataImage:
        decision = replica_reports.decide_alter_partition(image, request, CONFIG)
        encode_changes(decision.changes, timestamp_ms=0, metadata_version=25)
        return step(image, *decision.changes)

    rounds = 200

    def many() -> None:
        for _ in range(rounds):
            once()

    print_figure(
        "controller_alter_partition",
        median_ms(many, times) * 1000 / rounds,
        "us",
        partitions=count,
    )


def config_put(times: int) -> None:
    image = with_partitions(cluster(Random(1)), PUT_TOPICS * PER_TOPIC, seed=1)
    names = [topic.name for topic in image.topics.by_id.values()]
    image = step(
        image,
        *(
            ConfigRecord(resource_type=2, resource_name=name, name=key, value=value)
            for name in names
            for key, value in PUT_VALUES.items()
        ),
    )
    put = AlterableConfig(name="retention.ms", config_operation=0, value="1234567")
    resource = AlterConfigsResource(resource_type=2, resource_name=names[7], configs=(put,))
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    (change,) = config_changes.decide_incremental_alter_configs(image, request, CONFIG).changes
    log = appended(encoded((change,)), image)
    phases: dict[str, Callable[[], object]] = {
        "decide": lambda: config_changes.decide_incremental_alter_configs(image, request, CONFIG),
        "encode": lambda: encoded((change,)),
        "apply": lambda: step(image, change),
        "follow": lambda: follow(image, log),
    }
    for phase, run in phases.items():
        best = min(processor_us(run) for _ in range(20 * times))
        print_figure(f"controller_put_{phase}", best, "us", calls=calls_of(run))


def processor_us(run: Callable[[], object], rounds: int = 100) -> float:
    began = time.process_time()
    for _ in range(rounds):
        run()
    return (time.process_time() - began) * 1e6 / rounds


def calls_of(run: Callable[[], object]) -> int:
    """How many Python functions one run calls, itself among them."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    run()
    sys.setprofile(None)
    return calls


def bytes_per_partition(image: MetadataImage, count: int) -> None:
    total = 0
    for chunk in image.partitions.chunks:
        for name in chunk.__slots__:
            total += getattr(getattr(chunk, name), "nbytes", 0)
    print_figure("controller_bytes_per_partition", total / count, "bytes", partitions=count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="only 10,000 partitions")
    parser.add_argument("--times", type=int, default=7, help="runs of which to take the median")
    arguments = parser.parse_args()
    config_put(arguments.times)
    for count in (10_000,) if arguments.quick else (10_000, 100_000, 1_000_000):
        started = time.perf_counter()
        image = with_partitions(cluster(Random(1)), count, seed=1)
        built_s = time.perf_counter() - started
        print_figure("controller_replay", count / built_s, "partitions/s", partitions=count)
        broker_failure(image, count, arguments.times)
        alter_partition(image, count, arguments.times)
        bytes_per_partition(image, count)
