"""What is done to topics in some random clusters, and what is judged of it."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.config import OWNER
from broker.partition.local_log import LocalLog
from controller.metadata.changes import Change, encode_changes
from controller.metadata.image import MetadataImage
from jepsen_like.sim.assemblies.cluster.cluster_options import (
    ClusterOptions,
    Operations,
    draw_cluster_options,
    draw_run,
)
from jepsen_like.sim.assemblies.cluster.cluster_run import (
    _keeps_acknowledged,
    _keeps_read,
    check_end,
)
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import (
    PartitionInvariants,
    _Seen,
)
from jepsen_like.sim.assemblies.cluster.invariants.watched import (
    ALL,
    Acknowledged,
    Deletable,
    Watched,
)
from jepsen_like.sim.logs.logtree import Entry, LogTree
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.core.effects import LogState
from quorum.core.outbox import Outbox
from tests.controller.clusters import TOPIC, level, partition, registered
from wire.batch import Record, assign, build_batch
from wire.metadata_records import PartitionChangeRecord, TopicRecord

SEEDS = range(500)


def test_each_kind_is_drawn_in_a_share_of_the_seeds_and_changes_no_other_draw() -> None:
    drawn = [draw_run(VirtualTime(seed)) for seed in SEEDS]
    old = [draw_cluster_options(VirtualTime(seed).fork("options")) for seed in SEEDS]
    wide = [options.operations.wide_interval_ms > 0 for options in drawn]
    deletes = [options.operations.deletion_interval_ms > 0 for options in drawn]
    assert 30 <= sum(wide) <= 70
    members = [options.operations.member_count > 0 for options in drawn]
    assert 40 <= sum(members) <= 85
    commits = [options.operations.commit_interval_ms > 0 for options in drawn]
    transactions = [options.operations.transaction_producers > 0 for options in drawn]
    assert 80 <= sum(transactions) <= 120
    assert all(commits[seed] for seed in SEEDS if members[seed] or transactions[seed])
    assert 240 <= sum(commits) <= 340
    assert 110 <= sum(deletes) <= 190
    for options, before in zip(drawn, old, strict=True):
        assert before.operations == Operations()
        files = options.quorum.files
        with_partitions = files is not None and files.holds_partitions
        changed = ["operations", "quorum"]
        changed += ["directories", "directory_failure_ms"] * (options.directories > 1)
        changed += ["brokers_lose_power"] * with_partitions
        changed += ["transaction_version"] * (options.operations.transaction_producers > 0)
        assert all(
            getattr(options, name) == getattr(before, name)
            for name in before.__slots__
            if name not in changed
        )
        quorum = replace(options.quorum, files=None, disks=before.quorum.disks)
        if with_partitions:  # where power fails for sure
            assert {*quorum.nemesis_ms} == {*before.quorum.nemesis_ms, "power-loss"}
            quorum = replace(quorum, nemesis_ms=before.quorum.nemesis_ms)
        assert quorum == before.quorum
        assert options.quorum.files is not None or options.quorum == before.quorum


# --- topics of 100 partitions and more ------------------------------------------------------------


@pytest.mark.parametrize(("partitions", "times"), [(99, 0), (100, 1)])
def test_decision_over_columns_counts_where_100_isrs_shrink_at_once(
    partitions: int, times: int
) -> None:
    fired: list[str] = []
    invariants = MetadataInvariants(lambda: 0, fired.append)
    created: tuple[Change, ...] = (
        level(25),
        registered(1),
        registered(2),
        TopicRecord(name="t", topic_id=TOPIC),
        *(partition(index, (1, 2)) for index in range(partitions)),
    )
    shrunk: tuple[Change, ...] = tuple(
        PartitionChangeRecord(partition_id=index, topic_id=TOPIC, isr=(2,), leader=2)
        for index in range(partitions)
    )
    batches = [
        encode_changes(changes, timestamp_ms=0, metadata_version=25)
        for changes in (created, shrunk)
    ]
    invariants.committed(
        LogTree().extend(None, assign(b"".join(batches), base_offset=0, leader_epoch=1))
    )
    assert fired == ["decided_in_columns"] * times


def test_wide_topic_that_was_promised_must_be_there_with_all_its_partitions() -> None:
    cluster = SimpleNamespace(
        metadata=SimpleNamespace(image=MetadataImage()),
        admin=SimpleNamespace(expected={}),
        wide_topics=SimpleNamespace(expected={"wide-1": 0}),
        partitions=SimpleNamespace(watched={}),
        options=ClusterOptions(),
    )
    check_end(cast(Any, cluster))
    cluster.wide_topics.expected["wide-2"] = 100
    with pytest.raises(Violation, match=r"wide-2 has 0 partitions .*partitions=100"):
        check_end(cast(Any, cluster))


# --- records that are deleted ---------------------------------------------------------------------


def judge() -> PartitionInvariants:
    return PartitionInvariants(
        moment=lambda: 0,
        hosts={},
        broker_of=lambda _node: None,
        metadata=MetadataInvariants(lambda: 0),
    )


def looks(watched: Watched, seen: _Seen, log: LocalLog) -> None:
    replica = SimpleNamespace(name="t-0", node_id=1, open_log=log)
    judge()._start_changed(cast(Any, replica), watched, seen)
    seen.was_empty = log.start_offset == log.end_offset


def log_from(start_offset: int) -> LocalLog:
    return LocalLog(LogState(log="t-0", start_offset=start_offset, end_offset=10), Outbox(OWNER))


def exposed() -> list[Entry]:
    """Batches of three records: up to 9."""
    records = [
        assign(
            build_batch([Record(value=b"x")] * 3, timestamp_ms=0), base_offset=base, leader_epoch=1
        )
        for base in (0, 3, 6)
    ]
    return LogTree().extend(None, b"".join(records))


def test_log_starts_where_it_was_asked_to_and_not_beyond() -> None:
    watched = Watched("t-0", None, exposed=exposed())
    watched.deletable.asked(5)
    looks(watched, _Seen(), log_from(5))
    with pytest.raises(Violation, match="starts at 6"):
        looks(watched, _Seen(), log_from(6))


def test_log_never_starts_beyond_what_was_exposed() -> None:
    watched = Watched("t-0", None, exposed=exposed())
    watched.deletable.asked(ALL)
    looks(watched, _Seen(), log_from(9))
    with pytest.raises(Violation, match="9 were exposed"):
        looks(watched, _Seen(), log_from(10))


def test_log_of_one_process_never_starts_earlier_than_it_did() -> None:
    watched, seen, log = Watched("t-0", None, exposed=exposed()), _Seen(), log_from(5)
    watched.deletable.asked(ALL)
    looks(watched, seen, log)
    looks(watched, _Seen(), log_from(3))  # a later process
    log.start_offset = 4
    with pytest.raises(Violation, match="it started at 5"):
        looks(watched, seen, log)


def test_what_was_refused_may_not_happen_and_what_was_not_answered_may() -> None:
    deletable = Deletable()
    deletable.asked(7)
    deletable.asked(4)
    deletable.refused(7)
    assert not deletable.allows(5)
    assert deletable.allows(4)
    deletable.asked(ALL)
    assert deletable.allows(8)
    deletable.acknowledged(ALL, 8)
    assert not deletable.allows(9)


def test_reader_may_be_sent_away_only_below_a_start_that_was_asked_for() -> None:
    invariants, key = judge(), (UUID(int=1), 0)
    watched = invariants.watched[key] = Watched("t-0", cast(Any, SimpleNamespace()))
    watched.deletable.start_offset = 5
    invariants.refused_position(key, 4)
    with pytest.raises(Violation, match="D-HWE"):
        invariants.refused_position(key, 5)


@pytest.mark.parametrize(("start_offset", "is_whole"), [(0, False), (3, True)])
def test_acknowledged_records_may_be_missing_only_where_they_were_deleted(
    start_offset: int, is_whole: bool
) -> None:
    watched = Watched("t-0", None)
    watched.acknowledged.append(Acknowledged(base_offset=2, values=(b"2", b"3")))
    watched.read = {2: b"2"}
    with nullcontext() if is_whole else pytest.raises(Violation, match="D-ACK"):
        _keeps_acknowledged(watched, 1, {3: b"3"}, start_offset)
    with nullcontext() if is_whole else pytest.raises(Violation, match="D-ONE"):
        _keeps_read(watched, 1, {3: b"3"}, start_offset)
