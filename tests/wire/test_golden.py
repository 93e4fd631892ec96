"""Logs and snapshots that a real Apache Kafka wrote: read, compared with its own dump, rewritten.

How the files came to be is told in tests/golden/README.md. Dumps are DumpLogSegments' text.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from wire.batch import (
    BatchHeader,
    Compression,
    Record,
    UnsupportedCompression,
    assign,
    build_batch,
    headers,
    records_of,
    verify,
)
from wire.control_records import (
    KRaftVersion,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    Voters,
    decode_control,
    encode_control_batch,
)
from wire.metadata_records import decode_record, encode_record
from wire.partition_block import PartitionBlock, decode, encode
from wire.primitives import uuid_text

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = sorted(
    path.relative_to(GOLDEN).as_posix()
    for pattern in ("*.log", "*.checkpoint")
    for path in GOLDEN.rglob(pattern)
)
METADATA = [name for name in FILES if "__cluster_metadata" in name or "bootstrap" in name]
DUMPS = sorted(
    path.relative_to(GOLDEN).as_posix()
    for pattern in ("*.log.txt", "*.checkpoint.txt")
    for path in GOLDEN.rglob(pattern)
)

BATCH_LINE = re.compile(
    r"^baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+)"
    r" count: (?P<record_count>\d+) baseSequence: (?P<base_sequence>-?\d+)"
    r" lastSequence: (?P<last_sequence>-?\d+) producerId: (?P<producer_id>-?\d+)"
    r" producerEpoch: (?P<producer_epoch>-?\d+) partitionLeaderEpoch: (?P<leader_epoch>\d+)"
    r" isTransactional: (?P<is_transactional>\w+) isControl: (?P<is_control>\w+)"
    r".* position: (?P<position>\d+) (?P<timestamp_type>\w+): (?P<max_timestamp_ms>-?\d+)"
    r" size: (?P<size_bytes>\d+) magic: (?P<magic>\d+) compresscodec: (?P<compression>\w+)"
    r" crc: (?P<crc>\d+) isvalid: true"
)
RECORD_LINE = re.compile(
    r"^\| offset: (?P<offset>\d+) \w+: (?P<timestamp_ms>-?\d+) keySize: (?P<key>-?\d+)"
    r" valueSize: (?P<value>-?\d+) "
)
METADATA_JSON = re.compile(r'payload: (?P<json>{"type":.*})$')
CONTROL_JSON = re.compile(r"headerKeys: \[\] (?P<name>[A-Za-z]+):? (?P<json>{.*})$")
CONTROL_NAMES = {
    "LeaderChange": LeaderChange,
    "SnapshotHeader": SnapshotHeader,
    "SnapshotFooter": SnapshotFooter,
    "KRaftVersion": KRaftVersion,
    "KRaftVoters": Voters,
}


@cache
def batches(name: str) -> tuple[tuple[int, BatchHeader, bytes], ...]:
    log = (GOLDEN / name).read_bytes()
    return tuple(
        (position, header, log[position : position + header.size_bytes])
        for position, header in headers(log)
    )


def dumped(name: str) -> tuple[str, list[str]]:
    """The file that a dump is of, and its lines."""
    folder, _, rest = name.partition("/dump/")
    lines = (GOLDEN / name).read_text().splitlines()
    return f"{folder}/{rest.removesuffix('.txt')}", lines


def as_json(value: Any) -> Any:
    """A record as Kafka prints it."""
    if is_dataclass(value):
        return {camel_case(f.name): as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if isinstance(value, UUID):
        return uuid_text(value)
    return b64encode(value).decode() if isinstance(value, bytes) else value


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    joined = first + "".join(part.capitalize() for part in rest)
    return "kRaft" + joined[5:] if first == "kraft" else joined


def assert_says(found: Any, expected: Any) -> None:
    """Kafka leaves out fields that the version lacks, and tagged ones that have their default."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_says(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for item, value in zip(found, expected, strict=True):
            assert_says(item, value)
    else:
        assert found == expected


def records(name: str) -> Iterator[tuple[BatchHeader, Record]]:
    for _, header, batch in batches(name):
        for record in records_of(batch):
            yield header, record


def test_there_are_golden_files() -> None:
    assert len(METADATA) >= 10
    assert len(DUMPS) >= 10


@pytest.mark.parametrize("name", FILES)
def test_every_batch_is_intact_and_reassigned_to_itself(name: str) -> None:
    for _, header, batch in batches(name):
        assert verify(batch) == (header,)
        same = assign(batch, base_offset=header.base_offset, leader_epoch=header.leader_epoch)
        assert same == batch


@pytest.mark.parametrize("name", DUMPS)
def test_headers_are_what_kafka_prints(name: str) -> None:
    file, lines = dumped(name)
    printed = [match.groupdict() for line in lines if (match := BATCH_LINE.match(line))]
    found = batches(file)
    assert len(found) == len(printed) > 0
    for (position, header, _), expected in zip(found, printed, strict=True):
        assert int(expected.pop("position")) == position
        assert expected.pop("compression") == header.compression.name.lower()
        is_append_time = expected.pop("timestamp_type") == "LogAppendTime"
        assert header.is_log_append_time is is_append_time
        for field, text in expected.items():
            assert str(getattr(header, field)).lower() == text, field


@pytest.mark.parametrize("name", DUMPS)
def test_records_are_what_kafka_prints(name: str) -> None:
    file, lines = dumped(name)
    printed = {int(match["offset"]): match for line in lines if (match := RECORD_LINE.match(line))}
    seen = 0
    for _, header, batch in batches(file):
        if header.compression not in (Compression.NONE, Compression.GZIP):
            with pytest.raises(UnsupportedCompression):
                list(records_of(batch))
            continue
        for record in records_of(batch):
            expected = printed[record.offset]
            assert record.timestamp_ms == int(expected["timestamp_ms"])
            assert int(expected["key"]) == (-1 if record.key is None else len(record.key))
            assert int(expected["value"]) == (-1 if record.value is None else len(record.value))
            seen += 1
    assert seen > 0


@pytest.mark.parametrize("name", FILES)
def test_uncompressed_batches_are_rebuilt_to_the_byte(name: str) -> None:
    for _, header, batch in batches(name):
        if header.compression is not Compression.NONE or header.is_log_append_time:
            continue
        rebuilt = build_batch(
            list(records_of(batch)),
            timestamp_ms=header.base_timestamp_ms,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            is_control=header.is_control,
            is_transactional=header.is_transactional,
        )
        assert rebuilt == batch


@pytest.mark.parametrize("name", METADATA)
def test_metadata_records_are_rewritten_to_the_byte(name: str) -> None:
    for header, raw in records(name):
        if not header.is_control:
            assert raw.value is not None
            record = decode_record(raw.value)
            assert encode_record(record, version=raw.value[2]) == raw.value
            # Kafka 4.3 formats its logs at metadata.version 30.
            assert encode_record(record, metadata_version=30) == raw.value


@pytest.mark.parametrize("name", METADATA)
def test_control_batches_are_rewritten_to_the_byte(name: str) -> None:
    for _, header, batch in batches(name):
        if header.is_control:
            decoded = [decode_control(record) for record in records_of(batch)]
            known = [record for record in decoded if record is not None]
            assert known == decoded
            rebuilt = encode_control_batch(known, timestamp_ms=header.base_timestamp_ms)
            assert batch == assign(
                rebuilt, base_offset=header.base_offset, leader_epoch=header.leader_epoch
            )


@pytest.mark.parametrize("name", METADATA)
def test_batches_are_rewritten_through_blocks(name: str) -> None:
    for _, header, batch in batches(name):
        if header.is_control:
            continue
        changes = list(decode(batch))
        flat = [
            record
            for change in changes
            for record in (change.records() if isinstance(change, PartitionBlock) else (change,))
        ]
        assert flat == [decode_record(record.value or b"") for record in records_of(batch)]
        rebuilt = encode(changes, timestamp_ms=header.base_timestamp_ms, metadata_version=30)
        assert batch == assign(
            rebuilt, base_offset=header.base_offset, leader_epoch=header.leader_epoch
        )


@pytest.mark.parametrize("name", [n for n in DUMPS if "metadata" in n or "bootstrap" in n])
def test_records_mean_what_kafka_prints(name: str) -> None:
    file, lines = dumped(name)
    found = {record.offset: (header, record) for header, record in records(file)}
    compared = 0
    for line in lines:
        if not (place := RECORD_LINE.match(line)):
            continue
        header, record = found[int(place["offset"])]
        if header.is_control:
            match = CONTROL_JSON.search(line)
            assert match is not None, line
            control = decode_control(record)
            assert type(control) is CONTROL_NAMES[match["name"]]
            assert_says(as_json(control), json.loads(match["json"]))
        else:
            match = METADATA_JSON.search(line)
            assert match is not None, line
            payload = json.loads(match["json"])
            assert record.value is not None
            change = decode_record(record.value)
            assert type(change).__name__.lower() == payload["type"].replace("_", "").lower()
            assert record.value[2] == payload["version"]
            assert_says(as_json(change), payload["data"])
        compared += 1
    assert compared == len(found)
