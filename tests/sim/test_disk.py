"""The faulty disk: what it promises, and that it breaks nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen_like.sim.violation import Violation
from quorum.core.effects import (
    Durability,
    EpochStart,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    SaveElection,
    StorageFailed,
    Stored,
    Token,
    Truncate,
)
from quorum.core.types import ElectionState
from tests.sim.disk_bench import LOG, DiskBench
from wire.primitives import ZERO_UUID


class Bench(DiskBench):
    def truncate(self, end_offset: int) -> Token:
        token = self.token()
        self.disk.perform(
            Truncate(log=LOG, token=token, end_offset=end_offset, durability=Durability.SYNCED)
        )
        return token

    def save(self, epoch: int) -> Token:
        token = self.token()
        self.disk.perform(SaveElection(log=LOG, token=token, election=ElectionState(epoch=epoch)))
        return token


def test_one_sync_serves_all_that_waits_and_names_the_last() -> None:
    bench = Bench()
    bench.append(0)
    bench.append(1)
    last = bench.append(2)
    bench.settle()
    assert bench.events == [Stored(log=LOG, token=last)]
    assert bench.crash().end_offset == 3


def test_what_is_only_written_gets_no_stored() -> None:
    bench = Bench()
    bench.append(0, synced=False)
    bench.settle()
    assert bench.events == []


def test_power_loss_keeps_a_prefix_of_the_unsynced_tail() -> None:
    ends = set()
    for seed in range(40):
        bench = Bench(seed)
        bench.append(0)
        bench.settle()
        for offset in range(1, 5):
            bench.append(offset)
        bench.disk.begin_syncs()
        ends.add(bench.crash().end_offset)
    assert ends == {1, 2, 3, 4, 5}


def test_kill_keeps_everything_written() -> None:
    for seed in range(20):
        bench = Bench(seed)
        bench.append(0, synced=False)
        bench.append(1)
        assert bench.crash(power_loss=False).end_offset == 2


def test_nothing_after_an_election_survives_without_it() -> None:
    seen = set()
    for seed in range(40):
        bench = Bench(seed)
        bench.save(7)
        bench.append(0, epoch=7)
        bench.disk.crash(power_loss=seed % 2 == 0)
        state, election = bench.disk.recover(LOG)
        seen.add((election.epoch, state.end_offset))
    assert seen == {(0, 0), (7, 0), (7, 1)} or seen == {(0, 0), (7, 1)}


def test_torn_write_is_cut_at_the_first_bad_checksum() -> None:
    torn = 0
    for seed in range(40):
        bench = Bench(seed, torn_write=1.0)
        bench.append(0)
        bench.settle()
        bench.append(1, size=3)
        end = bench.crash().end_offset
        assert end in (1, 4)
        torn += bench.counts.by_kind["torn_write"]
        bench.append(end, epoch=2)  # and the log goes on where it ends
    assert torn > 10


def test_failed_fsync_is_final_for_its_log() -> None:
    bench = Bench(fsync_failure=1.0)
    token = bench.append(0)
    bench.settle()
    bench.append(1)
    bench.disk.perform(
        Read(log=LOG, token=bench.token(), start_offset=0, end_offset=9, bytes_max=99)
    )
    bench.settle()
    assert [type(event) for event in bench.events] == [StorageFailed]
    assert bench.events[0] == StorageFailed(log=LOG, token=token, reason="fsync failed (injected)")


@pytest.mark.parametrize("seed", range(5))
def test_inline_sync_has_ended_before_anything_else_happens(seed: int) -> None:
    """`begin_syncs` has its answer; a sync that is not inline takes its time."""
    bench = Bench(seed, inline_syncs=True)
    seen = []
    for offset in range(50):
        stored = Stored(log=LOG, token=bench.append(offset))
        answers = bench.disk.begin_syncs()
        seen.append(answers == [stored])
        assert bench.disk.log(LOG).durable.end_offset == offset + seen[-1]
        bench.settle()
        assert [*answers, *bench.events] == [stored]
        bench.events.clear()
    some = {0: {False}, 1: {True}, 3: {False, True}}  # the share is drawn, and then each sync
    assert seed not in some or set(seen) == some[seed]


def test_completions_of_a_dead_process_are_dropped() -> None:
    bench = Bench()
    bench.append(0)
    bench.disk.begin_syncs()
    bench.crash()
    bench.world.run_until(10_000_000, events_max=100)
    assert bench.events == []


@pytest.mark.parametrize(
    ("start", "end", "bytes_max", "expected"),
    [(0, 9, 10_000, 4), (1, 9, 10_000, 4), (2, 9, 10_000, 2), (0, 3, 10_000, 2), (0, 9, 1, 2)],
)
def test_read_returns_whole_batches(start: int, end: int, bytes_max: int, expected: int) -> None:
    bench = Bench()
    bench.append(0, size=2)
    bench.append(2, size=2)
    bench.disk.perform(
        Read(
            log=LOG,
            token=bench.token(),
            start_offset=start,
            end_offset=end,
            bytes_max=bytes_max,
        )
    )
    bench.world.run_until(10_000, events_max=10)
    entries = bench.disk.log(LOG).written.entries
    wanted = entries if expected == 4 else entries[1:] if start == 2 else entries[:1]
    [event] = bench.events
    assert isinstance(event, ReadDone)
    assert event.records == b"".join(entry.records for entry in wanted)


def test_opened_log_tells_its_epochs() -> None:
    bench = Bench()
    bench.append(0, epoch=1)
    bench.append(1, epoch=1)
    bench.append(2, epoch=4)
    bench.settle()
    bench.crash()
    bench.events.clear()
    bench.disk.perform(OpenLog(log=LOG, token=bench.token(), topic_id=ZERO_UUID))
    bench.settle()
    [opened] = bench.events
    assert isinstance(opened, Opened)
    assert opened.state.epochs == (EpochStart(1, 0), EpochStart(4, 2))
    assert (opened.state.end_offset, opened.state.last_epoch) == (3, 4)


def test_two_batches_at_one_epoch_and_offset_are_a_violation() -> None:
    bench = Bench()
    bench.append(0, size=1)
    bench.truncate(0)
    with pytest.raises(Violation, match="R-UE"):
        bench.append(0, size=2)


def test_same_batch_after_another_prefix_is_a_violation() -> None:
    bench = Bench()
    bench.append(0, epoch=1)
    bench.append(1, epoch=3)
    bench.truncate(0)
    bench.append(0, epoch=2)
    with pytest.raises(Violation, match="R-LM"):
        bench.append(1, epoch=3)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("truncate"), st.integers(0, 6), st.booleans()),
        st.tuples(st.just("sync"), st.just(0), st.just(True)),
        st.tuples(st.just("crash"), st.just(0), st.booleans()),
    ),
    max_size=30,
)


@given(steps=STEPS, seed=st.integers(0, 1000))
def test_disk_agrees_with_a_list_that_remembers_what_was_promised(
    steps: list[tuple[str, int, bool]], seed: int
) -> None:
    """Model: a list of (offset, epoch), and what may not be lost since the last Stored."""
    bench = Bench(seed, torn_write=0.5)
    model: list[tuple[int, int]] = []
    promised: list[tuple[int, int]] = []
    truncated = False  # since the promise: the old tail may come back
    is_cutting = False  # a process that dies may not have come to it, nor to what follows
    for epoch, (what, size, flag) in enumerate(steps, start=1):
        if what == "append":
            bench.append(len(model), epoch=epoch, size=size, synced=True)
            model += [(len(model) + place, epoch) for place in range(size)]
        elif what == "truncate":
            cuts = {entry.base_offset for entry in bench.disk.log(LOG).written.entries}
            cut = max((c for c in cuts if c <= size), default=0)
            bench.truncate(cut)
            truncated |= cut < len(promised)
            is_cutting = True
            del model[cut:]
        elif what == "sync":
            bench.settle()
            promised, truncated, is_cutting = list(model), False, False
        else:
            bench.crash(power_loss=flag)
            found = _offsets(bench)
            if not truncated:
                assert found[: len(promised)] == promised
            if not flag and not is_cutting:
                assert found == model
            model, promised, truncated, is_cutting = list(found), list(found), False, False
        assert _offsets(bench) == model


def _offsets(bench: Bench) -> list[tuple[int, int]]:
    return [
        (offset, entry.epoch)
        for entry in bench.disk.log(LOG).written.entries
        for offset in range(entry.base_offset, entry.next_offset)
    ]
