"""The shipped storage on a virtual disk: it keeps its promises, and a broken one is seen."""

from contextlib import nullcontext

import pytest

from jepsen_like.planted.every_bug import BUGS, planted
from jepsen_like.sim.assemblies.quorum.quorum_options import Options, draw_options, draw_storage
from jepsen_like.sim.assemblies.quorum.simulation import Simulation
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.promises import found
from jepsen_like.sim.disks.shipped_disk import FileOptions
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.core.effects import Durability, LogState
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.snapshots import snapshot_content, snapshot_head
from tests.quorum.log_files import batch
from tests.sim.storage_bench import StorageBench, run_storage

SEEDS = range(60)
# A seed of `run_storage` that finds each bug.
FOUND_AT = {
    "appends_over_what_may_come_back": 31,
    "forgets_the_name_of_a_new_segment": 21,
    "publishes_without_a_sync": 0,
    "renames_without_a_sync": 4,
    "replaces_without_a_sync": 1,
    "takes_a_falling_epoch": 17,
    "tolerates_one_lost_record": 1,
    "trusts_what_a_failed_sync_left": 80,
    "uses_the_descriptor_of_another_file": 5,
}


# --- promises ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_storage_keeps_its_promises(seed: int) -> None:
    run_storage(seed)


def test_every_fault_happens_to_it() -> None:
    happened = set()
    for seed in SEEDS:
        counts = run_storage(seed).counts
        happened |= {kind for kind, times in counts.by_kind.items() if times}
    assert happened >= {
        "bit_flipped",
        "died_at_start",
        "fsync_failed",
        "lost_entry",
        "lost_sectors",
        "read_failed",
        "shipped_storage",
        "write_failed",
    }


@pytest.mark.parametrize("name", BUGS["file"])
def test_planted_bug_is_found_without_a_quorum(name: str) -> None:
    seeds = (FOUND_AT[name], *range(200))
    with planted(name):
        found = next((seed for seed in seeds if breaks(seed)), None)
    assert found == FOUND_AT[name], f"found at {found} now: enter it in FOUND_AT"


def breaks(seed: int) -> bool:
    try:
        run_storage(seed)
    except Violation:
        return True
    return False


def test_what_is_stored_survives_and_what_is_not_may_go() -> None:
    ends = set()
    for seed in SEEDS:
        bench = StorageBench(seed)
        tokens = [bench.append() for _ in range(4)]
        assert tokens[-1] in bench.stored()
        for _ in range(4):
            bench.append()
        ends.add(bench.crash())
    assert min(ends) == 4
    assert max(ends) == 8


def test_truncation_lasts_before_anything_is_appended_in_its_place() -> None:
    """Nobody asked for that, and yet the old records must not come back among the new ones."""
    for seed in SEEDS:
        bench = StorageBench(seed)
        for _ in range(10):
            bench.append()
        bench.stored()
        bench.durability = Durability.WRITTEN
        bench.truncate(3)
        bench.stored()
        assert bench.crash() == 3


def test_vote_is_durable_when_it_is_stored() -> None:
    for seed in SEEDS:
        bench = StorageBench(seed)
        token = bench.save_election()
        assert token in bench.stored()
        bench.disk.crash(power_loss=True)
        _, election = bench.disk.recover(METADATA_LOG)
        assert election.epoch == bench.epoch


def ledger() -> tuple[StorageBench, StoredLog]:
    """Three records, of which two are promised, and an election."""
    bench = StorageBench(0)
    bench.append()
    bench.append()
    bench.save_election()
    bench.stored()
    bench.append()
    return bench, bench.disk.log(METADATA_LOG)


@pytest.mark.parametrize(("count", "is_kept"), [(1, False), (2, True), (3, True)])
def test_lost_record_breaks_a_promise(count: int, is_kept: bool) -> None:
    _, stored = ledger()
    kept = b"".join(entry.records for entry in stored.written.entries[:count])
    state = LogState(log=METADATA_LOG, end_offset=count, last_epoch=1)
    with nullcontext() if is_kept else pytest.raises(Violation, match="S-DU"):
        found(stored, state, kept, stored.election, {})


def test_lost_vote_breaks_a_promise() -> None:
    _, stored = ledger()
    state = LogState(log=METADATA_LOG, end_offset=3, last_epoch=1)
    records = b"".join(entry.records for entry in stored.written.entries)
    with pytest.raises(Violation, match="S-DU"):
        found(stored, state, records, ElectionState(), {})


def test_truncated_record_that_comes_back_breaks_a_promise() -> None:
    bench, stored = ledger()
    records = b"".join(entry.records for entry in stored.written.entries)
    bench.truncate(1)
    bench.stored()
    state = LogState(log=METADATA_LOG, end_offset=3, last_epoch=1)
    with pytest.raises(Violation, match="S-DU"):
        found(stored, state, records, stored.election, {})


def test_lost_snapshot_breaks_a_promise() -> None:
    bench, stored = ledger()
    bench.save_snapshot()
    bench.stored()
    assert len(stored.snapshots.whole) == 1
    state = LogState(log=METADATA_LOG, end_offset=3, last_epoch=1)
    records = b"".join(entry.records for entry in stored.written.entries)
    with pytest.raises(Violation, match="S-DU"):
        found(stored, state, records, stored.election, {})


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_snapshot_replaces_records_that_were_never_committed(has_snapshot: bool) -> None:
    """Quorum seed 234005978: the process died between receiving it and beginning the log anew."""
    _, stored = ledger()
    stored.tree.extend(None, b"".join(batch(offset, epoch=9) for offset in range(5)))
    end = OffsetAndEpoch(5, 9)
    content = b"".join(snapshot_content(snapshot_head(0, ()), (), epoch=9, last_timestamp_ms=0))
    state = LogState(log=METADATA_LOG, start_offset=5, end_offset=5, last_epoch=9)
    snapshots = {end: content} if has_snapshot else {}
    with nullcontext() if snapshots else pytest.raises(Violation, match="was promised"):
        found(stored, state, b"", stored.election, snapshots)


# --- starts -----------------------------------------------------------------------------------


def test_process_dies_in_the_midst_of_starts_until_one_succeeds() -> None:
    bench = StorageBench(1, options=FileOptions(dies_at_start=1.0))
    for _ in range(5):
        bench.append()
        bench.stored()
        bench.crash()
    assert bench.end_offset == 5
    assert bench.counts.by_kind["died_at_start"] > 0


def test_disk_that_fails_at_every_start_is_mended_in_the_end() -> None:
    bench = StorageBench(0, faults=DiskFaults(read_failure=0.5))
    bench.crash()
    assert bench.counts.by_kind["read_failed"] > 0


def test_wiped_disk_is_empty_and_another_one() -> None:
    bench = StorageBench(0)
    bench.append()
    bench.stored()
    bench.disk.crash(power_loss=True)
    bench.disk.wipe()
    bench.start()
    assert (bench.end_offset, bench.disk.generation) == (0, 1)


def test_orderly_stop_keeps_what_was_only_written() -> None:
    for seed in SEEDS:
        bench = StorageBench(seed)
        bench.durability = Durability.WRITTEN
        bench.append()
        bench.disk.close()
        assert bench.crash() == 1


# --- in seeds of the quorum -------------------------------------------------------------------


def test_one_seed_in_eight_runs_it() -> None:
    count = sum(
        draw_storage(Options(), VirtualTime(seed).fork("storage")).files is not None
        for seed in range(2000)
    )
    assert 200 < count < 300


def test_drawing_it_changes_no_other_draw() -> None:
    for seed in range(20):
        drawn = draw_options(VirtualTime(seed).fork("options"))
        with_files = draw_storage(drawn, VirtualTime(seed).fork("storage"), is_wanted=True)
        assert with_files.files is not None
        assert with_files.snapshots == drawn.snapshots
        assert with_files.links == drawn.links


@pytest.mark.parametrize("seed", range(4))
def test_run_on_files_can_be_seen_again(seed: int) -> None:
    digests = set()
    for _ in range(2):
        simulation = Simulation(seed, on_files=True)
        simulation.run()
        digests.add(str(simulation.quorum.digest))
    assert len(digests) == 1
