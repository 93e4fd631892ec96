"""Requests about records: writing, reading, offsets, deletion, producers."""

import gzip
import struct
import zlib
from typing import Any

from tests.differential.drawing import INT32_MAX, INT64_MAX, METADATA_ID, Both, Draw
from wire.batch import HEADER_BYTES, BatchHeader, Record, build_batch, read_header, write_header

__all__ = ["REQUESTS", "plain_batch"]

BEGUN_MS = 1_700_000_000_000  # a time long ago, for records that have one


def batch(
    draw: Draw,
    *,
    producer: Any = -1,
    epoch: int = -1,
    sequence: int = -1,
    is_transactional: bool = False,
) -> Any:
    """A batch, intact; `Both` if its producer has two ids."""
    keyed = draw.mostly(True, False)
    records = [
        Record(
            key=b"k%d" % number if keyed else None,
            value=draw.mostly(b"v%d" % number, None, b"", b"long" * 60),
            headers=draw.mostly((), (("h", b"1"),), (("h", None), ("", b""))),
        )
        for number in range(draw.mostly(1, 2, 3, 5))
    ]
    at_ms = BEGUN_MS + draw.random.randrange(10) * 1000

    def of(producer_id: int) -> bytes:
        return build_batch(
            records,
            timestamp_ms=at_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )

    if isinstance(producer, Both):
        return Both(of(producer.ours), of(producer.kafka))
    return of(producer)


def plain_batch(count: int, *, sequence: int) -> bytes:
    """For the preparations: the same in every run."""
    records = [
        Record(key=b"k%d" % number, value=b"v%d.%d" % (sequence, number)) for number in range(count)
    ]
    return build_batch(records, timestamp_ms=BEGUN_MS + 1000 * sequence)


def changed(content: bytes, **fields: Any) -> bytes:
    """With other header fields, and the checksum that goes with them."""
    out = bytearray(content)
    write_header(out, read_header(content)._replace(**fields))
    return bytes(out)


def control_batch() -> bytes:
    """A commit marker, as only a transaction coordinator may write it."""
    marker = Record(key=struct.pack(">hh", 0, 1), value=struct.pack(">hi", 0, 0))
    return build_batch(
        [marker],
        timestamp_ms=BEGUN_MS,
        producer_id=1,
        producer_epoch=0,
        is_control=True,
        is_transactional=True,
    )


def legacy_set(magic: int) -> bytes:
    """One message of the formats before batches."""
    times = struct.pack(">q", BEGUN_MS) if magic else b""
    body = (
        struct.pack(">bb", magic, 0) + times + struct.pack(">i", -1) + struct.pack(">i", 1) + b"v"
    )
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def _compressed(content: bytes) -> bytes:
    packed = gzip.compress(content[HEADER_BYTES:], mtime=0)
    return changed(content[:HEADER_BYTES] + packed, attributes=1)


def _spoiled(draw: Draw) -> Any:
    """Records that are wrong in one way.

    All that is compressed can be unpacked: ours takes what cannot be (docs/compatibility.md), and
    from there on its offsets would be others.
    """
    good = batch(draw)
    header: BatchHeader = read_header(good)
    crc = bytearray(good)
    crc[17] ^= 0xFF
    magic = bytearray(good)
    magic[16] = 3
    far = BEGUN_MS * 2
    return draw.pick(
        bytes(crc),
        bytes(magic),
        legacy_set(0),
        legacy_set(1),
        b"",
        None,
        good[:-1],
        good[: HEADER_BYTES - 5],
        good[:10],
        good + good,
        b"\0" * 61,
        control_batch(),
        changed(good, record_count=header.record_count + 1),
        changed(good, record_count=0),
        changed(good, record_count=-1),
        changed(good, last_offset_delta=header.last_offset_delta + 1),
        changed(good, last_offset_delta=-1),
        changed(good, base_offset=5),
        changed(good, leader_epoch=77),
        changed(good, attributes=0x08),
        changed(good, attributes=0x10),
        changed(good, attributes=0x07),
        changed(good, attributes=0x40),
        changed(good, base_timestamp_ms=-1, max_timestamp_ms=-1),
        changed(good, base_timestamp_ms=far, max_timestamp_ms=far),
        changed(good, max_timestamp_ms=1),
        changed(good[:HEADER_BYTES], record_count=0, last_offset_delta=0),
        _compressed(good),
        build_batch([Record(key=b"k", value=b"x" * 1_100_000)], timestamp_ms=BEGUN_MS),
    )


def _records(draw: Draw) -> Any:
    """No producer is without an epoch: Kafka takes its batches, ours refuses them."""
    if draw.chance(45):
        return batch(
            draw,
            producer=draw.producer_id(),
            epoch=draw.mostly(0, 1, 2, 5),
            sequence=draw.pick(0, 0, 0, 1, 2, 3, 7, -1, INT32_MAX),
        )
    return batch(draw)


def _in_transaction(draw: Draw, name: str) -> Any:
    """No batch of nobody's transaction: Kafka takes it, unverified, and ours refuses it."""
    known = draw.transaction(name)
    producer = draw.mostly(known.producer, draw.producer_id())
    is_nobody = isinstance(producer, int) and producer < 0
    return batch(
        draw,
        producer=producer,
        epoch=draw.mostly(known.epoch, known.epoch - 1, known.epoch + 1, 0),
        sequence=draw.mostly(0, 1, 2, 7, -1),
        is_transactional=draw.mostly(True, False) and not is_nobody,
    )


def produce(draw: Draw) -> dict[str, Any]:
    """What is spoiled comes alone: for one such batch Kafka may refuse all of a request."""
    name = draw.transactional_id() if draw.chance(25) else None
    is_spoiled = name is None and draw.chance(35)
    most = 1 if is_spoiled else 2

    def partition() -> dict[str, Any]:
        if name is not None:
            records = _in_transaction(draw, name)
        else:
            records = _spoiled(draw) if is_spoiled else _records(draw)
        return {"index": draw.partition(), "records": records}

    def topic() -> dict[str, Any]:
        name = draw.topic()
        partitions = draw.some(partition, most, twice=0)
        return {"name": name, "topic_id": draw.topic_id(name), "partition_data": partitions}

    return {
        "transactional_id": name,
        "acks": draw.mostly(-1, 1, 1, -1, 2, -2),
        "timeout_ms": draw.mostly(3000, 0, -1),
        "topic_data": draw.some(topic, most, twice=0),
    }


def fetch(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        name = draw.topic() if draw.listener == "broker" else "__cluster_metadata"
        return {
            "topic": name,
            "topic_id": draw.topic_id(name) if draw.listener == "broker" else METADATA_ID,
            "partitions": draw.some(
                lambda: {
                    "partition": draw.partition(),
                    "current_leader_epoch": draw.mostly(-1, 0, 5, -2),
                    "fetch_offset": draw.mostly(0, 1, 2, 3, 7, 10_000, -1, -2, INT64_MAX),
                    "last_fetched_epoch": draw.mostly(-1, 0, 3),
                    "log_start_offset": draw.mostly(-1, 0),
                    "partition_max_bytes": draw.mostly(1 << 20, 0, 1, 100, -1),
                },
                2,
            ),
        }

    in_session = draw.chance(30) and draw.known.sessions
    session = draw.pick(*draw.known.sessions) if in_session else draw.mostly(0, 0, 12345, -1)
    replica = draw.mostly(-1, -1, -1, -2, 1, 5)
    return {
        "replica_id": replica,
        "replica_state": {"replica_id": replica, "replica_epoch": -1},
        "cluster_id": None,
        "max_wait_ms": draw.mostly(0, 20, -1),
        "min_bytes": draw.mostly(0, 1, -1, INT32_MAX),
        "max_bytes": draw.mostly(1 << 20, 0, 1, -1, INT32_MAX),
        "isolation_level": draw.mostly(0, 1, 1, 2),
        "session_id": session,
        "session_epoch": draw.pick(1, 2, 3, 0, -1) if in_session else draw.mostly(-1, 0, 0, 1, -2),
        "topics": draw.some(topic),
        "forgotten_topics_data": [] if draw.chance(90) else [_forgotten(draw)],
        "rack_id": draw.mostly("", "r1"),
    }


def _forgotten(draw: Draw) -> dict[str, Any]:
    name = draw.topic()
    return {"topic": name, "topic_id": draw.topic_id(name), "partitions": [draw.partition()]}


def list_offsets(draw: Draw) -> dict[str, Any]:
    def partition() -> dict[str, Any]:
        return {
            "partition_index": draw.partition(),
            "current_leader_epoch": draw.mostly(-1, 0, 5),
            "timestamp": draw.pick(
                -1, -2, -3, -4, -5, -6, -100, 0, BEGUN_MS, BEGUN_MS + 4000, BEGUN_MS * 2, INT64_MAX
            ),
        }

    return {
        "replica_id": draw.mostly(-1, -2, 1, 5),
        "isolation_level": draw.mostly(0, 1, 2),
        "topics": draw.some(
            lambda: {"name": draw.topic(), "partitions": draw.some(partition, 4)}, 2
        ),
        "timeout_ms": 1000,
    }


def delete_records(draw: Draw) -> dict[str, Any]:
    def partition() -> dict[str, Any]:
        offset = draw.pick(0, 1, 2, -1, -1, -2, 10_000, INT64_MAX)
        return {"partition_index": draw.partition(), "offset": offset}

    return {
        "topics": draw.some(
            lambda: {"name": draw.topic(), "partitions": draw.some(partition, 2)}, 2
        ),
        "timeout_ms": draw.mostly(3000, 1),
    }


def offset_for_leader_epoch(draw: Draw) -> dict[str, Any]:
    def partition() -> dict[str, Any]:
        return {
            "partition": draw.partition(),
            "current_leader_epoch": draw.mostly(-1, 0, 5),
            "leader_epoch": draw.mostly(0, 1, 5, -1),
        }

    return {
        "replica_id": draw.mostly(-2, -1, 1, 5),
        "topics": draw.some(
            lambda: {"topic": draw.topic(), "partitions": draw.some(partition, 2)}, 2
        ),
    }


REQUESTS = {
    "produce": produce,
    "fetch": fetch,
    "list_offsets": list_offsets,
    "delete_records": delete_records,
    "offset_for_leader_epoch": offset_for_leader_epoch,
}
