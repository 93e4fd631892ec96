"""Clusters whose partition logs lie on the shipped storage: what a restart may find of them."""

from contextlib import nullcontext
from dataclasses import replace
from uuid import UUID

import pytest

from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.assemblies.cluster.cluster_options import draw_run
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.disks.partition_ledgers import PartitionLedgers, _content_of
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.core.effects import (
    Append,
    DeleteLog,
    Durability,
    LogState,
    Opened,
    OpenLog,
    Token,
    Trim,
)
from quorum.core.producers import ProducerBatch, ProducerEntry
from tests.sim.storage_bench import append_in_files, on_files
from wire.batch import Record, assign, build_batch, data_batch
from wire.transaction_markers import Marker, build_marker

TOPIC = UUID(int=7)
TOKEN = Token("broker", 1)


def test_one_seed_of_twelve_has_its_partitions_there() -> None:
    drawn = [draw_run(VirtualTime(seed)) for seed in range(300)]
    on_files = [each for each in drawn if each.quorum.files and each.quorum.files.holds_partitions]
    assert 12 <= len(on_files) <= 45
    assert all(each.brokers_lose_power and each.directories == 1 for each in on_files)


@pytest.mark.parametrize("seed", [2])
def test_rules_hold(seed: int) -> None:
    options = draw_run(VirtualTime(seed), wants={"partition storage"})
    outcome = run_cluster(seed, options=options)
    assert outcome.kind == "ok", outcome.detail
    assert outcome.faults["lost_sectors"] > 0


def ledger(*values: bytes, producer_id: int = -1) -> tuple[PartitionLedgers, StoredLog]:
    tree = LogTree("D-ONE", "D-DIV")
    stored = StoredLog(tree=tree, topic_id=TOPIC, has_snapshots=False)
    for offset, value in enumerate(values):
        batch = build_batch(
            [Record(value=value)],
            timestamp_ms=1,
            producer_id=producer_id,
            producer_epoch=min(producer_id, 0),
            base_sequence=offset if producer_id >= 0 else -1,
        )
        records = assign(batch, base_offset=offset, leader_epoch=0)
        stored.write(Append(log="t-0", token=TOKEN, records=records, durability=Durability.WRITTEN))
    ledgers = PartitionLedgers({"t-0": stored}, lambda _log, _topic_id: tree)
    ledgers.opens(OpenLog(log="t-0", token=TOKEN, topic_id=TOPIC))
    return ledgers, stored


def opened(*, end_offset: int = 2, high_watermark: int = 0) -> Opened:
    state = LogState(
        log="t-0", topic_id=TOPIC, end_offset=end_offset, high_watermark=high_watermark
    )
    return Opened(token=TOKEN, state=state)


def test_what_is_opened_is_what_was_found() -> None:
    ledgers, stored = ledger(b"x", b"y")
    ledgers.note(opened())
    assert stored.durable.end_offset == 2
    with pytest.raises(Violation, match="S-DU"):
        ledgers.note(opened(end_offset=1))


def test_what_was_synced_is_there_from_where_the_log_begins_on() -> None:
    """A start that was moved behind it excuses that it has gone, if the start has lasted."""
    ledgers, stored = ledger(b"x", b"y")
    ledgers.note(opened())
    stored.trim(2)
    state = LogState(log="t-0", topic_id=TOPIC, start_offset=1, end_offset=1)
    with pytest.raises(Violation, match="was synced"):
        ledgers._found(state, stored, b"", lost=True)


@pytest.mark.parametrize("start_offset", [1, 2])
def test_log_starts_where_its_start_was_moved(start_offset: int) -> None:
    """An empty log right behind a synced record would pass for one that was trimmed to there."""
    ledgers, stored = ledger(b"x", b"y")
    ledgers.note(opened())
    rest = b"".join(entry.records for entry in stored.written.entries[start_offset:])
    state = LogState(log="t-0", topic_id=TOPIC, start_offset=start_offset, end_offset=2)
    with pytest.raises(Violation, match="moved to 0 at most"):
        ledgers._found(state, stored, rest, lost=True)
    stored.trim(start_offset)
    ledgers._found(state, stored, rest, lost=True)
    ledgers.note(Opened(token=TOKEN, state=state))


@pytest.mark.parametrize("plant", [None, "keeps_the_start_of_a_deleted_log"])
def test_log_of_the_same_name_begins_at_0_though_the_deleted_one_was_trimmed(
    plant: str | None,
) -> None:
    with planted(plant), nullcontext() if plant is None else pytest.raises(Violation, match="S-DU"):
        bench = on_files(1, synced=8)
        bench.perform(Trim(log="t-0", token=bench.token(), start_offset=2))
        bench.run(50)
        bench.perform(DeleteLog(log="t-0", token=bench.token()))
        bench.perform(OpenLog(log="t-0", token=bench.token(), topic_id=UUID(int=8)))
        bench.run(50)
        for offset in range(2):
            append_in_files(bench, offset, is_synced=True)
        bench.run(50)
        bench.crash(power_loss=True)
        assert bench.disk.log("t-0").written.start_offset == 0


@pytest.mark.parametrize("plant", [None, "begins_a_segment_without_the_names_before"])
def test_log_begins_with_its_first_segment_whatever_names_the_power_takes(
    plant: str | None,
) -> None:
    """The seed is the first at which a later name lasts without those before it."""
    with planted(plant), nullcontext() if plant is None else pytest.raises(Violation, match="S-DU"):
        bench = on_files(42)
        bench.crash(power_loss=True)
        assert bench.disk.log("t-0").written.start_offset == 0


def test_what_is_opened_has_its_producers() -> None:
    ledgers, _ = ledger(b"x", producer_id=3)
    batch = ProducerBatch(base_sequence=0, last_sequence=0, last_offset=0, timestamp_ms=1)
    state = LogState(log="t-0", topic_id=TOPIC, end_offset=1)
    with pytest.raises(Violation, match="S-PR"):
        ledgers.note(Opened(token=TOKEN, state=state))
    for wrong in (
        ProducerEntry(3, 1, (batch,)),
        ProducerEntry(3, 0, (batch._replace(base_sequence=4),)),
        ProducerEntry(3, 0, (batch, batch._replace(last_offset=1))),
    ):
        with pytest.raises(Violation, match="S-PR"):
            ledgers.note(Opened(token=TOKEN, state=replace(state, producers=(wrong,))))
    known = replace(state, producers=(ProducerEntry(3, 0, (batch,)),))
    ledgers.note(Opened(token=TOKEN, state=known))


def test_time_of_a_producer_may_be_that_of_its_last_marker() -> None:
    """Seed 40072: the marker came from a broker whose clock was ahead of the client's."""
    ledgers, stored = ledger(b"x", producer_id=3)
    marker = build_marker(Marker(3, 0, is_commit=True, coordinator_epoch=0), timestamp_ms=18)
    records = assign(marker, base_offset=1, leader_epoch=0)
    stored.write(Append(log="t-0", token=TOKEN, records=records, durability=Durability.WRITTEN))
    batch = ProducerBatch(base_sequence=0, last_sequence=0, last_offset=0, timestamp_ms=17)
    told = ProducerEntry(3, 0, (batch,), coordinator_epoch=0, marker_ms=18)
    state = LogState(log="t-0", topic_id=TOPIC, end_offset=2, producers=(told,))
    with pytest.raises(Violation, match="S-PR"):
        ledgers.note(Opened(token=TOKEN, state=state))
    late = told._replace(batches=(batch._replace(timestamp_ms=18),))
    ledgers.note(Opened(token=TOKEN, state=replace(state, producers=(late,))))


def test_last_marker_of_a_producer_may_have_been_trimmed() -> None:
    """Seed 300004940: its time stands in the snapshot of the producers alone."""
    ledgers, _ = ledger(b"x", producer_id=3)
    batch = ProducerBatch(base_sequence=0, last_sequence=0, last_offset=0, timestamp_ms=18)
    known = ProducerEntry(3, 0, (batch,), coordinator_epoch=0, marker_ms=18)
    state = LogState(log="t-0", topic_id=TOPIC, end_offset=1)
    ledgers.note(Opened(token=TOKEN, state=replace(state, producers=(known,))))
    unmarked = known._replace(marker_ms=-1)
    with pytest.raises(Violation, match="S-PR"):
        ledgers.note(Opened(token=TOKEN, state=replace(state, producers=(unmarked,))))


def test_what_is_opened_has_no_producer_of_what_is_gone() -> None:
    """Its repetition would be acknowledged, and the batch is nowhere."""
    ledgers, _ = ledger(b"x")
    gone = ProducerEntry(9, 0, (ProducerBatch(0, 0, last_offset=7, timestamp_ms=1),))
    state = LogState(log="t-0", topic_id=TOPIC, end_offset=1, producers=(gone,))
    with pytest.raises(Violation, match="S-PR"):
        ledgers.note(Opened(token=TOKEN, state=state))


def test_high_watermark_was_saved_of_this_log() -> None:
    ledgers, _ = ledger(b"x", b"y")
    ledgers.saves((("t", 0, 1),))
    ledgers.note(opened(high_watermark=1))
    with pytest.raises(Violation, match="S-HW"):
        ledgers.note(opened(high_watermark=2))


def test_log_that_has_lost_its_records_goes_on_behind_those_before_its_segment() -> None:
    """A power failure took what its start lay behind; nobody had let go of what comes before."""
    _, stored = ledger(b"x", b"y", b"z")
    before = stored.written.entries[1]
    state = LogState(log="t-0", topic_id=TOPIC, start_offset=2, end_offset=2)
    stored.written = _content_of(stored, state, b"")
    assert stored.written.last is before
    records = assign(data_batch([b"other"], timestamp_ms=1), base_offset=2, leader_epoch=1)
    stored.write(Append(log="t-0", token=TOKEN, records=records, durability=Durability.WRITTEN))
    assert stored.written.entries[0].parent is before


def test_log_that_was_trimmed_to_its_end_stands_behind_its_own_last_batch() -> None:
    """Cluster seed 201002283: another log of the same history had a later batch at that offset."""
    _, stored = ledger(b"x", b"y")
    own, before = stored.written.entries[1], stored.written.entries[0]
    batch = data_batch([b"other"], timestamp_ms=1)
    stored.tree.extend(before, assign(batch, base_offset=1, leader_epoch=1))
    state = LogState(log="t-0", topic_id=TOPIC, start_offset=2, end_offset=2)
    assert _content_of(stored, state, b"").last is own
