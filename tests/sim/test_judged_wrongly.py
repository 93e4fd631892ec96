"""Sound systems that the judges or the nemesis once got wrong, each with its schedule.

Long sweeps found most of them by seeds that are other runs by now; docs/simulation.md has the
table.
"""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.config import OWNER
from broker.partition.isr import Committed, PendingShrink
from broker.partition.local_log import LocalLog
from broker.partition.partition import FollowerFetch, FollowerOf, LeaderOf, Partition
from controller.metadata.changes import encode_changes
from controller.metadata.partitions import PartitionState
from jepsen_like.sim.assemblies.cluster.clients.client import (
    Client,
    ClientSettings,
    ProducedPartition,
)
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.cluster_run import ClusterRun
from jepsen_like.sim.assemblies.cluster.invariants.broker_invariants import LaggingMembers
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import (
    PartitionInvariants,
    _Seen,
)
from jepsen_like.sim.assemblies.cluster.invariants.watched import Acknowledged, Key, Watched
from jepsen_like.sim.assemblies.cluster.liveness import led_as_told
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulation import Simulation
from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry, LogTree
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.violation import Stuck, Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.workloads.workload import NewTopic
from quorum.core.effects import (
    Append,
    DeleteLog,
    Durability,
    Effect,
    Opened,
    OpenLog,
    ResetLog,
    Response,
    Send,
    Token,
    Trace,
    Trim,
)
from quorum.core.log_state import EpochStart, LogState
from quorum.core.outbox import Outbox
from quorum.core.storage import METADATA_LOG
from quorum.core.types import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from tests.broker.partitions import partition_of
from tests.controller.clusters import TOPIC, fenced, level, partition, registered
from tests.quorum.log_files import batch
from tests.sim.storage_bench import in_files, on_files
from tests.sim.watching import in_place_of
from wire.batch import assign, data_batch
from wire.messages.fetching import FetchedPartition, FetchedTopic, FetchRequest, FetchResponse
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.producing import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.metadata_records import PartitionChangeRecord, TopicRecord

EVENTS = 1_000_000


def quiet(**options: Any) -> Simulation:
    """A quorum at rest, without faults, with a leader and with its voters in its log."""
    simulation = Simulation(1, Options(kraft_version=1, **options))
    simulation.quorum.start()
    simulation._elects(EVENTS)
    simulation._converges(EVENTS)
    return simulation


def key_of(host: Host) -> ReplicaKey:
    return ReplicaKey(host.node_id, host.directory_id)


def lose_disk(host: Host) -> None:
    host.crash(power_loss=True)
    host.disk.wipe()


def test_leader_that_gives_up_in_the_turn_of_a_proposal_is_not_made_to_propose() -> None:
    """Seed 116000496. Its application is told when the turn ends: it still takes itself for one."""
    simulation = quiet()
    leader = simulation.quorum.leader()
    assert leader is not None
    assert leader.leader_id is not None
    host = simulation.quorum.hosts[leader.leader_id - 1]
    host._turn.add(simulation.quorum.nodes[host.node_id].resign)
    assert simulation.quorum.leader() == leader, "its turn is to come"
    simulation.quorum.propose()
    assert not simulation.quorum.leads(host.node_id)
    simulation._elects(EVENTS)
    simulation._converges(EVENTS)


# --- bounds that did not wait ---------------------------------------------------------------------


def begin_a_slow_sync(host: Host) -> None:
    host.disk.faults = DiskFaults(sync_us_min=30_000_000)


def test_bounds_of_a_quorum_wait_for_what_a_sick_disk_has_begun() -> None:
    simulation = quiet()
    for host in simulation.quorum.hosts:
        begin_a_slow_sync(host)
    simulation.quorum.propose()
    simulation.world.run_until(simulation.world.now_us + 50_000, events_max=EVENTS)
    busy_us = [host.disk.busy_until_us for host in simulation.quorum.hosts]
    assert max(busy_us) > simulation.world.now_us + 20_000_000, "it syncs"
    simulation._heal(EVENTS)
    assert simulation.world.now_us >= max(busy_us)


def test_bounds_of_a_cluster_wait_for_what_a_sick_disk_has_begun() -> None:
    run = ClusterRun(1)
    for host in run.cluster.hosts.values():
        host.start()
        begin_a_slow_sync(host)
    run._world.run_until(2_000_000, events_max=EVENTS)
    busy_us = [host.disk.busy_until_us for host in run.cluster.hosts.values()]
    assert max(busy_us) > run._world.now_us + 20_000_000, "it syncs"
    run._heal(EVENTS)
    assert run._world.now_us >= max(busy_us)


@pytest.mark.parametrize("is_held", [True, False])
def test_what_a_controller_has_synced_may_be_committed_though_it_died(is_held: bool) -> None:
    """Cluster seed 191001732: both followers had synced the last batch and died; their fetches were
    on the way to the leader."""
    tree = LogTree()
    one, other = tree.extend(None, batch(0) + batch(1))
    committed = [one]
    durable = Content([one, other] if is_held else [one])
    disk = SimpleNamespace(log=lambda name: SimpleNamespace(durable=durable))
    host = SimpleNamespace(disk=disk, crash=lambda *, power_loss: durable.entries.clear())
    options = SimpleNamespace(
        controllers=(1, 2, 3),
        session_timeout_ms=1,
        quorum=SimpleNamespace(election_bound_ms=1),
    )
    cluster = SimpleNamespace(
        hosts={1: host, 2: host, 3: host},
        options=options,
        quorum=SimpleNamespace(committed=committed),
        partitions=SimpleNamespace(watched={}),
    )
    world = SimpleNamespace(
        now_us=0, run_until=lambda _at_us, *, events_max: committed.append(other)
    )
    run: Any = object.__new__(ClusterRun)
    run.options, run.cluster, run._world = options, cluster, world
    with nullcontext() if is_held else pytest.raises(Violation, match="L-STOP"):
        run._stops(EVENTS)


@pytest.mark.parametrize("has_heard", [True, False])
def test_without_controllers_nobody_hears_that_its_election_is_committed(has_heard: bool) -> None:
    """Cluster seed 202000160: two of three controllers died as soon as the record was committed."""
    (election,) = LogTree().extend(None, batch(0))
    elected = PartitionState(replicas=(5,), isr=(5,), leader=5, leader_epoch=1)
    cluster = SimpleNamespace(
        quorum=SimpleNamespace(committed=[election]),
        nodes={5: SimpleNamespace(applied_offset=election.next_offset if has_heard else 0)},
        broker=lambda _node_id: None,
        partitions=SimpleNamespace(watched={0: Watched(name="t-0", state=elected)}),
    )
    why = led_as_told(cast(Cluster, cluster))
    assert ("5 does not know that it leads" in why) == has_heard


def test_a_request_that_is_late_may_end_a_leadership_in_peace() -> None:
    simulation = quiet()
    quiet_us = 3000 * max(
        simulation.options.fetch_timeout_ms, 2 * simulation.options.election_timeout_ms
    )
    leader = simulation._leading_host(EVENTS)
    simulation.world.after(
        quiet_us + quiet_us // 4, lambda: simulation._administrator.remove(leader, key_of(leader))
    )
    simulation._stays_quiet(EVENTS)
    assert simulation._leading_host(EVENTS) is not leader


def test_leader_that_a_late_request_has_removed_is_waited_for() -> None:
    simulation = quiet()
    leader = simulation._leading_host(EVENTS)
    leader.command(simulation.quorum.nodes[leader.node_id].resign)
    assert simulation.quorum.leader() is None
    simulation._loses_its_leader(EVENTS)
    assert leader.is_up


def test_follower_that_is_told_of_the_end_grants_a_pre_vote_and_hears_its_leader_once_more() -> (
    None
):
    """Seed 310013862: all of it in one turn, and was judged by its end alone."""
    simulation = quiet()
    invariants, leader = simulation.quorum.invariants, simulation._leading_host(EVENTS)
    asker, other = (host for host in simulation.quorum.hosts if host is not leader)
    epoch = invariants._replicas[leader.node_id].leader.epoch
    election = invariants._election
    election.asks(asker.node_id, asks=True)
    election._asks_since[asker.node_id] += 1  # later than all heard their leader
    with pytest.raises(Violation, match="R-PV"):
        election.stands(asker)
    follows_no_more = SimpleNamespace(leader=LeaderAndEpoch(None, epoch), hears_leader=False)
    invariants._replicas[other.node_id] = cast(Any, follows_no_more)
    pre_vote = SimpleNamespace(pre_vote=True, replica_epoch=epoch)
    request = SimpleNamespace(topics=[SimpleNamespace(partitions=[pre_vote])])
    invariants._is_asked_to_vote(other, 1, cast(Any, request))
    simulation.world.events_done += 1
    election.hears_leader(other.node_id, epoch)
    election.stands(asker)
    assert invariants._seen[other.node_id].hears is None  # so that the turn's end is a change


def test_removed_voter_that_older_software_led_astray_is_not_waited_for() -> None:
    simulation = quiet(observers=1)
    quorum = simulation.quorum
    leader = quorum.leader()
    assert leader is not None
    quorum.nodes[4].raft.leader = LeaderAndEpoch(None, leader.epoch + 1)
    assert quorum.leader() is None, "with pre-votes that cannot be"
    quorum.counts.fired("older_release")
    assert quorum.leader() == leader
    quorum.nodes[1].raft.leader = quorum.nodes[4].leader
    assert quorum.leader() is None, "the first one votes"


def test_agreement_of_before_is_not_taken_for_that_on_a_new_append(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = quiet(propose_interval_ms=0)
    monkeypatch.setattr(simulation.quorum, "propose", lambda: None)
    with pytest.raises(Stuck, match="L-HW"):
        simulation._converges(EVENTS)


def test_change_of_voters_that_was_refused_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = quiet()
    repair, asked = simulation._administrator.repair, []

    def refused_once(leader: Host) -> None:
        asked.append(leader)
        if len(asked) > 1:
            repair(leader)

    monkeypatch.setattr(simulation._administrator, "repair", refused_once)
    simulation._changes_voters(EVENTS)
    assert len(asked) == 2


# --- what happens within a turn, or in the first one ----------------------------------------------


def test_each_decision_of_a_batch_is_judged_with_the_state_that_it_made() -> None:
    """The last replica may have led between two failures that share a batch."""
    invariants = MetadataInvariants(lambda: 0)
    elected: list[int | None] = []
    invariants.changed = lambda key, topic, was, now: elected.append(now.leader if now else None)
    created = (
        level(25),
        registered(1),
        registered(2),
        TopicRecord(name="t", topic_id=TOPIC),
        partition(0, (1, 2)),
    )
    failures = (
        fenced(1),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=(2,), leader=2),
        fenced(2),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=-1),
    )
    encoded = [
        encode_changes(changes, timestamp_ms=0, metadata_version=25)
        for changes in (created, failures)
    ]
    history = LogTree().extend(None, assign(b"".join(encoded), base_offset=0, leader_epoch=1))
    invariants.committed(history)
    assert elected == [1, 2, -1]


@pytest.mark.parametrize(
    ("had_enough", "in_the_turn"), [(True, (1,)), (False, (1, 2)), (False, (1,))]
)
def test_what_is_exposed_before_the_isr_shrinks_in_the_same_turn_may_be(
    had_enough: bool, in_the_turn: tuple[int, ...]
) -> None:
    invariants = object.__new__(PartitionInvariants)
    invariants._exposes = invariants._is_exposed = (  # type: ignore[method-assign]
        lambda partition, watched, written: None
    )
    role = LeaderOf(
        leader_epoch=3,
        epoch_start_offset=0,
        partition_epoch=8,
        replicas=(1, 2),
        isr=Committed(members=(1,)),
        leader_recovery_state=0,
    )
    leader = SimpleNamespace(
        name="t-0",
        node_id=1,
        role=role,
        open_log=SimpleNamespace(high_watermark=7),
        settings=SimpleNamespace(min_insync_replicas=2),
    )
    seen = _Seen(high_watermark=6, had_enough=had_enough)
    joined = Trace(event="isr", fields=(("partition", "t-0"), ("members", in_the_turn)))
    invariants._effects = [joined]
    has_enough = had_enough or len(in_the_turn) == 2
    with nullcontext() if has_enough else pytest.raises(Violation, match="D-MIN"):
        invariants._high_watermark_changed(
            cast(Any, leader), Watched("t-0", None), seen, Content([]), has_led=True
        )


def of_epoch(epoch: int, base_offset: int, *values: bytes) -> bytes:
    return assign(data_batch(values, timestamp_ms=0), base_offset=base_offset, leader_epoch=epoch)


def test_a_log_that_began_anew_goes_on_as_those_that_start_there() -> None:
    """A follower with nothing but its start is elected, and others follow it."""
    tree = LogTree("D-ONE", "D-DIV")
    (first,) = tree.extend(None, of_epoch(2, 0, b"x", b"y"))
    with pytest.raises(Violation, match="D-DIV"):
        tree.extend(tree.before(2), of_epoch(3, 2, b"z"))
    tree.let_go(first)
    assert tree.extend(tree.before(2), of_epoch(3, 2, b"z")) == tree.extend(
        first, of_epoch(3, 2, b"z")
    )


def test_first_batch_of_a_leader_with_an_empty_log_goes_on_behind_what_was_deleted() -> None:
    """Cluster seed 141000303: it was taken for the first batch of all."""
    tree = LogTree("D-ONE", "D-DIV")
    (deleted,) = tree.extend(None, of_epoch(2, 0, b"x", b"y"))
    with pytest.raises(Violation, match="D-DIV"):
        tree.extend(None, of_epoch(3, 2, b"z"))
    tree.let_go(deleted)
    (first,) = tree.extend(None, of_epoch(3, 2, b"z"))
    assert first.parent is deleted


def test_logs_may_differ_in_what_their_leader_has_let_go_of() -> None:
    tree = LogTree("D-ONE", "D-DIV")
    (first,) = tree.extend(None, of_epoch(0, 0, b"x"))
    (lost,) = tree.extend(first, of_epoch(0, 1, b"y"))
    kept, last = tree.extend(first, of_epoch(5, 1, b"y") + of_epoch(5, 2, b"z"))
    with pytest.raises(Violation, match="D-DIV"):
        tree.extend(lost, of_epoch(5, 2, b"z"))
    tree.let_go(kept)
    assert tree.extend(lost, of_epoch(5, 2, b"z")) == [last]
    assert Content([first, lost, last]).holds(last)
    assert not Content([first, lost, last]).holds(kept)


def test_what_a_log_holds_is_found_though_it_had_fewer_batches_before() -> None:
    """Cluster seed 118902707: what was let go of had as many records, in one batch more."""
    tree = LogTree("D-ONE", "D-DIV")
    first, kept, last = tree.extend(
        None, of_epoch(5, 0, b"x") + of_epoch(5, 1, b"y") + of_epoch(5, 2, b"z")
    )
    (lost,) = tree.extend(None, of_epoch(0, 0, b"x", b"y"))
    tree.let_go(first)
    tree.let_go(kept)
    assert tree.extend(lost, of_epoch(5, 2, b"z")) == [last]
    assert Content([lost, last]).holds(last)
    assert not Content([lost, last]).holds(kept)


def test_replicas_may_let_go_of_different_records_at_one_offset() -> None:
    """Cluster seed 170000192: what the follower had there hid what its leader had let go of."""
    tree = LogTree("D-ONE", "D-DIV")
    (lost,) = tree.extend(None, of_epoch(0, 0, b"x"))
    kept, last = tree.extend(None, of_epoch(1, 0, b"x") + of_epoch(1, 1, b"y"))
    tree.let_go(kept)
    tree.let_go(lost)
    assert tree.extend(lost, of_epoch(1, 1, b"y")) == [last]


def test_log_that_began_anew_goes_on_as_others_whatever_it_is_guessed_to_stand_behind() -> None:
    """Cluster seed 180002585: a batch that was lost had the same end, and a higher epoch."""
    tree = LogTree("D-ONE", "D-DIV")
    (lost,) = tree.extend(None, of_epoch(1, 0, b"x"))
    _, last = tree.extend(None, of_epoch(0, 0, b"x") + of_epoch(3, 1, b"y"))
    stored = StoredLog(tree, TOPIC, has_snapshots=False)
    stored.write(ResetLog(log="t-0", token=Token("t", 1), start=OffsetAndEpoch(1, -1)))
    assert stored.written.origin is lost
    append = Append(
        log="t-0", token=Token("t", 1), records=of_epoch(3, 1, b"y"), durability=Durability.WRITTEN
    )
    stored.write(append)
    assert stored.written.entries == [last]
    with pytest.raises(Violation, match="D-DIV"):
        tree.extend(lost, of_epoch(3, 1, b"y"))


def test_empty_log_begins_behind_what_was_written_last() -> None:
    """Cluster seed 170000860: after an unclean election its offset was written a second time."""
    tree = LogTree("D-ONE", "D-DIV")
    (before,) = tree.extend(None, of_epoch(0, 0, b"x"))
    tree.let_go(before)
    (again,) = tree.extend(None, of_epoch(4, 0, b"y"))
    assert tree.latest_before(1) is again
    assert tree.latest_before(2) is None
    stored = StoredLog(tree, TOPIC, has_snapshots=False)
    stored.write(ResetLog(log="t-0", token=Token("t", 1), start=OffsetAndEpoch(1, -1)))
    assert stored.written.origin is again


def test_what_follows_a_violation_in_its_batch_is_seen_all_the_same() -> None:
    """Who lets it pass, since clients shall judge, goes on with what has been decided."""
    invariants = MetadataInvariants(lambda: 0)
    elected: list[int | None] = []

    def changed(_key: object, _topic: object, _was: object, now: PartitionState | None) -> None:
        elected.append(now.leader if now else None)
        raise Violation("M-LI", "planted")

    invariants.changed = changed
    changes = (
        level(25),
        registered(1),
        TopicRecord(name="t", topic_id=TOPIC),
        partition(0, (1,)),
        fenced(1),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=-1),
    )
    encoded = encode_changes(changes, timestamp_ms=0, metadata_version=25)
    with pytest.raises(Violation, match="M-LI"):
        invariants.committed(LogTree().extend(None, assign(encoded, base_offset=0, leader_epoch=1)))
    assert elected == [1, -1]


@pytest.mark.parametrize("stops", [False, True])
def test_high_watermark_of_a_leader_counts_though_its_disk_fails_in_the_same_turn(
    monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    """What it says has left: before a sync that fails, or with its last turn (not seen to settle).

    Followers may know it, whatever becomes of the leader.
    """
    simulation = quiet()
    leader = simulation._leading_host(EVENTS)
    invariants = simulation.quorum.invariants
    settled, before = invariants.settled, invariants.committed_offset
    failing: list[Host] = []

    def settled_unless_it_fails(host: Host, effects: list[Effect]) -> None:
        if host is leader and (simulation.quorum.nodes[host.node_id].high_watermark or 0) > before:
            failing.append(host)
            with monkeypatch.context() as failed:
                failed.setattr(host.disk.log(METADATA_LOG), "failed", True)
                if not stops:
                    settled(host, effects)
        else:
            settled(host, effects)

    simulation.world.ignore(invariants)
    simulation.world.observe(in_place_of(invariants, settled=settled_unless_it_fails))
    simulation._converges(EVENTS)
    assert failing


def test_node_whose_disk_fails_in_its_first_turn_is_started_again() -> None:
    simulation = Simulation(1, Options(voters=1, nemesis_ms={}))
    (host,) = simulation.quorum.hosts
    host.disk.faults = DiskFaults(inline_syncs=True, fsync_failure=1.0)
    assert isinstance(host.disk, Disk)
    host.disk._inline_share = 1.0
    simulation.quorum.start()
    assert not host.is_up
    host.disk.faults = DiskFaults()
    simulation.world.run_until(60_000_000, events_max=EVENTS)
    assert host.is_up


@pytest.mark.parametrize(("followed", "start"), [(4, 0), (5, 0), (5, 1), (5, 2)])
def test_what_is_appended_before_another_leader_is_heard_of_is_not_held_against_that_one(
    followed: int, start: int
) -> None:
    """In the turn in which it becomes a follower in epoch 5, it may have appended in epoch 4.

    Nor is what lies before the `start` of the leader's log (cluster 222000051).
    """
    first, second = LogTree().extend(None, batch(0) + batch(1))
    role = FollowerOf(leader_id=2, leader_epoch=5, partition_epoch=8, is_in_sync=True)
    log = SimpleNamespace(high_watermark=0, start_offset=0, end_offset=2)
    follower = SimpleNamespace(
        name="t-0",
        topic="t",
        topic_id=TOPIC,
        index=0,
        node_id=1,
        role=role,
        leader_id=2,
        leader_epoch=5,
        open_log=log,
    )
    leader = object.__new__(Partition)
    leader.role = LeaderOf(
        leader_epoch=5,
        epoch_start_offset=1,
        partition_epoch=8,
        replicas=(1, 2),
        isr=Committed(members=(1, 2)),
        leader_recovery_state=0,
    )
    leader.log = cast(Any, SimpleNamespace(start_offset=start))
    invariants = object.__new__(PartitionInvariants)
    key = (TOPIC, 0)
    invariants.watched = {key: Watched("t-0", None)}
    invariants._held, invariants._effects = {}, []
    seen = _Seen(last=first, followed_epoch=followed, log=cast(Any, log))
    invariants._seen = {(1, key): seen}
    invariants._hosts = cast(Any, {2: on_disk([first])})
    found = SimpleNamespace(replicas=SimpleNamespace(find=lambda *_: leader))
    invariants._broker_of = cast(Any, lambda _: found)
    invariants._knows_its_epochs = lambda *_: None  # type: ignore[method-assign]
    host = on_disk([first, second])
    is_fine = followed == 4 or start == 2
    with nullcontext() if is_fine else pytest.raises(Violation, match="D-PRE"):
        invariants._look(cast(Any, host), cast(Any, follower), host.disk.log("t-0").written)


def on_disk(entries: list[Entry]) -> SimpleNamespace:
    log = SimpleNamespace(written=Content(entries), failed=False)
    return SimpleNamespace(node_id=1, disk=SimpleNamespace(log=lambda _: log))


def test_snapshot_that_is_removed_before_its_core_hears_of_it_is_not_looked_for() -> None:
    simulation = quiet()
    host = simulation._leading_host(EVENTS)
    end = OffsetAndEpoch(1, 1)
    assert end not in host.disk.log(METADATA_LOG).snapshots.whole
    simulation.quorum.invariants._log.saved_snapshot(host, end)


# --- more disks taken than a quorum can bear ------------------------------------------------------


def test_disk_that_a_late_request_may_make_a_voters_is_not_taken() -> None:
    """One of three voters has lost its disk; if a fourth one loses its own, none can lead."""
    simulation = quiet(observers=1)
    *_, third, observer = simulation.quorum.hosts
    lose_disk(third)
    assert simulation._losses._may_lose(observer)
    simulation._administrator.adding[key_of(observer)] = None
    assert not simulation._losses._may_lose(observer)


def test_removal_that_is_late_is_thought_to_spare_who_has_lost_its_disk() -> None:
    """Without the second voter, the first has no majority: the third has lost its disk."""
    simulation = quiet()
    first, second, third = simulation.quorum.hosts
    view = simulation.quorum.invariants.view
    voters = view.committed_voters
    lost = next(voter for voter in voters if voter.id == third.node_id)
    lose_disk(third)
    asked = {lost, next(voter for voter in voters if voter.id == second.node_id)}
    assert [voter.id for voter in view.without(voters, asked)] == [first.node_id, third.node_id]


def test_removal_that_is_late_meets_the_voters_that_its_leader_has_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of three voters one may go. Of one, another and one without its disk, none may."""
    simulation = quiet()
    leader, other, _ = simulation.quorum.hosts
    administrator = simulation._administrator
    assert administrator._may_remove(key_of(other), leader)
    of_a_lost_disk = ReplicaKey(9, UUID(int=9))
    written = (key_of(leader), key_of(other), of_a_lost_disk)
    monkeypatch.setattr(simulation.quorum.invariants.view, "voters_of", lambda _host: written)
    assert not administrator._may_remove(key_of(other), leader)


# --- what was exposed or acknowledged, and forgotten ----------------------------------------------


def test_what_was_exposed_is_remembered_though_its_only_disk_is_lost() -> None:
    tree = LogTree()
    (entry,) = tree.extend(None, batch(0))
    invariants = object.__new__(PartitionInvariants)
    invariants._members_hold = lambda watched: None  # type: ignore[method-assign]
    leader = SimpleNamespace(node_id=1, open_log=SimpleNamespace(start_offset=0, high_watermark=1))
    invariants._exposes(cast(Any, leader), Watched("t-0", None), Content([entry]))
    tree.forget(entry)
    assert tree.extend(None, batch(0)) == [entry], "the same bytes are the same batch"


@pytest.mark.parametrize("start_offset", [1, 2])
def test_leader_need_not_hold_what_its_log_has_let_go_of(start_offset: int) -> None:
    """Its log had another record at 1 than the others, and was told to start behind it."""
    tree = LogTree()
    (first,) = tree.extend(None, of_epoch(0, 0, b"a"))
    (exposed,) = tree.extend(first, of_epoch(1, 1, b"b"))
    (other,) = tree.extend(first, of_epoch(0, 1, b"c"))
    (last,) = tree.extend(other, of_epoch(3, 2, b"d"))
    invariants = object.__new__(PartitionInvariants)
    invariants._members_hold = lambda watched: None  # type: ignore[method-assign]
    watched = Watched("t-0", None)
    watched.exposed = [first, exposed]
    log = SimpleNamespace(start_offset=start_offset, high_watermark=3)
    leader = cast(Any, SimpleNamespace(node_id=2, open_log=log))
    with pytest.raises(Violation, match="D-DIV") if start_offset < 2 else nullcontext():
        invariants._exposes(leader, watched, Content([first, other, last]))
    assert (watched.exposed[-1] is last) == (start_offset == 2)


def test_leadership_that_begins_and_ends_in_one_turn_is_seen() -> None:
    invariants = object.__new__(PartitionInvariants)
    invariants._effects = [
        Trace(event="partition-role", fields=tuple(told.items()))
        for told in (
            {"partition": "t-0", "role": "LeaderOf", "leader_epoch": 1},
            {"partition": "t-0", "role": "FollowerOf", "leader_epoch": 2},
            {"partition": "t-1", "role": "LeaderOf", "leader_epoch": 7},
        )
    ]
    assert invariants._led_meanwhile(cast(Any, SimpleNamespace(name="t-0"))) == [1]


def test_answer_counts_for_the_batch_that_was_sent_though_its_topic_seemed_gone() -> None:
    told: list[Acknowledged] = []
    judge = SimpleNamespace(acknowledged=lambda key, batch: told.append(batch))
    settings = ClientSettings(
        brokers=(1,),
        topic=NewTopic(name="orders", partitions=1, replication_factor=1),
        timeout_ms=1_000,
        interval_ms=10,
    )
    serials = iter(range(100))
    client = Client(settings, Random(1), lambda: next(serials), cast(Any, judge))
    client._due_ms = 1_000_000
    key = (UUID(int=7), 0)
    sent: list[Send] = []
    for _ in range(2):  # the second time it has come back with the metadata, and knows nothing
        client._partitions[key] = ProducedPartition("other", leader=1, leader_epoch=0)
        client.settle(0)
        effects = client.take_effects()
        sent += [e for e in effects if isinstance(e, Send) and isinstance(e.body, ProduceRequest)]
    before, after = client._partitions[key], len(sent)
    assert after == 2
    answer = ProduceResponse(
        responses=(
            TopicProduceResponse(
                topic_id=key[0],
                partition_responses=(PartitionProduceResponse(index=0, base_offset=0),),
            ),
        )
    )
    client.receive(Response(token=sent[0].token, body=answer), 1)
    assert told[0].values[0] == b"0", "that of the first batch"
    assert before.is_sending, "the second is still on its way"


# --- topics of the same name ----------------------------------------------------------------------


def test_record_that_was_never_in_a_topic_is_not_to_be_read_by_its_id() -> None:
    invariants = object.__new__(PartitionInvariants)
    key = (UUID(int=7), 0)
    invariants.watched = {key: Watched("other-0", None)}
    with pytest.raises(Violation, match="D-ONE"):
        invariants.has_read(key, 0, b"1")


def test_client_asks_for_a_deleted_topic_by_its_id_when_another_has_its_name() -> None:
    read: list[tuple[Key, int, bytes]] = []
    judge = SimpleNamespace(has_read=lambda *told: read.append(told))
    settings = ClientSettings(
        brokers=(1,),
        topic=NewTopic(name="orders", partitions=1, replication_factor=1),
        timeout_ms=1_000,
        interval_ms=0,
    )
    client = Client(settings, Random(1), lambda: 0, cast(Any, judge))
    before, after = UUID(int=7), UUID(int=8)
    there = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)
    for topic_id in (before, after, before):  # the last is old news: nothing is asked for
        topic = MetadataResponseTopic(name="other", topic_id=topic_id, partitions=(there,))
        client._learn(MetadataResponse(topics=(topic,)), 0)
    (sent,) = [effect for effect in client.take_effects() if isinstance(effect, Send)]
    assert isinstance(sent.body, FetchRequest)
    assert sent.body.topics[0].topic_id == before
    records = data_batch([b"1"], timestamp_ms=0)
    told = FetchedPartition(partition_index=0, records=records)
    answer = FetchResponse(responses=(FetchedTopic(topic_id=before, partitions=(told,)),))
    client.receive(Response(token=sent.token, body=answer), 1)
    assert read == [((before, 0), 0, b"1")]


@pytest.mark.parametrize(("epoch", "is_sound"), [(0, True), (1, False)])
def test_log_that_is_trimmed_in_the_turn_that_opens_it_has_fewer_records_than_its_broker_knows(
    epoch: int, is_sound: bool
) -> None:
    """Cluster seed 201000412: a broker opened a log and had old segments removed at once."""
    known = SimpleNamespace(entries=[EpochStart(0, 50)])
    log = SimpleNamespace(start_offset=50, end_offset=58, epochs=known)
    partition = SimpleNamespace(name="t-0", node_id=1, open_log=log)
    written = SimpleNamespace(end_offset=58)
    look = partial(
        PartitionInvariants._knows_its_epochs,
        cast(PartitionInvariants, None),
        cast(Partition, partition),
        cast(Content, written),
    )
    with nullcontext() if is_sound else pytest.raises(Violation, match="D-EPC"):
        look([EpochStart(epoch, 55)], 0)


@pytest.mark.parametrize(("deletable", "is_sound"), [(10, True), (9, False)])
def test_epochs_of_deleted_records_are_not_known_though_the_records_came_back(
    deletable: int, is_sound: bool
) -> None:
    """Cluster seed 223000116: the power failed before the start of the log was on the disk."""
    log = SimpleNamespace(
        start_offset=0, end_offset=33, epochs=SimpleNamespace(entries=[EpochStart(0, 10)])
    )
    partition = SimpleNamespace(name="t-0", node_id=1, open_log=log)
    with nullcontext() if is_sound else pytest.raises(Violation, match="D-EPC"):
        PartitionInvariants._knows_its_epochs(
            cast(PartitionInvariants, None),
            cast(Partition, partition),
            cast(Content, SimpleNamespace(end_offset=33)),
            [EpochStart(0, 0)],
            deletable,
        )


# --- logs of partitions on the shipped storage --------------------------------------------------


def test_what_a_failed_sync_did_not_write_may_go_with_any_later_process() -> None:
    """The system reads pages again when it likes. Who opens the log before that keeps it."""
    ends = set()
    for seed in range(40):
        bench = on_files(seed)
        bench.disk.faults = DiskFaults(fsync_failure=1.0)
        bench.run(5)
        assert bench.has_failed
        bench.disk.faults = DiskFaults()
        for _ in range(3):  # nobody opens it
            bench.crash(power_loss=False)
            ends.add(bench.disk.log("t-0").written.end_offset)
    assert {0, 8} <= ends


def test_start_that_was_moved_may_last_where_the_records_up_to_there_did_not() -> None:
    """Cluster seed 180000791: nothing was left that showed behind what the log began."""
    ends = set()
    for seed in range(40):
        bench = on_files(seed, synced=3)
        assert bench.disk.log("t-0").durable.end_offset == 3
        bench.tree.extend(None, b"".join(in_files(offset, epoch=1) for offset in range(6)))
        bench.perform(Trim(log="t-0", token=bench.token(), start_offset=6))
        bench.run(seed % 7)
        bench.crash(power_loss=True)
        content = bench.disk.log("t-0").written
        ends.add((content.start_offset, content.end_offset))
    assert (6, 6) in ends


def test_log_that_is_deleted_while_it_is_opened_is_not_looked_at() -> None:
    """The process is told what was found of it, and the deletion comes after that."""
    bench = on_files(1)
    bench.crash(power_loss=False)
    bench.perform(OpenLog(log="t-0", token=bench.token(), topic_id=UUID(int=7)))
    bench.perform(DeleteLog(log="t-0", token=bench.token()))
    again = OpenLog(log="t-0", token=bench.token(), topic_id=UUID(int=8))
    bench.perform(again)
    opened: list[Opened] = []
    bench.disk.attach(lambda event: opened.append(cast(Opened, event)))
    bench.run(50)
    assert [each.state.end_offset for each in opened] == [8, 0]
    assert bench.disk.log("t-0").topic_id == again.topic_id


def test_storage_wakes_its_process_after_a_call() -> None:
    """Within the call the process is in the midst of a turn, and may end with what it hears."""
    bench = on_files(1)
    bench.perform(OpenLog(log="t-1", token=bench.token(), topic_id=UUID(int=7)))
    assert not bench.events
    (opened,) = bench.disk.begin_syncs()
    assert isinstance(opened, Opened)


def test_coordinator_may_write_the_same_of_two_groups() -> None:
    """Both were left by their members in the same moment, and their keys are not compared."""
    run = ClusterRun(8053, None, None, wants=frozenset({"members"}))
    run.run(1_000_000)


class Lagging:
    """1 leads, with 2 and 3 in the ISR, of which each may lag for a second."""

    def __init__(self) -> None:
        state = PartitionState(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=4)
        self.led = partition_of("t", 0, state)
        self.log = LocalLog(LogState(log="t-0", end_offset=10), Outbox(OWNER), self.led.moves)
        self.led.opened(self.log, 0)
        self.judge = LaggingMembers()
        self.fetched(1000, 3)  # all of it
        self.settled(1001)  # 2 lags
        self.log.end_offset += 1

    def fetched(self, now_ms: int, broker_id: int) -> None:
        asked = FollowerFetch(
            broker_id=broker_id,
            broker_epoch=-1,
            fetch_offset=self.log.end_offset,
            log_start_offset=0,
        )
        self.led.fetched(asked, now_ms)

    def settled(self, now_ms: int, *, lasted_ms: int = 0) -> None:
        config = SimpleNamespace(replica_lag_time_max_ms=1000)
        broker = SimpleNamespace(leaders=[self.led], replicas=[self.led], config=config)
        host = SimpleNamespace(node_id=1, turn_ms=now_ms, now_ms=now_ms + lasted_ms)
        self.judge.settled_broker(cast(Any, host), cast(Any, broker))


def test_members_that_lag_one_after_the_other_are_not_one_that_lags() -> None:
    """Cluster seed 244001030: the leader was paused, and found one back and another behind."""
    lagging = Lagging()
    lagging.fetched(2001, 2)
    lagging.settled(2001)  # 3 lags
    lagging.settled(2500)
    with pytest.raises(Violation, match="D-LAG"):
        lagging.settled(2507)


def test_member_that_lags_is_not_excused_by_one_that_lags_since_later() -> None:
    lagging = Lagging()
    lagging.settled(1500)
    with pytest.raises(Violation, match="D-LAG"):
        lagging.settled(2001)


def test_next_leadership_has_its_own_time_to_ask() -> None:
    lagging = Lagging()
    lagging.led.role = replace(lagging.led.led)
    lagging.settled(1507)
    with pytest.raises(Violation, match="D-LAG"):
        lagging.settled(2013)


def test_what_a_member_fetched_in_the_turn_counts_also_when_that_takes_time() -> None:
    """Cluster seeds 251000338 and 251001191: the turn that asked ended a moment later."""
    lagging = Lagging()
    lagging.led.led.isr = PendingShrink(members=(1, 2, 3), leaving=(2,))
    lagging.fetched(2500, 2)
    lagging.settled(2500, lasted_ms=1)
    lagging.led.led.isr = PendingShrink(members=(1, 2, 3), leaving=(2,))
    with pytest.raises(Violation, match="D-LAG"):
        lagging.settled(2501)
