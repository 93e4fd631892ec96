"""Records of `__consumer_offsets` as `inspect partition` tells them, from Kafka's own bytes."""

import json
from pathlib import Path

from quorumlab.inspection.batches import Batch
from quorumlab.inspection.group_log import group_lines
from wire.batch import Record, build_batch, read_header

GOLDEN = Path(__file__).parents[1] / "golden"
UNKNOWN = Record(key=b"\0\x63\0\1g", value=b"\0\0")


def records(name: str) -> list[Record]:
    return [
        Record(
            key=bytes.fromhex(row["key"]),
            value=None if row["value"] is None else bytes.fromhex(row["value"]),
        )
        for row in json.loads((GOLDEN / name).read_text())
    ]


def test_each_kind_is_told_and_what_is_not_known_is_shown_with_its_bytes() -> None:
    content = build_batch([*records("consumer_group_records.json"), UNKNOWN], timestamp_ms=5)
    batch = Batch(header=read_header(content), content=content, position=0, path=Path())
    *told, unknown = group_lines(batch)
    assert {line.type for line in told} == {
        "CONSUMER_GROUP_METADATA",
        "CONSUMER_GROUP_MEMBER_METADATA",
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA",
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER",
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT",
        "CONSUMER_GROUP_REGULAR_EXPRESSION",
    }
    current = [line.data for line in told if "state" in line.data]
    assert current[0] == {
        "group": "gé",
        "memberId": "m",
        "memberEpoch": 7,
        "previousMemberEpoch": 6,
        "state": "UNREVOKED_PARTITIONS",
        "assignedPartitions": {"AAAAAAAAAAEAAAAAAAAAAg": [0, 2]},
        "partitionsPendingRevocation": {"AAAAAAAAAAEAAAAAAAAAAg": [5]},
    }
    gone = [line.data for line in told if line.data.keys() == {"group", "memberId"}]
    assert len(gone) == 3
    assert (unknown.type, unknown.data["key"]) == ("UNKNOWN", UNKNOWN.key.hex())  # type: ignore[union-attr]
