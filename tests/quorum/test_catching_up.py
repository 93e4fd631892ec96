"""Whole replicas whose log is compacted: who is far behind gets a snapshot, and misses nothing."""

from collections.abc import Iterable

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quorum.core.effects import Trace
from quorum.core.types import OffsetAndEpoch
from quorum.node.member import Member
from quorum.raft.config import SnapshotSettings
from quorum.raft.raft_node import RaftNode
from tests.examples import dear
from tests.quorum.ledger import Ledger
from tests.quorum.replicas import Replicas
from wire.batch import data_batch

SMALL = SnapshotSettings(bytes_between=300, interval_ms=0, retention_bytes=700, fetch_max_bytes=100)


class Ledgers:
    """A cluster in which every node keeps a ledger, and takes a snapshot every few records."""

    def __init__(
        self,
        ids: Iterable[int] = (1, 2, 3),
        *,
        voters: Iterable[int] = (1, 2, 3),
        initial: Iterable[int] = (),
        seed: int = 0,
        snapshots: SnapshotSettings = SMALL,
    ) -> None:
        self.of: dict[int, Ledger] = {}
        self.members: dict[int, Member] = {}
        self.snapshots = snapshots
        self.cluster = Replicas(
            ids,
            voters=voters,
            initial=initial,
            seed=seed,
            build=self._build,
            snapshots=snapshots,
        )
        self.written = 0

    def _build(self, node: RaftNode) -> Member:
        ledger = self.of[node.node_id] = Ledger()
        member = Member(node, {"ledger": ledger}, snapshots=self.snapshots)
        self.members[node.node_id] = member
        return member

    def write(self, count: int) -> None:
        leader = self.cluster.elect()
        for _ in range(count):
            self.append(leader)
            self.cluster.run(3)

    def append(self, leader: RaftNode) -> None:
        self.written += 1
        value = b"%05d" % self.written
        self.cluster.append(leader, data_batch([value], timestamp_ms=self.cluster.now_ms))
        self.members[leader.node_id].settle(self.cluster.now_ms)  # as if an application had
        self.cluster.settle(leader.node_id)

    def converge(self) -> None:
        """Everybody knows the same, and all of it."""

        def is_done() -> bool:
            leader = self.cluster.leader()
            return leader is not None and all(
                ledger.next_offset == leader.end_offset
                for node_id, ledger in self.of.items()
                if node_id in self.cluster.nodes
            )

        assert self.cluster.run_until(is_done), self.cluster.describe()

    def traces(self, node_id: int, event: str) -> list[Trace]:
        return [t for n, t in self.cluster.traces if n == node_id and t.event == event]


def expected(count: int) -> list[bytes]:
    return [b"%05d" % number for number in range(1, count + 1)]


def test_every_node_takes_snapshots_and_forgets_the_log_before_them() -> None:
    ledgers = Ledgers([1, 2, 3, 10])
    ledgers.write(60)
    ledgers.converge()
    for node_id, node in ledgers.cluster.nodes.items():
        log = node.replica.log
        assert log.start_offset > 0, node_id
        assert log.snapshots[0].id.offset == log.start_offset, "the log begins at a snapshot"
        assert ledgers.of[node_id].values == expected(60)
        assert ledgers.of[node_id].loads == [], "nobody was behind"


def test_new_observer_loads_a_snapshot_and_goes_on_with_the_records_after_it() -> None:
    ledgers = Ledgers()
    ledgers.write(60)
    cluster = ledgers.cluster
    cluster.settings = cluster.settings | {"syncs": False}
    cluster.ids += (10,)
    cluster.disks[10], cluster.lives[10] = type(cluster.disks[1])(), 0
    cluster.start(10)
    ledgers.converge()
    ledgers.write(3)
    ledgers.converge()
    (loaded,) = ledgers.of[10].loads
    assert ledgers.of[10].values == expected(63)
    assert loaded.offset < ledgers.of[10].next_offset


def test_voter_that_was_away_for_long_catches_up_and_votes_again() -> None:
    ledgers = Ledgers()
    leader = ledgers.cluster.elect()
    away = next(node_id for node_id in (1, 2, 3) if node_id != leader.node_id)
    ledgers.cluster.crash(away)
    ledgers.write(60)
    ledgers.cluster.start(away)
    ledgers.converge()
    assert len(ledgers.of[away].loads) == 1
    ledgers.cluster.crash(ledgers.cluster.elect().node_id)
    ledgers.write(5)  # takes both of the others
    ledgers.converge()
    assert ledgers.of[away].values == expected(65)


def test_wiped_voter_learns_the_voters_from_a_snapshot() -> None:
    """Its own directory id is not among them: until it is added again, it observes."""
    ledgers = Ledgers(initial=[1, 2, 3])
    leader = ledgers.cluster.elect()
    ledgers.write(60)
    wiped = next(node_id for node_id in (1, 2, 3) if node_id != leader.node_id)
    assert all(node.replica.log.start_offset > 0 for node in ledgers.cluster.nodes.values())
    ledgers.cluster.wipe(wiped)
    ledgers.converge()
    node = ledgers.cluster.nodes[wiped]
    assert ledgers.of[wiped].values == expected(60)
    assert (node.replica.voters.ids, node.kraft_version) == ((1, 2, 3), 1)
    assert not node.replica.is_voter


def test_restart_begins_at_the_newest_snapshot() -> None:
    ledgers = Ledgers([1], voters=[1])
    ledgers.write(30)
    newest = ledgers.cluster.nodes[1].latest_snapshot
    ledgers.cluster.crash(1)
    ledgers.cluster.start(1)
    ledgers.converge()
    assert ledgers.of[1].loads == [newest]
    assert ledgers.of[1].values == expected(30)


def test_download_goes_on_where_it_was_after_lost_answers() -> None:
    ledgers = Ledgers()
    leader = ledgers.cluster.elect()
    away = next(node_id for node_id in (1, 2, 3) if node_id != leader.node_id)
    ledgers.cluster.crash(away)
    ledgers.write(60)
    cluster = ledgers.cluster
    cluster.start(away)

    def has_some() -> bool:
        download = cluster.nodes[away].replica.download
        return download is not None and download.position >= 200

    assert cluster.run_until(has_some)
    cluster.cut = {(leader.node_id, away)}  # answers are lost, requests are not
    cluster.run(100)
    cluster.heal()
    ledgers.converge()
    assert len(ledgers.traces(away, "snapshot_begun")) == 1
    assert ledgers.of[away].values == expected(60)


def test_leader_keeps_its_quorum_while_a_voter_loads_a_snapshot() -> None:
    """With one voter dead, the leader hears nothing from the other but FetchSnapshot."""
    ledgers = Ledgers()
    cluster = ledgers.cluster
    leader = cluster.elect()
    away, other = (node_id for node_id in (1, 2, 3) if node_id != leader.node_id)
    cluster.crash(away)
    ledgers.write(60)
    cluster.settings = {"snapshots": SnapshotSettings(fetch_max_bytes=1)}
    cluster.crash(other)
    cluster.start(away)
    epoch, began_ms = leader.role.epoch, cluster.now_ms
    ledgers.converge()
    assert cluster.now_ms - began_ms > leader.replica.config.check_quorum_timeout_ms
    assert cluster.elect().role.epoch == epoch
    assert ledgers.of[away].values == expected(60)


@pytest.mark.parametrize("seed", range(4))
def test_directory_that_a_crash_left_between_snapshot_and_reset_starts(seed: int) -> None:
    ledgers = Ledgers(seed=seed)
    leader = ledgers.cluster.elect()
    away = next(node_id for node_id in (1, 2, 3) if node_id != leader.node_id)
    ledgers.cluster.crash(away)
    ledgers.write(60)
    cluster = ledgers.cluster
    cluster.start(away)
    assert cluster.run_until(lambda: bool(cluster.disks[away].contents))
    assert cluster.nodes[away].end_offset < 10, "the disk has it, the replica does not know"
    cluster.crash(away)
    cluster.start(away)
    ledgers.converge()
    assert ledgers.of[away].values == expected(60)


def test_log_without_its_snapshot_is_refused() -> None:
    ledgers = Ledgers([1], voters=[1])
    ledgers.write(60)
    ledgers.cluster.crash(1)
    ledgers.cluster.disks[1].snapshots = ()
    ledgers.cluster.start(1)
    assert "no snapshot has what came before" in ledgers.cluster.stopped[1].reason


def test_no_snapshot_while_no_application_can_tell_its_state() -> None:
    ledgers = Ledgers([1], voters=[1])
    ledgers.cluster.elect()
    ledgers.of[1].is_in_transaction = True
    ledgers.write(30)
    assert ledgers.cluster.nodes[1].latest_snapshot is None
    asked = ledgers.of[1].states
    ledgers.cluster.run(5000)
    assert asked < ledgers.of[1].states <= asked + 6, "it is asked again, but not all the time"
    ledgers.of[1].is_in_transaction = False
    ledgers.cluster.run(2000)
    assert ledgers.cluster.nodes[1].latest_snapshot == OffsetAndEpoch(31, 1)


def test_snapshot_by_time_needs_new_records() -> None:
    hourly = SnapshotSettings(interval_ms=10_000)
    ledgers = Ledgers([1], voters=[1], snapshots=hourly)
    ledgers.write(2)
    assert ledgers.cluster.run_until(lambda: ledgers.of[1].states == 1)
    assert 10_000 <= ledgers.cluster.now_ms < 10_100
    ledgers.cluster.run(50_000)
    assert ledgers.of[1].states == 1
    ledgers.write(1)
    assert ledgers.of[1].states == 2, "the last one is long ago"


# --- any order of events ------------------------------------------------------------------------


class CatchingUp(RuleBasedStateMachine):
    """Random crashes, cuts and writes over three voters and an observer."""

    @initialize(seed=st.integers(0, 1000))
    def start(self, seed: int) -> None:
        self.ledgers = Ledgers([1, 2, 3, 10], seed=seed)
        self.cluster = self.ledgers.cluster
        self.down: set[int] = set()

    @rule(count=st.integers(1, 25))
    def write(self, count: int) -> None:
        """A replica that believes to lead appends; it may be gone before that is committed."""
        for _ in range(count):
            leaders = [self.cluster.nodes[node_id] for node_id in self.cluster.leaders()]
            if leaders:
                self.ledgers.append(max(leaders, key=lambda node: node.role.epoch))
            self.cluster.run(2)

    @rule(node_id=st.sampled_from([1, 2, 3, 10]))
    def crash(self, node_id: int) -> None:
        if node_id not in self.down and len(self.down - {10}) < 2:
            self.down.add(node_id)
            self.cluster.crash(node_id)
            del self.ledgers.of[node_id]

    @rule(node_id=st.sampled_from([1, 2, 3, 10]))
    def restart(self, node_id: int) -> None:
        if node_id in self.down:
            self.down.remove(node_id)
            self.cluster.start(node_id)

    @rule(source=st.sampled_from([1, 2, 3]), to=st.sampled_from([1, 2, 3, 10]))
    def cut(self, source: int, to: int) -> None:
        self.cluster.cut.add((source, to))

    @rule()
    def heal(self) -> None:
        self.cluster.heal()

    @rule(duration_ms=st.integers(1, 4000))
    def wait(self, duration_ms: int) -> None:
        self.cluster.run(duration_ms)

    @invariant()
    def ledgers_agree(self) -> None:
        """R-SM: the state after an offset is the same on every node, however it came to it."""
        longest = max((ledger.values for ledger in self.ledgers.of.values()), key=len, default=[])
        for node_id, ledger in self.ledgers.of.items():
            assert ledger.values == longest[: len(ledger.values)], node_id

    @invariant()
    def snapshots_are_sound(self) -> None:
        """R-SS: a snapshot holds what is committed, and the log begins where one ends."""
        for node_id, node in self.cluster.nodes.items():
            log = node.replica.log
            ends = [file.id.offset for file in log.snapshots]
            assert all(end <= log.committed_offset for end in ends), (node_id, ends)
            assert log.start_offset in (0, *ends), (node_id, log.start_offset, ends)

    @invariant()
    def nobody_stopped(self) -> None:
        assert not self.cluster.stopped, self.cluster.stopped

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.heal()
            for node_id in sorted(self.down):
                self.cluster.start(node_id)
            self.ledgers.converge()
            self.ledgers_agree()


CatchingUp.TestCase.settings = hypothesis_settings(dear(4), stateful_step_count=25)
TestCatchingUp = CatchingUp.TestCase
