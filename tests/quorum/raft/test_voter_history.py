"""The voters by offset, held to a plain model of a log."""

from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from quorum.core.effects import LogState, SnapshotFile
from quorum.core.storage import METADATA_LOG
from quorum.core.types import Endpoint, OffsetAndEpoch
from quorum.log.snapshots import snapshot_head
from quorum.raft.voter_history import (
    NOT_IN_THE_LOG,
    Membership,
    VoterHistory,
    control_records,
    record_of,
    voters_of,
)
from quorum.raft.voters import VoterSet
from tests.quorum.replicas import bootstrap_snapshot, dynamic_voter, voter_set
from wire import control_records as cr
from wire.batch import Record, assign, build_batch, data_batch
from wire.control_records import (
    ControlRecord,
    KRaftVersion,
    KRaftVersionRange,
    LeaderChange,
    VoterEndpoint,
    Voters,
    encode_control_batch,
)

STATIC = voter_set([1, 2, 3])
FIRST = KRaftVersion(kraft_version=1)


def voters(*ids: int) -> VoterSet:
    return VoterSet.of(map(dynamic_voter, ids))


def control(offset: int, *records: ControlRecord) -> bytes:
    return assign(encode_control_batch(records, timestamp_ms=0), base_offset=offset, leader_epoch=1)


def snapshot(end_offset: int, membership: Membership) -> SnapshotFile:
    head = assign(snapshot_head(0, membership.head_records()), base_offset=0, leader_epoch=1)
    return SnapshotFile(id=OffsetAndEpoch(end_offset, 1), size_bytes=len(head), head=head)


def state(*batches: bytes, snapshots: tuple[SnapshotFile, ...] = ()) -> LogState:
    return LogState(log=METADATA_LOG, control_batches=batches, snapshots=snapshots)


# --- cases -----------------------------------------------------------------------------------


def test_without_records_the_configured_voters_hold() -> None:
    history = VoterHistory.recovered(STATIC, "CONTROLLER", state())
    assert history.latest == Membership(voters=STATIC)
    assert history.at(100) == history.latest
    assert history.latest.head_records() == ()


def test_record_holds_from_its_offset_on_until_it_is_truncated() -> None:
    history = VoterHistory(STATIC)
    assert history.observe(control_records(control(5, FIRST, record_of(voters(1, 2)))))
    assert history.observe(control_records(control(9, record_of(voters(1)))))
    assert [history.at(offset).voters.ids for offset in (5, 7, 9, 10)] == [
        (1, 2, 3),
        (1, 2),
        (1, 2),
        (1,),
    ]
    assert history.latest.voters_offset == 9
    assert not history.truncate(10)
    assert history.truncate(9)
    assert history.latest == Membership(voters=voters(1, 2), kraft_version=1, voters_offset=6)
    assert history.truncate(0)
    assert history.latest == Membership(voters=STATIC)


def test_other_records_change_nothing() -> None:
    change = LeaderChange(leader_id=1, voters=(), granting_voters=())
    history = VoterHistory(STATIC)
    batches = control(0, change) + assign(
        data_batch([b"a"], timestamp_ms=0), base_offset=1, leader_epoch=1
    )
    assert not history.observe(control_records(batches))


def test_first_snapshot_takes_the_place_of_the_configuration() -> None:
    found = state(snapshots=(bootstrap_snapshot([1, 2]),))
    history = VoterHistory.recovered(STATIC, "CONTROLLER", found)
    assert history.latest.voters == voters(1, 2)
    assert history.latest.voters_offset == NOT_IN_THE_LOG
    assert not history.truncate(0), "it is not in the log, so that it stays"


def test_log_wins_over_the_snapshots_before_it() -> None:
    old = Membership(voters=voters(1), kraft_version=1, voters_offset=3)
    found = state(
        control(10, record_of(voters(1, 2))),
        snapshots=(bootstrap_snapshot([1]), snapshot(10, old)),
    )
    history = VoterHistory.recovered(VoterSet(), "CONTROLLER", found)
    assert history.latest.voters == voters(1, 2)
    assert history.at(10).voters == voters(1)


def test_snapshot_beyond_the_log_wins() -> None:
    newer = Membership(voters=voters(2), kraft_version=1)
    found = state(control(3, FIRST, record_of(voters(1))), snapshots=(snapshot(20, newer),))
    history = VoterHistory.recovered(VoterSet(), "CONTROLLER", found)
    assert history.latest == Membership(voters=voters(2), kraft_version=1, voters_offset=19)


def test_snapshot_that_repeats_what_is_known_leaves_its_offset_known() -> None:
    history = VoterHistory(STATIC)
    history.observe(control_records(control(5, FIRST, record_of(voters(1)))))
    before = history.latest
    history.confirm(snapshot(8, history.latest))
    assert history.latest == before
    assert history.latest.voters_offset == 6


def test_snapshot_of_another_node_replaces_all() -> None:
    history = VoterHistory(STATIC)
    history.observe(control_records(control(5, FIRST, record_of(voters(1)))))
    assert history.restart(snapshot(50, Membership(voters=voters(4), kraft_version=1)))
    assert history.latest.voters == voters(4)
    assert history.at(6).voters == STATIC


def test_pruned_history_still_knows_what_held_where_the_log_begins() -> None:
    history = VoterHistory(STATIC)
    history.observe(control_records(control(5, FIRST, record_of(voters(1)))))
    history.observe(control_records(control(9, record_of(voters(2)))))
    history.prune(8)
    assert [history.at(offset).voters for offset in (8, 10)] == [voters(1), voters(2)]
    history.prune(100)
    assert history.latest.voters == voters(2)


def test_voters_survive_their_record() -> None:
    known = voters(1, 5, 7)
    assert voters_of(record_of(known), "CONTROLLER") == known


def test_voter_without_our_listener_is_found_at_its_first() -> None:
    record = Voters(
        voters=(
            cr.Voter(
                voter_id=1,
                voter_directory_id=UUID(int=1),
                endpoints=(
                    VoterEndpoint(name="A", host="a", port=1),
                    VoterEndpoint(name="B", host="b", port=2),
                ),
                kraft_version_feature=KRaftVersionRange(
                    min_supported_version=0, max_supported_version=1
                ),
            ),
        )
    )
    assert voters_of(record, "B").endpoint_of(1) == Endpoint(1, "b", 2)
    assert voters_of(record, "C").endpoint_of(1) == Endpoint(1, "a", 1)


def test_unknown_control_record_is_left_out() -> None:
    record = Record(b"\x00\x00\x00\x63", b"\x00\x00")
    batch = build_batch([record], timestamp_ms=0, is_control=True)
    assert control_records(batch) == ()


# --- against a model ---------------------------------------------------------------------------


@dataclass
class Log:
    """The model: all records, and what was known where the log begins."""

    start_offset: int = 0
    before: Membership = field(default_factory=lambda: Membership(voters=STATIC))
    batches: list[tuple[int, tuple[ControlRecord, ...]]] = field(default_factory=list)
    end_offset: int = 0
    snapshots: list[tuple[int, Membership]] = field(default_factory=list)

    def at(self, end_offset: int) -> Membership:
        version, known, at = (
            self.before.kraft_version,
            self.before.voters,
            self.before.voters_offset,
        )
        for start_offset, records in self.batches:
            for offset, record in enumerate(records, start_offset):
                if offset < end_offset:
                    match record:
                        case KRaftVersion(kraft_version=version):
                            pass
                        case Voters():
                            known, at = voters_of(record, "CONTROLLER"), offset
        return Membership(voters=known, kraft_version=version, voters_offset=at)


class Both:
    """A history and the model of its log, changed in step."""

    def __init__(self) -> None:
        self.log = Log()
        self.history = VoterHistory(STATIC)

    def step(self, name: str, argument: object) -> None:
        match name, argument:
            case "append", (None | frozenset()) as ids:
                self.append(ids)
            case "truncate", int() as back:
                self.truncate(back)
            case "snapshot", _:
                self.snapshot()
            case _:
                self.trim()

    def append(self, ids: frozenset[int] | None) -> None:
        """A record that has nothing to do with voters, or one with these."""
        log = self.log
        if ids is not None:
            records: tuple[ControlRecord, ...] = (record_of(voters(*sorted(ids))),)
            if log.at(log.end_offset).kraft_version == 0:
                records = (FIRST, *records)
            self.history.observe(control_records(control(log.end_offset, *records)))
            log.batches.append((log.end_offset, records))
            log.end_offset += len(records) - 1
        log.end_offset += 1

    def truncate(self, back: int) -> None:
        log = self.log
        borders = {offset for offset, _ in log.batches} | {log.end_offset}
        inside = {
            inner
            for offset, records in log.batches
            for inner in range(offset + 1, offset + len(records))
        }
        floor = max([log.start_offset, *(offset for offset, _ in log.snapshots)])
        to = max(floor, log.end_offset - back)
        while to in inside and to not in borders:
            to += 1
        self.history.truncate(to)
        log.batches = [(offset, records) for offset, records in log.batches if offset < to]
        log.end_offset = to

    def snapshot(self) -> None:
        log = self.log
        if log.end_offset > log.start_offset:
            assert self.history.at(log.end_offset) == log.at(log.end_offset)
            log.snapshots.append((log.end_offset, log.at(log.end_offset)))

    def trim(self) -> None:
        log = self.log
        if log.snapshots:
            start_offset, membership = log.snapshots[-1]
            self.history.prune(start_offset)
            log.start_offset, log.before = start_offset, membership
            log.batches = [entry for entry in log.batches if entry[0] >= start_offset]

    def recovered(self) -> VoterHistory:
        log = self.log
        kept = [entry for entry in log.snapshots if entry[0] >= log.start_offset]
        found = state(
            *(control(offset, *records) for offset, records in log.batches),
            snapshots=tuple(snapshot(offset, membership) for offset, membership in kept),
        )
        return VoterHistory.recovered(STATIC, "CONTROLLER", found)


STEPS = st.one_of(
    st.tuples(st.just("append"), st.none() | st.frozensets(st.integers(1, 5), min_size=1)),
    st.tuples(st.just("truncate"), st.integers(0, 6)),
    st.tuples(st.just("snapshot"), st.none()),
    st.tuples(st.just("trim"), st.none()),
)


@given(st.lists(STEPS, max_size=30))
def test_history_is_what_the_log_says(steps: list[tuple[str, object]]) -> None:
    both = Both()
    for name, argument in steps:
        both.step(name, argument)
        log = both.log
        for offset in range(log.start_offset, log.end_offset + 1):
            assert both.history.at(offset) == log.at(offset), offset
        assert both.history.latest == log.at(log.end_offset)


@given(st.lists(STEPS, max_size=30))
def test_recovery_finds_what_was_known(steps: list[tuple[str, object]]) -> None:
    both = Both()
    for name, argument in steps:
        both.step(name, argument)
    found, log = both.recovered(), both.log
    for offset in range(log.start_offset, log.end_offset + 1):
        known = both.history.at(offset)
        assert found.at(offset).voters == known.voters, offset
        assert found.at(offset).kraft_version == known.kraft_version, offset
