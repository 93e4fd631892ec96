"""Which snapshots stay, where the log may begin, and what is saved."""

import pytest

from quorum.core.application import State
from quorum.core.effects import (
    Effect,
    EpochStart,
    LogState,
    SaveSnapshot,
    SnapshotSaved,
    Token,
    Trim,
    Trimmed,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch
from quorum.raft.compaction import Compaction, start_after_cleaning
from quorum.raft.config import SnapshotSettings
from quorum.raft.log import QuorumLog
from quorum.raft.replica import Replica
from tests.quorum.builders import replica, snapshot
from tests.quorum.ledger import batches_of
from tests.quorum.replicas import bootstrap_snapshot
from wire.batch import verify
from wire.control_records import KRaftVersion

DAY_MS = 86_400_000


def compacted(*ends: int, log_bytes: int = 0, **settings: int) -> Replica:
    """A log of 100 records with a snapshot a day."""
    node = replica(snapshots=SnapshotSettings(**settings))
    snapshots = [
        snapshot(end, 4, timestamp_ms=day * DAY_MS)[1] for day, end in enumerate(ends, start=1)
    ]
    node.log = QuorumLog(
        LogState(
            log=METADATA_LOG,
            end_offset=100,
            last_epoch=4,
            epochs=(EpochStart(2, 0), EpochStart(4, 5)),
            size_bytes=log_bytes,
            snapshots=tuple(snapshots),
        )
    )
    return node


SIZE = compacted(10).log.snapshots[0].size_bytes


def state(end_offset: int) -> State:
    return State(end_offset=end_offset, batches=batches_of([b"x"]))


def of_kind(effects: list[Effect], kind: type) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, kind)]


# --- cleaning -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "log_bytes", "settings", "start_offset"),
    [
        ((), 10_000, {"retention_bytes": 0}, None),
        ((10,), 10_000, {"retention_bytes": 0, "retention_ms": 0}, None),  # the newest stays
        ((10, 20), 0, {"retention_bytes": 2 * SIZE}, None),
        ((10, 20), 1, {"retention_bytes": 2 * SIZE}, 20),
        ((10, 20, 30), 10_000, {"retention_bytes": 0}, 20),  # one at a time
        ((10, 20), 10_000, {"retention_bytes": -1}, None),
        ((10, 20), 0, {"retention_ms": 7 * DAY_MS}, None),
        ((10, 20), 0, {"retention_ms": 7 * DAY_MS - 1}, 20),
        ((10, 20), 0, {"retention_ms": -1}, None),
    ],
)
def test_oldest_snapshot_goes_when_all_is_too_large_or_it_is_too_old(
    ends: tuple[int, ...], log_bytes: int, settings: dict[str, int], start_offset: int | None
) -> None:
    node = compacted(*ends, log_bytes=log_bytes, **settings)
    assert start_after_cleaning(node, now_ms=8 * DAY_MS) == start_offset


def test_bootstrap_snapshot_is_the_oldest() -> None:
    """As in Kafka: it is one of the snapshots, so the first real one may take its place."""
    node = compacted(10)
    node.log.snapshots = (bootstrap_snapshot([1]), *node.log.snapshots)
    assert start_after_cleaning(node, now_ms=10 * DAY_MS) == 10


def test_snapshots_are_looked_at_once_a_minute() -> None:
    node, compaction = compacted(10, 20, retention_bytes=2 * SIZE), Compaction()
    compaction.poll(node, 0)
    node.log.size_bytes = 1
    times = (59_999, 60_000)
    for now_ms in times:
        assert compaction.deadline_ms(node) == 60_000
        compaction.poll(node, now_ms)
    assert len(of_kind(node.outbox.take(), Trim)) == 1


def test_cleaning_goes_on_until_all_is_small_enough() -> None:
    node = compacted(10, 20, 30, log_bytes=1000, retention_bytes=2 * SIZE)
    compaction = Compaction()
    compaction.poll(node, 0)
    (trim,) = of_kind(node.outbox.take(), Trim)
    assert isinstance(trim, Trim)
    assert trim.start_offset == node.log.start_offset == 20
    assert [file.id.offset for file in node.log.snapshots] == [20, 30]
    compaction.poll(node, 0)
    assert of_kind(node.outbox.take(), Trim) == [], "first hear how large the log is now"
    assert compaction.deadline_ms(node) is None
    compaction.trimmed(node, _trimmed(trim, size_bytes=10), 0)
    compaction.poll(node, 0)
    (trim,) = of_kind(node.outbox.take(), Trim)
    assert isinstance(trim, Trim)
    compaction.trimmed(node, _trimmed(trim, size_bytes=5), 0)
    compaction.poll(node, 0)
    assert node.outbox.take() == []
    assert (node.log.start_offset, node.log.size_bytes) == (30, 5)
    assert compaction.deadline_ms(node) is None, "there is no choice left"


def _trimmed(trim: Trim, size_bytes: int) -> Trimmed:
    return Trimmed(
        token=trim.token,
        log=METADATA_LOG,
        start_offset=trim.start_offset,
        size_bytes=size_bytes,
    )


def test_size_of_a_log_that_was_replaced_meanwhile_is_no_news() -> None:
    node = compacted(10, 20, log_bytes=1000, retention_bytes=0)
    compaction = Compaction()
    compaction.poll(node, 0)
    (trim,) = of_kind(node.outbox.take(), Trim)
    assert isinstance(trim, Trim)
    node.log.reset(snapshot(200, 4)[1], syncing=99)
    compaction.trimmed(node, _trimmed(trim, size_bytes=700), 0)
    assert (node.log.size_bytes, compaction.trimming) == (0, None)


def test_age_is_looked_at_again_after_a_while() -> None:
    node = compacted(10, 20, retention_ms=DAY_MS)
    compaction = Compaction()
    compaction.poll(node, DAY_MS)
    assert node.outbox.take() == []
    due_ms = compaction.deadline_ms(node)
    assert due_ms == DAY_MS + 60_000
    compaction.poll(node, 3 * DAY_MS)
    assert len(of_kind(node.outbox.take(), Trim)) == 1


# --- saving ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("end_offset", "epoch"), [(5, 2), (6, 4), (100, 4)])
def test_id_is_the_end_and_the_epoch_of_the_last_record_before_it(
    end_offset: int, epoch: int
) -> None:
    node = compacted()
    node.log.advance_high_watermark(100)
    compaction = Compaction()
    compaction.save(node, state(end_offset), 1234)
    (effect,) = node.outbox.take()
    assert isinstance(effect, SaveSnapshot)
    assert effect.id == OffsetAndEpoch(end_offset, epoch)
    found = verify(b"".join(effect.content))
    assert {header.leader_epoch for header in found} == {epoch}
    assert found[0].max_timestamp_ms == 1234


def test_voters_are_those_in_force_at_its_end() -> None:
    node = replica(dynamic=True)
    node.log.advance_high_watermark(10)
    history_end = 9  # kraft.version 1 is the record at 9
    for end_offset, controls in ((history_end, 1), (10, 3)):
        compaction = Compaction()
        compaction.save(node, state(end_offset), 0)
        (effect,) = node.outbox.take()
        assert isinstance(effect, SaveSnapshot)
        assert verify(next(effect.content))[0].record_count == controls


@pytest.mark.parametrize("end_offset", [10, 9, 0, 51, 101])
def test_state_must_be_committed_and_not_before_the_log(end_offset: int) -> None:
    node = compacted()
    node.log.snapshots = (snapshot(10, 4)[1],)
    node.log.advance_high_watermark(50)
    node.log.trim(10)
    with pytest.raises(AssertionError):
        Compaction().save(node, state(end_offset), 0)


def test_one_snapshot_is_saved_at_a_time() -> None:
    node = compacted()
    node.log.advance_high_watermark(50)
    compaction = Compaction()
    compaction.save(node, state(20), 0)
    with pytest.raises(AssertionError, match="one snapshot at a time"):
        compaction.save(node, state(30), 0)


def saving() -> tuple[Replica, Compaction, SaveSnapshot]:
    node = compacted(retention_bytes=0)
    node.log.advance_high_watermark(50)
    compaction = Compaction()
    compaction.save(node, state(30), 0)
    (effect,) = node.outbox.take()
    assert isinstance(effect, SaveSnapshot)
    return node, compaction, effect


def saved(token: Token, end_offset: int = 30) -> SnapshotSaved:
    return SnapshotSaved(token=token, log=METADATA_LOG, file=snapshot(end_offset, 4)[1])


def test_saved_snapshot_counts_from_then_on() -> None:
    node, compaction, effect = saving()
    assert node.log.latest_snapshot is None
    compaction.saved(node, saved(effect.token), 0)
    assert compaction.saving is None
    assert node.log.latest_snapshot is not None
    assert node.log.latest_snapshot.id == OffsetAndEpoch(30, 4)


def test_snapshot_of_somebody_else_is_not_ours() -> None:
    node, compaction, _ = saving()
    compaction.saved(node, saved(Token("raft", 999)), 0)
    assert compaction.saving is not None
    assert node.log.snapshots == ()


def test_snapshot_that_a_later_one_has_overtaken_is_forgotten() -> None:
    node, compaction, effect = saving()
    later = snapshot(60, 4)[1]
    node.log.reset(later, syncing=1)
    compaction.saved(node, saved(effect.token), 0)
    assert node.log.snapshots == (later,)
    assert compaction.saving is None


def test_kraft_version_of_the_bootstrap_is_not_confused_with_that_of_a_snapshot() -> None:
    node = replica(dynamic=True)
    assert node.history.at(10).head_records()[0] == KRaftVersion(kraft_version=1)
    assert node.history.at(9).head_records() == ()
