"""What is done to topics in some random clusters, and what is judged of it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.metadata.changes import Change, encode_changes
from controller.metadata.image import MetadataImage
from jepsen_like.sim.cluster.end import check_end
from jepsen_like.sim.cluster.metadata_invariants import MetadataInvariants
from jepsen_like.sim.cluster.options import draw_cluster_options, draw_run
from jepsen_like.sim.cluster.topic_operations import Operations
from jepsen_like.sim.logtree import LogTree
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.virtual_time import VirtualTime
from tests.controller.clusters import TOPIC, level, partition, registered
from wire.batch import assign
from wire.metadata_records import PartitionChangeRecord, TopicRecord

SEEDS = range(500)


def test_each_kind_is_drawn_in_a_share_of_the_seeds_and_changes_no_other_draw() -> None:
    drawn = [draw_run(VirtualTime(seed)) for seed in SEEDS]
    old = [draw_cluster_options(VirtualTime(seed).fork("options")) for seed in SEEDS]
    wide = [options.operations.wide_interval_ms > 0 for options in drawn]
    assert 30 <= sum(wide) <= 70
    for options, before in zip(drawn, old, strict=True):
        assert before.operations == Operations()
        assert all(
            getattr(options, name) == getattr(before, name)
            for name in before.__slots__
            if name != "operations"
        )


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
    )
    check_end(cast(Any, cluster))
    cluster.wide_topics.expected["wide-2"] = 100
    with pytest.raises(Violation, match="wide-2 has 0 partitions, not 100"):
        check_end(cast(Any, cluster))
