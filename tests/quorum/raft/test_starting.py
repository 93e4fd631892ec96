"""What a disk lets a replica be: the log in line with its newest snapshot, or no start at all."""

from dataclasses import replace

from quorum.core.effects import EpochStart, LogState, ResetLog
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch
from quorum.raft.log import QuorumLog
from quorum.raft.starting import prepare_log
from tests.quorum.builders import replica, snapshot
from tests.quorum.replicas import bootstrap_snapshot

FILE = snapshot(50, 5)[1]
LOG = LogState(
    log=METADATA_LOG,
    start_offset=50,
    end_offset=60,
    last_epoch=6,
    epochs=(EpochStart(5, 50), EpochStart(6, 55)),
    snapshots=(FILE,),
)


def prepared(state: LogState) -> tuple[QuorumLog, str | None, bool]:
    """The log, the problem, and whether the log was reset."""
    node = replica()
    node.log = QuorumLog(state)
    problem = prepare_log(node)
    return node.log, problem, any(isinstance(e, ResetLog) for e in node.outbox.take())


def test_log_that_goes_on_from_a_snapshot_stays_as_it_is() -> None:
    log, problem, was_reset = prepared(LOG)
    assert (problem, was_reset) == (None, False)
    assert (log.start_offset, log.end, log.high_watermark) == (50, OffsetAndEpoch(60, 6), 50)


def test_empty_log_at_a_snapshot_has_its_epoch() -> None:
    bare = replace(LOG, end_offset=50, last_epoch=-1, epochs=())
    log, problem, was_reset = prepared(bare)
    assert (problem, was_reset) == (None, False)
    assert log.end == OffsetAndEpoch(50, 5)


def test_snapshot_beyond_the_end_of_the_log_takes_its_place() -> None:
    state = replace(LOG, start_offset=0, end_offset=40, last_epoch=5, epochs=(EpochStart(5, 0),))
    log, problem, was_reset = prepared(state)
    assert (problem, was_reset) == (None, True)
    assert (log.start_offset, log.end) == (50, OffsetAndEpoch(50, 5))


def test_log_that_has_other_records_than_the_snapshot_is_replaced() -> None:
    """A crash came between the leader's snapshot and the reset of a log that had diverged."""
    state = replace(LOG, start_offset=0, end_offset=70, last_epoch=4, epochs=(EpochStart(4, 0),))
    log, problem, was_reset = prepared(state)
    assert (problem, was_reset) == (None, True)
    assert log.end == OffsetAndEpoch(50, 5)


def test_log_that_begins_without_a_snapshot_is_refused() -> None:
    _, problem, _ = prepared(replace(LOG, snapshots=()))
    assert problem is not None
    assert "begins at 50" in problem


def test_older_snapshot_is_no_help() -> None:
    _, problem, _ = prepared(replace(LOG, snapshots=(snapshot(40, 4)[1],)))
    assert problem is not None


def test_bootstrap_snapshot_is_nothing_to_begin_from() -> None:
    state = LogState(log=METADATA_LOG, snapshots=(bootstrap_snapshot([1]),))
    log, problem, was_reset = prepared(state)
    assert (problem, was_reset) == (None, False)
    assert (log.latest_snapshot, log.high_watermark, log.end_offset) == (None, None, 0)


def test_records_of_a_segment_from_before_the_first_snapshot_do_not_count() -> None:
    state = replace(LOG, start_offset=45, epochs=(EpochStart(4, 45), EpochStart(5, 48)))
    log, problem, _ = prepared(replace(state, last_epoch=5))
    assert problem is None
    assert log.start_offset == 50
    assert log.epochs.entries == (EpochStart(5, 50),)
