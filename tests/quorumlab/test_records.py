"""Records in words, read from logs that Apache Kafka wrote."""

from pathlib import Path
from uuid import UUID

from quorumlab.records import describe_record, stored_records, topic_names
from wire.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord

GOLDEN = Path(__file__).parent.parent / "golden"


def test_fields_that_say_nothing_are_left_out() -> None:
    record = PartitionChangeRecord(partition_id=3, topic_id=UUID(int=7), leader=2)
    assert describe_record(record, {UUID(int=7): "orders"}) == (
        "PartitionChange partition_id=3 topic_id=orders leader=2"
    )


def test_a_fenced_broker_is_told() -> None:
    record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=9, fenced=1)
    assert describe_record(record) == (
        "BrokerRegistrationChange broker_id=1 broker_epoch=9 fenced=1"
    )


def test_a_log_of_apache_kafka_is_read_whole_and_in_order() -> None:
    records = list(stored_records(GOLDEN / "kraft3" / "node-2"))
    assert [stored.offset for stored in records] == list(
        range(records[0].offset, records[0].offset + len(records))
    )
    topics = topic_names(records)
    assert all(str(stored.offset) in stored.describe(topics) for stored in records)
