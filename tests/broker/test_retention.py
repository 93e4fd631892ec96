"""Where logs start: by age and size below the high watermark, as the leader's, or anew."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.config import OWNER
from broker.partition.local_log import LocalLog
from quorum.core.effects import LogState, Retain, Trimmed
from quorum.core.log_settings import LogSettings
from quorum.core.outbox import Outbox
from tests.broker.brokers import Brokers, batch_of, fetch_request
from wire.errors import ErrorCode
from wire.messages.fetching import FetchedPartition

CHECK_MS = 1000
MINUTE_MS = 60_000


def started(count: int = 1, **configs: Any) -> Brokers:
    """One partition with five batches, of which each is a minute younger than the one before."""
    brokers = Brokers(
        count, log_retention_check_interval_ms=CHECK_MS, replica_lag_time_max_ms=100_000
    ).start()
    brokers.create_topic("t", tuple(range(1, count + 1)), **configs)
    for n in range(5):
        timestamp_ms = brokers.now_ms - (5 - n) * MINUTE_MS
        brokers.produce(1, "t", 0, batch_of(b"x", timestamp_ms=timestamp_ms))
    brokers.run(100)
    return brokers


def starts(brokers: Brokers) -> list[int]:
    return [brokers.partition(node_id, "t", 0).open_log.start_offset for node_id in brokers.brokers]


def fetched(brokers: Brokers, offset: int) -> FetchedPartition:
    body = brokers.call(1, fetch_request("t", 0, offset))
    data: FetchedPartition = body.responses[0].partitions[0]
    return data


def test_old_records_go_when_the_interval_is_up() -> None:
    brokers = started(retention_ms=str(3 * MINUTE_MS - 1))
    assert starts(brokers) == [0]
    brokers.run(2 * CHECK_MS)
    assert starts(brokers) == [3]
    assert fetched(brokers, 2).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetched(brokers, 3).log_start_offset == 3


def test_records_go_that_a_limited_log_can_do_without() -> None:
    brokers = started(retention_bytes=str(2 * len(batch_of(b"x"))))
    brokers.run(2 * CHECK_MS)
    assert starts(brokers) == [3]


@pytest.mark.parametrize("limit", [{"retention_ms": "-1"}, {"cleanup_policy": "compact"}])
def test_records_stay_for_ever_where_the_topic_says_so(limit: dict[str, str]) -> None:
    configs: dict[str, Any] = {"retention_bytes": "-1", "retention_ms": "1", **limit}
    brokers = started(**configs)
    brokers.run(2 * CHECK_MS)
    assert starts(brokers) == [0]


def test_changed_limits_hold_at_the_next_check() -> None:
    brokers = started()
    brokers.run(2 * CHECK_MS)
    assert starts(brokers) == [0]
    brokers.configure("t", "retention.ms", str(MINUTE_MS))
    brokers.run(2 * CHECK_MS)
    assert starts(brokers) == [5]


def test_nothing_goes_that_is_not_committed() -> None:
    brokers = Brokers(2, log_retention_check_interval_ms=CHECK_MS).start()
    brokers.create_topic("t", (1, 2), retention_ms="1")
    brokers.cut.add((2, 1))  # the follower hears nothing, and is in sync all the same
    brokers.produce(1, "t", 0, batch_of(b"x", timestamp_ms=1))
    brokers.run(2 * CHECK_MS)
    assert brokers.partition(1, "t", 0).open_log.high_watermark == 0
    assert starts(brokers) == [0, 0]


def test_follower_starts_where_its_leader_does() -> None:
    brokers = started(2)
    brokers.partition(1, "t", 0).open_log.trim(2)
    brokers.run(1000)
    assert starts(brokers) == [2, 2]
    assert [brokers.disks[node].logs["t-0"].start_offset for node in (1, 2)] == [2, 2]


def test_follower_behind_the_start_of_its_leader_begins_anew_there() -> None:
    brokers = started(2)
    brokers.kill(2)
    brokers.fence(2)
    brokers.change("t", 0, isr=(1,))
    brokers.produce(1, "t", 0, batch_of(b"y"))
    brokers.run(100)
    brokers.partition(1, "t", 0).open_log.trim(6)
    brokers.produce(1, "t", 0, batch_of(b"z"))
    brokers.start(2)
    brokers.run(5000)
    follower = brokers.partition(2, "t", 0).open_log
    assert (follower.start_offset, follower.end_offset, follower.high_watermark) == (6, 7, 7)
    assert follower.epochs.entries == brokers.partition(1, "t", 0).open_log.epochs.entries
    assert [header.base_offset for header in brokers.disks[2].logs["t-0"].headers()] == [6]


def test_follower_out_of_range_does_not_wait_for_fetches_of_other_partitions() -> None:
    """Found by cluster seed 500017 of the simulator: while a fetch of another partition waited at
    the leader, records went on being removed there, and the follower was out of range again.
    """
    brokers = Brokers(2, replica_fetch_wait_max_ms=5000, replica_lag_time_max_ms=100_000).start()
    for topic in ("t", "u"):
        brokers.create_topic(topic, (1, 2))
    brokers.produce(1, "t", 0, batch_of(b"x"))
    brokers.run(100)
    brokers.kill(2)
    brokers.fence(2)
    for topic in ("t", "u"):
        brokers.change(topic, 0, isr=(1,))
    for _ in range(4):
        brokers.produce(1, "t", 0, batch_of(b"y"))
    brokers.run(100)
    brokers.partition(1, "t", 0).open_log.trim(4)
    brokers.start(2)
    brokers.run(1000)
    assert starts(brokers) == [4, 4]
    assert brokers.partition(2, "t", 0).open_log.end_offset == 5


def test_log_that_begins_anew_is_fetched_soon_after_though_others_wait() -> None:
    """The fetch without it would keep the next one waiting for as long as the leader may."""
    brokers = Brokers(2, replica_fetch_wait_max_ms=5000, replica_lag_time_max_ms=5000).start()
    for topic in ("t", "u"):
        brokers.create_topic(topic, (1, 2))
    brokers.run(1000)
    brokers.cut = {(2, 1)}
    brokers.run(6000)
    brokers.produce(1, "t", 0, batch_of(b"x", b"y"))
    brokers.run(11_000)
    brokers.partition(1, "t", 0).open_log.trim(1)
    brokers.rewrite_ms = 6
    brokers.cut.clear()
    brokers.run(1500)
    assert starts(brokers) == [1, 1]
    assert brokers.ends("t", 0)[2] == (2, 2)
    brokers.fetches.clear()
    brokers.run(20_000)
    assert brokers.fetches[2] < 10, "nothing is left out any more: the leader may keep a fetch"


def test_follower_that_begins_anew_within_a_batch_has_the_batch_whole() -> None:
    """Found by cluster seed 328 of the simulator: it never fetched again."""
    brokers = started(2)
    brokers.kill(2)
    brokers.fence(2)
    brokers.change("t", 0, isr=(1,))
    brokers.produce(1, "t", 0, batch_of(b"a", b"b", b"c"))
    brokers.run(100)
    brokers.partition(1, "t", 0).open_log.trim(6)
    brokers.start(2)
    brokers.run(5000)
    follower = brokers.partition(2, "t", 0).open_log
    assert (follower.start_offset, follower.end_offset, follower.high_watermark) == (6, 8, 8)
    assert follower.epochs.entries == brokers.partition(1, "t", 0).open_log.epochs.entries
    assert [header.base_offset for header in brokers.disks[2].logs["t-0"].headers()] == [5]


@pytest.mark.parametrize(("start_offset", "written"), [(7, 1), (7, 4), (8, 1), (8, 3), (8, 4)])
def test_follower_that_starts_where_its_leader_has_not_been_begins_anew(
    start_offset: int, written: int
) -> None:
    """The leader, elected uncleanly, never had what was deleted here; its own records count.

    Even if nothing is left here to compare: cluster seed 191001688 of the simulator."""
    brokers = started(2)
    brokers.cut = {(1, 2), (2, 1)}
    brokers.run(1000)
    brokers.fence(2)
    brokers.change("t", 0, isr=(1,))
    brokers.produce(1, "t", 0, batch_of(b"a", b"b", b"c"))
    brokers.run(100)
    brokers.partition(1, "t", 0).open_log.trim(start_offset)
    brokers.unfence(2)
    brokers.change("t", 0, isr=(2,), leader=2)
    for _ in range(written):
        brokers.produce(2, "t", 0, batch_of(b"new"))
    brokers.cut.clear()
    brokers.run(5000)
    is_empty = start_offset == 8
    assert brokers.values(1, "t", 0) == [b"x"] * (5 * is_empty) + [b"new"] * written
    assert starts(brokers) == [0 if is_empty else 5, 0]
    assert set(brokers.ends("t", 0).values()) == {(5 + written, 5 + written)}


def retaining(high_watermark: int) -> tuple[LocalLog, Callable[[int], None]]:
    """A log of ten records that has been asked to let go of some, and how to answer that."""
    outbox = Outbox(OWNER)
    log = LocalLog(LogState(log="t-0", end_offset=10, high_watermark=high_watermark), outbox)
    log.retain(since_ms=0, bytes_max=None)
    (asked,) = (effect for effect in outbox.take() if isinstance(effect, Retain))

    def answer(start_offset: int) -> None:
        trimmed = Trimmed(token=asked.token, log="t-0", start_offset=start_offset, size_bytes=1)
        outbox.deliver(asked.token, trimmed, 0)

    return log, answer


def test_a_log_never_starts_behind_its_end() -> None:
    log, answer = retaining(high_watermark=10)
    log.truncate(6)
    answer(10)
    assert (log.start_offset, log.high_watermark, log.end_offset) == (6, 6, 6)


def test_what_was_let_go_of_is_committed() -> None:
    """A new leader may have told a lower high watermark while the log was looked through."""
    log, answer = retaining(high_watermark=10)
    log.high_watermark = 4
    answer(8)
    assert (log.start_offset, log.high_watermark, log.end_offset) == (8, 8, 10)


def test_all_logs_are_checked_a_few_at_a_time() -> None:
    brokers = Brokers(1, log_retention_check_interval_ms=CHECK_MS).start()
    brokers.create_topic("t", *[(1,)] * 250, retention_ms="1")
    for index in range(250):
        brokers.produce(1, "t", index, batch_of(b"x", timestamp_ms=1))
    broker = brokers.brokers[1]
    counts = []
    for _ in range(4):
        due = broker._chores.retention.next_ms
        assert due is not None
        brokers.now_ms = max(brokers.now_ms, due)
        broker.tick(brokers.now_ms)
        counts.append(sum(isinstance(each, Retain) for each in broker.outbox.effects))
        brokers.settle()
    assert counts == [100, 100, 50, 0]


def asked_in_a_round(brokers: Brokers, node_id: int = 1) -> list[str]:
    """The logs that are looked at when the interval is up."""
    broker = brokers.brokers[node_id]
    brokers.now_ms += CHECK_MS
    broker.tick(brokers.now_ms)
    asked = [each.log for each in broker.outbox.effects if isinstance(each, Retain)]
    brokers.settle()
    return asked


def test_only_logs_are_looked_at_that_have_moved_or_may_be_old() -> None:
    brokers = Brokers(1, log_retention_check_interval_ms=CHECK_MS).start()
    brokers.create_topic("t", *[(1,)] * 5, retention_ms=str(MINUTE_MS))
    for index in range(5):
        timestamp_ms = brokers.now_ms + index * 20 * CHECK_MS
        brokers.produce(1, "t", index, batch_of(b"x", timestamp_ms=timestamp_ms))
    brokers.run(3 * CHECK_MS)
    assert asked_in_a_round(brokers) == []
    brokers.produce(1, "t", 3, batch_of(b"x", timestamp_ms=brokers.now_ms))
    assert asked_in_a_round(brokers) == ["t-3"]
    assert asked_in_a_round(brokers) == []
    brokers.configure("t", "retention.ms", str(MINUTE_MS + 1))
    assert len(asked_in_a_round(brokers)) == 5
    brokers.run(MINUTE_MS)
    ends = [brokers.partition(1, "t", index).open_log.start_offset for index in range(5)]
    assert ends == [1, 0, 0, 0, 0]


def test_changed_limits_make_followers_look_again() -> None:
    brokers = started(2)
    brokers.run(3 * CHECK_MS)
    assert asked_in_a_round(brokers, 2) == []
    brokers.configure("t", "retention.ms", str(100 * MINUTE_MS))
    assert asked_in_a_round(brokers, 2) == ["t-0"]


def test_limits_of_another_topic_make_nobody_look_again() -> None:
    brokers = started(2)
    brokers.create_topic("other", (1, 2), number=9)
    brokers.run(3 * CHECK_MS)
    brokers.configure("other", "retention.ms", str(100 * MINUTE_MS))
    assert asked_in_a_round(brokers, 1) == []


def test_logs_that_are_gone_are_not_kept_in_mind_for_the_days_that_they_had_left() -> None:
    brokers = Brokers(1, log_retention_check_interval_ms=CHECK_MS).start()
    for topic in (f"t{number}" for number in range(8)):
        brokers.create_topic(topic, *[(1,)] * 200, number=1 + int(topic[1:]))
        for index in range(200):
            brokers.produce(1, topic, index, batch_of(b"x", timestamp_ms=brokers.now_ms))
        brokers.run(3 * CHECK_MS)
        brokers.delete_topic(topic)
    retention = brokers.brokers[1]._chores.retention
    assert not retention._due._times_ms
    assert len(retention._due._heap) < 1024


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(-20, 5)),
    st.tuples(st.just("trim"), st.integers(0, 3), st.integers(1, 3)),
    st.tuples(st.just("age"), st.just(0), st.sampled_from((-1, 3, 10))),
    st.tuples(st.just("size"), st.just(0), st.sampled_from((-1, 1, 3))),
    st.tuples(st.just("delete"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("wait"), st.just(0), st.integers(1, 15)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=30))
@example([("append", 0, 0), ("wait", 0, 3), ("age", 0, 6), ("wait", 0, 6)])
def test_what_all_logs_would_let_go_of_has_gone(steps: list[tuple[str, int, int]]) -> None:
    """To look at those that have moved, or may be old, is as good as to look at all of them."""
    brokers = Brokers(1, log_retention_check_interval_ms=CHECK_MS).start()
    limits = {"age": 10, "size": -1}
    for index in range(4):
        brokers.create_topic(f"t{index}", (1,), retention_ms=str(10 * CHECK_MS))
    for number, (kind, index, value) in enumerate((*steps, ("wait", 0, 2), ("wait", 0, 20)), 1):
        topic = f"t{index}"
        match kind:
            case "append":
                timestamp_ms = brokers.now_ms + value * CHECK_MS
                brokers.produce(1, topic, 0, batch_of(b"x", timestamp_ms=timestamp_ms))
            case "trim":
                led = brokers.partition(1, topic, 0).open_log
                led.trim(min(led.start_offset + value, led.high_watermark))
            case "age" | "size":
                limits[kind] = value
                unit, key = (CHECK_MS, "ms") if kind == "age" else (len(batch_of(b"x")), "bytes")
                for each in range(4):
                    limit = str(value * unit if value > 0 else -1)
                    brokers.configure(f"t{each}", f"retention.{key}", limit)
            case "delete":
                brokers.delete_topic(topic)
                age, size = (limits[kind] for kind in ("age", "size"))
                brokers.create_topic(
                    topic,
                    (1,),
                    number=number,
                    retention_ms=str(age * CHECK_MS if age > 0 else -1),
                    retention_bytes=str(size * len(batch_of(b"x")) if size > 0 else -1),
                )
            case _:
                brokers.run(value * CHECK_MS)
                before_ms = brokers.now_ms - limits["age"] * CHECK_MS - 2 * CHECK_MS
                for kept in brokers.disks[1].logs.values():
                    first = kept.headers()[0] if kept.batches else None
                    is_old = limits["age"] > 0 and first and first.max_timestamp_ms < before_ms
                    assert not is_old
                    if value > 1 and limits["size"] > 0:
                        assert len(kept.batches) <= limits["size"]


def test_settings_of_a_topic_reach_its_log() -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,), segment_bytes=str(2 << 20), index_interval_bytes="100")
    found = brokers.disks[1].logs["t-0"].settings
    assert found == LogSettings(segment_bytes=2 << 20, index_interval_bytes=100)
    brokers.configure("t", "segment.ms", "5000")
    found = brokers.disks[1].logs["t-0"].settings
    assert found == LogSettings(segment_bytes=2 << 20, index_interval_bytes=100, segment_ms=5000)
    assert brokers.disks[1].logs["t-0"].directory_id == UUID(int=1001)
