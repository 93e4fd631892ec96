"""Dumping a metadata log of a million records: `quorumlab inspect dump` beside `kafka-dump-log`.

The same segment, in turns: time to the first record, time to the last, processor time, peak memory.
And what `inspect summary` takes for a GiB of the same.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from benchmarks.figures import print_figure, progress, skip
from benchmarks.peers.local import scratch_directory
from controller.metadata.changes import Change, encode_changes
from jepsen_like.python_children import python_command, python_variables
from quorumlab.inspection.batches import Batch, read_batches
from tests.kafka.kafka_jars import java_command, missing_reason, version
from wire.batch import assign
from wire.metadata_records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from wire.partition_columns import NewPartitions, PartitionChanges

RECORDS = 1_000_000
PER_TOPIC = 1_000
BROKERS = 30
ROUNDS = 3
LARGE_BYTES = 1 << 30
METADATA_VERSION = 25
NO_ENVIRONMENT: Mapping[str, str] = {}


def changes() -> Iterator[tuple[Change, ...]]:
    """Topics of a thousand partitions, each of which changes its ISR and leader once."""
    yield (FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION),)
    directories = [UUID(int=0xD000 + broker) for broker in range(BROKERS)]
    yield tuple(
        RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=UUID(int=0xB000 + broker),
            broker_epoch=broker + 1,
            end_points=(),
            features=(),
            rack=None,
            fenced=False,
            log_dirs=(directory,),
        )
        for broker, directory in enumerate(directories)
    )
    for number in range(RECORDS // (2 * PER_TOPIC)):
        topic_id = UUID(int=(1 << 96) + number)
        yield (TopicRecord(name=f"topic-{number}", topic_id=topic_id),)
        created, changed = [], []
        for index in range(PER_TOPIC):
            replicas = tuple((number + index + step) % BROKERS for step in range(3))
            created.append(
                PartitionRecord(
                    topic_id=topic_id,
                    partition_id=index,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=tuple(directories[replica] for replica in replicas),
                )
            )
            changed.append(
                PartitionChangeRecord(
                    topic_id=topic_id, partition_id=index, isr=replicas[1:], leader=replicas[1]
                )
            )
        yield (NewPartitions.from_records(created),)
        yield (PartitionChanges.from_records(changed),)


def write_log(path: Path) -> int:
    """Returns the number of records."""
    offset = 0
    with path.open("wb") as file:
        for number, batch in enumerate(changes()):
            encoded = encode_changes(
                batch, timestamp_ms=1_700_000_000_000 + number, metadata_version=METADATA_VERSION
            )
            file.write(assign(encoded, base_offset=offset, leader_epoch=1))
            offset += sum(len(each) if hasattr(each, "__len__") else 1 for each in batch)
    return offset


def write_large(path: Path, segment: Path) -> int:
    """The same records again and again, up to a GiB; returns how many they are.

    In pieces: what we have at most in memory would count as that of our children.
    """
    offset = 0
    with path.open("wb") as file:
        while file.tell() < LARGE_BYTES:
            for found in read_batches(segment):
                assert isinstance(found, Batch), found
                file.write(assign(found.content, base_offset=offset, leader_epoch=1))
                offset += found.header.record_count
    return offset


@dataclass(frozen=True, slots=True)
class Run:
    first_seconds: float  # until a line about a record came
    seconds: float
    processor_seconds: float
    peak_megabytes: float
    records: int


def run(command: Sequence[str], mark: str, environment: Mapping[str, str]) -> Run:
    """`mark` is in every line that tells a record."""
    began = time.perf_counter()
    first, records = 0.0, 0
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | dict(environment),
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if mark in line:
                first = first or time.perf_counter() - began
                records += 1
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Run(
        first_seconds=first,
        seconds=time.perf_counter() - began,
        processor_seconds=used.ru_utime + used.ru_stime,
        peak_megabytes=used.ru_maxrss / 1024,
        records=records,
    )


def measure(name: str, runs: Sequence[Run], **parameters: object) -> None:
    for what, unit, values in (
        ("first record", "s", [each.first_seconds for each in runs]),
        ("all records", "s", [each.seconds for each in runs]),
        ("processor time", "s", [each.processor_seconds for each in runs]),
        ("peak memory", "MiB", [each.peak_megabytes for each in runs]),
    ):
        rounds = [round(value, 2) for value in values]
        value = statistics.median(values)
        print_figure(f"dump {name}: {what}", value, unit, of_rounds=rounds, **parameters)


def main() -> None:
    ours: list[Run] = []
    as_json: list[Run] = []
    selected: list[Run] = []
    kafkas: list[Run] = []
    reason = missing_reason()
    with scratch_directory() as directory:
        segment = directory / "00000000000000000000.log"
        records = write_log(segment)
        mine = python_command("quorumlab", "inspect", "dump", str(segment))
        of_json = [*mine, "--format", "json"]
        of_some = [*mine, "--where", "leader == 3 and topic == 'topic-7'"]
        here = python_variables()
        for number in range(ROUNDS):
            progress(f"round {number + 1} of {ROUNDS}")
            ours.append(run(mine, "Z  ", here))
            as_json.append(run(of_json, '{"offset":', here))
            selected.append(run(of_some, "Z  ", here))
            if reason is None:
                arguments = ["--cluster-metadata-decoder", "--files", str(segment)]
                tool = java_command("org.apache.kafka.tools.DumpLogSegments", arguments)
                kafkas.append(run(tool, "| offset: ", NO_ENVIRONMENT))
        large = directory / "large" / segment.name
        large.parent.mkdir()
        many = write_large(large, segment)
        summary = python_command("quorumlab", "inspect", "summary", str(large))
        of_large = [run(summary, "", here)]
    assert all(each.records == records for each in (*ours, *as_json, *kafkas)), (ours, kafkas)
    measure("quorumlab inspect", ours, records=records)
    measure("quorumlab inspect --format json", as_json, records=records)
    measure("quorumlab inspect --where", selected, records=records, told=selected[0].records)
    measure("quorumlab inspect summary", of_large, records=many, bytes=LARGE_BYTES)
    if reason is None:
        measure("kafka-dump-log", kafkas, records=records, version=version())
    else:
        skip("dump kafka-dump-log", reason)
