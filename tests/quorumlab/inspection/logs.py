"""Metadata logs that say what a test wants, true or not."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from controller.metadata.changes import Change, encode_changes, record_count
from quorumlab.inspection.target import Target, find_target
from wire import metadata_records as records
from wire.batch import assign
from wire.control_records import LeaderChange, LeaderChangeVoter, encode_control_batch

METADATA_VERSION = 25
TOPIC = UUID(int=7)
START_MS = 1_700_000_000_000
SEGMENT = "00000000000000000000.log"


def leader_change(leader: int = 1) -> bytes:
    voters = tuple(LeaderChangeVoter(voter_id=voter) for voter in (1, 2, 3))
    record = LeaderChange(leader_id=leader, voters=voters, granting_voters=voters)
    return encode_control_batch([record], timestamp_ms=START_MS)


def content(*batches: Sequence[Change]) -> bytes:
    """One epoch, led by node 1; each batch a second after the one before."""
    parts = [assign(leader_change(), base_offset=0, leader_epoch=1)]
    offset = 1
    for number, changes in enumerate(batches):
        encoded = encode_changes(
            changes, timestamp_ms=START_MS + 1000 * number, metadata_version=METADATA_VERSION
        )
        parts.append(assign(encoded, base_offset=offset, leader_epoch=1))
        offset += record_count(changes)
    return b"".join(parts)


def write_log(directory: Path, *batches: Sequence[Change]) -> Target:
    path = directory / SEGMENT
    path.write_bytes(content(*batches))
    target = find_target(str(path))
    assert isinstance(target, Target)
    return target


def feature() -> records.FeatureLevelRecord:
    return records.FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION)


def broker(number: int, *, fenced: bool = False, epoch: int = 0) -> records.RegisterBrokerRecord:
    """Each epoch is another incarnation."""
    return records.RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=UUID(int=100 * number + epoch),
        broker_epoch=epoch or number,
        end_points=(),
        features=(),
        rack=None,
        fenced=fenced,
    )


def topic(name: str = "orders") -> records.TopicRecord:
    return records.TopicRecord(name=name, topic_id=TOPIC)


def partition(index: int = 0, **fields: object) -> records.PartitionRecord:
    """On brokers 1, 2, 3, all in sync, led by the first."""
    known = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return records.PartitionRecord(topic_id=TOPIC, partition_id=index, **{**known, **fields})  # type: ignore[arg-type]  # fields by name


def change(index: int = 0, **fields: object) -> records.PartitionChangeRecord:
    return records.PartitionChangeRecord(topic_id=TOPIC, partition_id=index, **fields)  # type: ignore[arg-type]  # fields by name


def fencing(number: int) -> records.BrokerRegistrationChangeRecord:
    return records.BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, fenced=1)


def cluster(brokers: int = 3) -> tuple[Change, ...]:
    """What a log begins with: its version, brokers, a topic of one partition."""
    return (feature(), *map(broker, range(1, brokers + 1)), topic(), partition())
