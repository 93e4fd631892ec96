"""What is judged of brokers by the settings of topics, and of producers with five in flight."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.partition.partition import LeaderOf
from controller.metadata.image import MetadataImage
from jepsen_like.sim.assemblies.cluster.cluster_options import draw_run
from jepsen_like.sim.assemblies.cluster.invariants.broker_invariants import SettingInvariants
from jepsen_like.sim.assemblies.cluster.invariants.metadata_answers import ImagesOfTurn
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import Watched
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.core.effects import Append, Durability, Retain, Token
from tests.controller.clusters import cluster, step
from wire.batch import Record, assign, build_batch
from wire.metadata_records import ConfigRecord

KEY = (UUID(int=7), 0)
TOKEN = Token("test", 1)
NOW_MS = 1_000_000


def image(**settings: object) -> MetadataImage:
    """Of a topic `t` with these settings."""
    records = [
        ConfigRecord(
            resource_type=2, resource_name="t", name=name.replace("_", "."), value=str(value)
        )
        for name, value in settings.items()
    ]
    return step(cluster(1), *records)


def batches(count: int, *, timestamp_ms: int = NOW_MS) -> list[bytes]:
    return [
        assign(
            build_batch([Record(value=b"x")], timestamp_ms=timestamp_ms + base),
            base_offset=base,
            leader_epoch=1,
        )
        for base in range(count)
    ]


class Bench:
    """A leader of `t-0`, with a log of five batches of which four are exposed."""

    def __init__(self, now: MetadataImage, *before: MetadataImage, leader_epoch: int = 1) -> None:
        self.watched = Watched("t-0", None)
        self.fired: list[str] = []
        self.stored = StoredLog(LogTree(), KEY[0])
        for records in batches(5):
            append = Append(log="t-0", token=TOKEN, records=records, durability=Durability.WRITTEN)
            self.stored.write(append)
        log = SimpleNamespace(high_watermark=4)
        role = LeaderOf.__new__(LeaderOf)
        role.leader_epoch = leader_epoch
        partition = SimpleNamespace(
            name="t-0", topic="t", topic_id=KEY[0], index=0, log=log, open_log=log, role=role
        )
        broker = SimpleNamespace(
            replicas=[partition],
            cluster=SimpleNamespace(image=now),
            metadata=SimpleNamespace(published_offset=9),
        )
        self._host = SimpleNamespace(
            node_id=1, now_ms=NOW_MS, disk=SimpleNamespace(log=lambda _name: self.stored)
        )

        def images(_first: int, _last: int) -> Iterable[MetadataImage]:
            return iter(before)

        broker_of = cast(Any, lambda _host: broker)
        self._judge = SettingInvariants(
            broker_of,
            ImagesOfTurn(cast(Any, images)),
            cast(Any, SimpleNamespace(watched={KEY: self.watched})),
            self.fired.append,
        )

    def performs(self, effect: Append | Retain) -> None:
        self._judge.performing(cast(Any, self._host), effect)

    def retains(self, *, end_offset: int, since_ms: int | None, bytes_max: int | None) -> None:
        self.performs(
            Retain(
                log="t-0",
                token=TOKEN,
                end_offset=end_offset,
                since_ms=since_ms,
                bytes_max=bytes_max,
            )
        )


def test_retention_by_the_limits_of_the_topic_moves_where_logs_may_start() -> None:
    bench = Bench(image(retention_ms=-1, retention_bytes=2 * len(batches(1)[0])))
    bench.retains(end_offset=4, since_ms=None, bytes_max=2 * len(batches(1)[0]))
    assert bench.watched.deletable.start_offset == 3
    assert bench.fired == ["retained"]


def test_old_batches_go_one_by_one_up_to_what_is_exposed() -> None:
    bench = Bench(image(retention_ms=100, retention_bytes=-1))
    bench.retains(end_offset=4, since_ms=NOW_MS - 100, bytes_max=None)
    assert bench.watched.deletable.start_offset == 0
    assert (
        bench.stored.retained_from(
            Retain(log="t-0", token=TOKEN, end_offset=4, since_ms=NOW_MS + 100, bytes_max=None)
        )
        == 4
    )


def test_retention_must_not_let_go_of_what_is_not_exposed() -> None:
    bench = Bench(image(retention_ms=-1, retention_bytes=0))
    with pytest.raises(Violation, match="exposed are those up to 4"):
        bench.retains(end_offset=5, since_ms=None, bytes_max=0)


def test_retention_must_not_go_by_other_limits() -> None:
    bench = Bench(image(retention_ms=-1, retention_bytes=0))
    with pytest.raises(Violation, match="D-RET"):
        bench.retains(end_offset=4, since_ms=None, bytes_max=1)


def test_limits_of_any_moment_of_the_turn_count() -> None:
    bench = Bench(image(retention_ms=-1, retention_bytes=0), image(retention_bytes=70))
    bench.retains(end_offset=4, since_ms=NOW_MS - 604_800_000, bytes_max=70)


def test_batch_may_be_as_large_as_the_topic_says_and_no_larger() -> None:
    records = batches(1)[0]
    append = Append(log="t-0", token=TOKEN, records=records)
    Bench(image(max_message_bytes=len(records))).performs(append)
    with pytest.raises(Violation, match="D-MSG"):
        Bench(image(max_message_bytes=len(records) - 1)).performs(append)


def test_batch_of_an_earlier_leader_is_as_large_as_that_one_took_it() -> None:
    """Cluster seed 280007428: a follower writes it in the turn in which it comes to lead."""
    append = Append(log="t-0", token=TOKEN, records=batches(1)[0])
    Bench(image(max_message_bytes=10), leader_epoch=5).performs(append)


def test_size_that_was_allowed_when_the_turn_began_is_allowed_in_it() -> None:
    """Found by cluster seed 500025: the setting came in the turn in which the batch had come."""
    records = batches(1)[0]
    append = Append(log="t-0", token=TOKEN, records=records)
    Bench(image(max_message_bytes=10), image()).performs(append)


def test_sequence_may_be_refused_only_where_records_were_let_go_of() -> None:
    judge = PartitionInvariants(
        moment=lambda: 0,
        hosts={},
        broker_of=lambda _node: None,
        metadata=MetadataInvariants(lambda: 0),
    )
    watched = judge.watched[KEY] = Watched("t-0", None)
    with pytest.raises(Violation, match="H-SEQ"):
        judge.refused_sequence(KEY, 3)
    watched.deletable.retained(2)
    judge.refused_sequence(KEY, 3)


def test_settings_and_batches_in_flight_are_drawn_in_shares() -> None:
    drawn = [draw_run(VirtualTime(seed)) for seed in range(400)]
    assert 70 <= sum(options.operations.setting_interval_ms > 0 for options in drawn) <= 130
    assert 160 <= sum(options.operations.in_flight_max == 5 for options in drawn) <= 240
