"""Which logs a broker has cleaned, and by which rules; what a follower makes of a compacted log."""

from typing import Any

import pytest

from broker.partition.local_log import LocalLog
from quorum.core.effects import EpochStart, LogState
from quorum.core.log_settings import CleaningRules
from quorum.core.outbox import Outbox
from tests.broker.brokers import Brokers, batch_of, fetch_request
from wire.batch import Record, assign, build_batch, read_header

BACKOFF_MS = 15_000


def started(count: int = 1, **configs: Any) -> Brokers:
    brokers = Brokers(count, replica_lag_time_max_ms=1_000_000).start()
    brokers.create_topic("t", tuple(range(1, count + 1)), **configs)
    return brokers


def keyed(key: bytes) -> bytes:
    return build_batch([Record(key=key, value=b"x")], timestamp_ms=1)


def asked(brokers: Brokers, node_id: int = 1) -> int:
    return len(brokers.disks[node_id].cleaned)


def test_a_compacted_log_is_cleaned_when_it_has_moved() -> None:
    brokers = started(cleanup_policy="compact")
    brokers.run(2 * BACKOFF_MS)
    before = asked(brokers)
    brokers.run(3 * BACKOFF_MS)
    assert asked(brokers) == before, "an idle log costs nothing"
    brokers.produce(1, "t", 0, keyed(b"a"))
    brokers.run(BACKOFF_MS)
    assert asked(brokers) == before + 1
    order = brokers.disks[1].cleaned[-1].order
    assert order.end_offset == brokers.partition(1, "t", 0).open_log.high_watermark == 1
    assert order.rules == CleaningRules(bytes_per_second=1.7976931348623157e308)


def test_it_is_asked_for_again_when_time_alone_makes_it_due() -> None:
    brokers = started(cleanup_policy="compact")
    brokers.produce(1, "t", 0, keyed(b"a"))
    again_ms = brokers.now_ms + 10 * BACKOFF_MS
    brokers.disks[1].clean_again_ms = again_ms
    brokers.run(2 * BACKOFF_MS)
    before = asked(brokers)
    brokers.disks[1].clean_again_ms = None
    brokers.run(7 * BACKOFF_MS)
    assert asked(brokers) == before
    brokers.run(3 * BACKOFF_MS)
    assert asked(brokers) == before + 1
    assert brokers.disks[1].cleaned[-1].order.now_ms >= again_ms


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_other_logs_are_not_cleaned(policy: str) -> None:
    brokers = started(cleanup_policy=policy)
    brokers.produce(1, "t", 0, keyed(b"a"))
    brokers.configure("t", "cleanup.policy", "delete")
    brokers.run(4 * BACKOFF_MS)
    assert asked(brokers) == 0
    brokers.configure("t", "cleanup.policy", "compact,delete")
    brokers.run(2 * BACKOFF_MS)
    assert asked(brokers) == 1


def test_the_rules_are_those_of_the_topic() -> None:
    brokers = started(
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.1",
        min_compaction_lag_ms="5",
        max_compaction_lag_ms="70",
        delete_retention_ms="9",
    )
    brokers.produce(1, "t", 0, keyed(b"a"))
    brokers.run(2 * BACKOFF_MS)
    rules = brokers.disks[1].cleaned[-1].order.rules
    assert (rules.dirty_ratio_min, rules.lag_min_ms, rules.lag_max_ms) == (0.1, 5, 70)
    assert rules.delete_retention_ms == 9
    settings = brokers.disks[1].logs["t-0"].settings
    assert settings is not None
    assert settings.segment_ms == 70, (
        "what must be cleaned by then must not lie in the last segment"
    )


def test_the_last_batch_of_each_producer_is_named() -> None:
    brokers = started(cleanup_policy="compact")
    for sequence in range(3):
        batch = build_batch(
            [Record(key=b"a", value=b"x")],
            timestamp_ms=brokers.now_ms,
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        brokers.produce(1, "t", 0, batch)
    brokers.run(2 * BACKOFF_MS)
    assert brokers.disks[1].cleaned[-1].order.last_batches == {(7, 2)}


def test_a_follower_gets_a_compacted_log_with_its_gaps() -> None:
    brokers = started(2)
    for _ in range(6):
        brokers.produce(1, "t", 0, batch_of(b"x"))
    brokers.run(100)
    for node_id in (1, 2):
        log = brokers.disks[node_id].logs["t-0"]
        log.batches = [each for each in log.batches if read_header(each).base_offset in (2, 5)]
    brokers.kill(2)
    brokers.disks[2].logs.pop("t-0")
    brokers.start(2)
    brokers.run(5000)
    follower = brokers.partition(2, "t", 0).open_log
    assert (follower.start_offset, follower.end_offset, follower.high_watermark) == (0, 6, 6)
    assert [each.base_offset for each in brokers.disks[2].logs["t-0"].headers()] == [2, 5]
    data = brokers.call(1, fetch_request("t", 0, 3)).responses[0].partitions[0]
    assert read_header(data.records).base_offset == 5


def test_an_epoch_behind_a_gap_begins_with_the_gap() -> None:
    """Whoever has other records there is then told to go back."""
    log = LocalLog(LogState(log="t-0", epochs=(EpochStart(1, 0),), end_offset=4), Outbox("broker"))
    batch = assign(batch_of(b"x"), base_offset=9, leader_epoch=3)
    log.append(batch, [read_header(batch)])
    assert log.epochs.entries == ((1, 0), (3, 4))
    end = log.epochs.end_offset_for(1, log.end_offset)
    assert end is not None
    assert end.offset == 4
