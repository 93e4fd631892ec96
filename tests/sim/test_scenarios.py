"""What a quorum must live through, one scenario each, over a few seeds.

First those of Apache Kafka's RaftEventSimulationTest, then those that it lacks. The invariants of
docs/simulation.md are checked after every event.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.production import Production
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.network import LinkFaults, Message
from quorum.raft.config import SnapshotSettings

each_seed = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
)

OFTEN = SnapshotSettings(
    bytes_between=500, interval_ms=0, retention_bytes=1000, retention_ms=-1, fetch_max_bytes=100
)


def is_request_between(these: list[int], others: list[int]) -> Callable[[Message], bool]:
    links = both_ways(these, others)
    return lambda message: message.is_request and (message.source, message.target) in links


def stays(quorum: DirectedQuorum, ms: int) -> None:
    """Nothing is committed, although there is time."""
    before = quorum.committed
    quorum.run(ms)
    assert quorum.committed == before, quorum.quorum.summary()


def replace_disk(quorum: DirectedQuorum, node: int) -> None:
    """It comes back with an empty one."""
    quorum.kill(node)
    quorum.wipe(node)
    quorum.restart(node)


def has_voters(quorum: DirectedQuorum, *voters: int) -> None:
    what = f"the voters are {', '.join(map(quorum.names.of, voters))}"
    quorum.until(lambda: sorted(quorum.voters) == sorted(voters), what, bound="L-MC")


# --- those of Kafka's simulation -------------------------------------------------------------


@each_seed
@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5])
def test_first_election(voters: int, seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=voters)
    quorum.leader()
    quorum.commits()
    quorum.converges()


@each_seed
@pytest.mark.parametrize("voters", [3, 5])
def test_leader_is_killed_and_catches_up(voters: int, seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=voters)
    leader = quorum.leader()
    quorum.commits()
    quorum.kill(leader)
    assert quorum.leader() != leader
    quorum.commits()
    quorum.restart(leader)
    quorum.converges()


@each_seed
def test_leader_is_shut_down_in_good_order(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=3)
    leader = quorum.leader()
    quorum.commits()
    quorum.shut_down(leader)
    assert quorum.leader(within_ms=100) != leader, "nobody waits for the fetch timeout"
    quorum.commits()
    quorum.restart(leader)
    quorum.converges()


@each_seed
@pytest.mark.parametrize("power_loss", [False, True])
def test_all_die_and_a_majority_comes_back(seed: int, power_loss: bool) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=5)
    quorum.leader()
    quorum.commits(20)
    quorum.kill(*quorum.nodes, power_loss=power_loss)
    quorum.run(50)
    quorum.restart(1, 2)
    stays(quorum, 500)
    quorum.restart(4)
    quorum.commits()
    quorum.restart(3, 5)
    quorum.converges()


@each_seed
def test_leader_is_cut_off_and_resigns(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=5)
    leader = quorum.leader()
    quorum.commits()
    quorum.cut([leader])
    others = [node for node in quorum.nodes if node != leader]
    assert quorum.leader(others) in others
    quorum.commits()
    quorum.run(2 * quorum.quorum.options.fetch_timeout_ms)
    assert not quorum.quorum.replicas[leader].leads
    quorum.heal()
    quorum.converges()


@each_seed
def test_majority_goes_on_without_a_minority_that_can_only_answer(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=5)
    quorum.leader()
    quorum.commits()
    quorum.machines.hold(is_request_between([1, 2], [3, 4, 5]))
    quorum.leader([3, 4, 5])
    quorum.commits(30)
    quorum.machines.messages.lose()
    quorum.converges()


@each_seed
def test_one_leader_after_the_other_is_cut_off(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=5)
    first = quorum.leader()
    quorum.commits()
    quorum.cut([first])
    second = quorum.leader(node for node in quorum.nodes if node != first)
    quorum.commits()
    quorum.heal()
    quorum.cut([second])
    third = quorum.leader(node for node in quorum.nodes if node != second)
    assert third != second
    quorum.commits()
    quorum.heal()
    quorum.converges()


@each_seed
def test_voter_loses_its_disk_after_an_election(seed: int) -> None:
    """With static voters this is safe only as long as nobody needs what it had promised."""
    quorum = DirectedQuorum(Production(seed=seed), voters=3)
    leader = quorum.leader()
    quorum.commits()
    quorum.kill(leader)
    quorum.leader()
    quorum.commits()
    quorum.host(leader).disk.wipe()
    quorum.restart(leader)
    quorum.converges()


# --- those that it lacks ---------------------------------------------------------------------


@each_seed
@pytest.mark.parametrize("codecs", [False, True])
def test_messages_are_doubled_and_overtake_each_other(seed: int, codecs: bool) -> None:
    links = LinkFaults(duplication=0.5, reordering=0.5, delay_us_mean=3000)
    quorum = DirectedQuorum(Production(seed=seed), voters=5, links=links, codecs=codecs)
    leader = quorum.leader()
    quorum.commits(30)
    quorum.kill(leader, power_loss=True)
    quorum.leader()
    quorum.commits(30)
    quorum.restart(leader)
    quorum.quorum.network.faults = LinkFaults()
    quorum.converges()
    assert quorum.counts["duplicated"] > 100
    assert quorum.counts["reordered"] > 100


@each_seed
def test_damaged_voter_stays_away_until_it_has_an_empty_disk(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=3, kraft_version=1)
    leader = quorum.leader()
    quorum.commits()
    damaged = quorum.key(1 if leader != 1 else 2)
    quorum.kill(damaged.id)
    quorum.host(damaged.id).disk.is_damaged = True
    quorum.commits()
    quorum.host(damaged.id).disk.wipe()
    quorum.restart(damaged.id)
    quorum.commits()
    quorum.remove_voter(damaged)
    has_voters(quorum, *(node for node in quorum.nodes if node != damaged.id))
    quorum.run(200)
    quorum.add_voter(damaged.id)
    has_voters(quorum, 1, 2, 3)
    quorum.converges()


@each_seed
def test_voters_are_added_and_removed_one_by_one(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=1, observers=2, kraft_version=1)
    quorum.leader()
    quorum.commits()
    quorum.add_voter(2)
    has_voters(quorum, 1, 2)
    quorum.commits()
    quorum.run(100)
    quorum.add_voter(3)
    has_voters(quorum, 1, 2, 3)
    quorum.commits()
    quorum.run(100)
    quorum.remove_voter(quorum.key(2))
    has_voters(quorum, 1, 3)
    quorum.kill(2)
    quorum.commits()
    quorum.converges()


@each_seed
@pytest.mark.parametrize("voters", [2, 3])
def test_leader_removes_itself_and_another_takes_over(seed: int, voters: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=voters, kraft_version=1)
    leader = quorum.leader()
    quorum.commits()
    quorum.remove_voter(quorum.key(leader))
    left = [node for node in quorum.nodes if node != leader]
    has_voters(quorum, *left)
    assert quorum.leader() in left
    quorum.commits()
    quorum.converges()


@each_seed
def test_who_removed_itself_leads_on_until_that_is_committed(seed: int) -> None:
    """Its log is the longest of a quorum of two: if it did not stand, nobody could (4.2.2)."""
    quorum = DirectedQuorum(Production(seed=seed), voters=2, kraft_version=1)
    leader = quorum.leader()
    other = 3 - leader
    quorum.commits()
    quorum.cut([leader])
    quorum.remove_voter(quorum.key(leader), to=leader)
    quorum.run(20)
    quorum.kill(leader)
    quorum.heal()
    quorum.run(1000)
    assert quorum.voters == [1, 2], "not committed"
    quorum.restart(leader)
    has_voters(quorum, other)
    assert quorum.leader() == other
    quorum.converges()


@each_seed
def test_clocks_that_differ_by_years_and_are_set_back(seed: int) -> None:
    """Only how fast a clock goes matters, and the highest tolerance is that of the timeouts."""
    quorum = DirectedQuorum(Production(seed=seed), voters=3, drift_ppm_max=50_000, snapshots=OFTEN)
    year_ms = 365 * 24 * 3_600_000
    for node in quorum.nodes:
        quorum.leader()
        quorum.commits()
        quorum.kill(node)
        host = quorum.host(node)
        host.clock = replace(host.clock, offset_ms=(1, -1, 10)[node - 1] * year_ms)
        quorum.run(10)
        quorum.restart(node)
    leader = quorum.leader()
    elections = quorum.quorum.invariants.elections
    quorum.run(5000)
    assert quorum.leader() == leader
    assert quorum.quorum.invariants.elections == elections
    quorum.converges()


@each_seed
def test_who_was_cut_off_does_not_depose_the_leader(seed: int) -> None:
    """Pre-vote (KIP-996): neither while it is away, nor when it is back."""
    quorum = DirectedQuorum(Production(seed=seed), voters=3)
    leader = quorum.leader()
    quorum.commits()
    epoch = quorum.quorum.replicas[leader].leader.epoch
    away = next(node for node in quorum.nodes if node != leader)
    quorum.cut([away])
    quorum.run(1500)
    quorum.heal()
    quorum.converges()
    assert quorum.quorum.replicas[leader].leader.epoch == epoch
    assert quorum.leader() == leader


@each_seed
def test_followers_that_never_heard_a_dead_leader_elect_another(seed: int) -> None:
    """They must not refuse each other's pre-votes for its sake (KAFKA-17641)."""
    quorum = DirectedQuorum(Production(seed=seed), voters=3)
    leader = quorum.leader()
    quorum.kill(leader)
    quorum.leader()
    quorum.commits()


@each_seed
def test_voter_loses_its_disk_before_the_next_election(seed: int) -> None:
    """Its vote and its records are gone, so it must not help anybody to a majority (KIP-853)."""
    quorum = DirectedQuorum(Production(seed=seed), voters=3, kraft_version=1)
    leader = quorum.leader()
    quorum.commits()
    forgetful, behind = (node for node in quorum.nodes if node != leader)
    quorum.cut([behind])
    quorum.commits()
    quorum.kill(leader)
    replace_disk(quorum, forgetful)
    quorum.heal()
    stays(quorum, 2000)
    quorum.restart(leader)
    quorum.commits()
    quorum.converges()


@each_seed
def test_static_voters_cannot_tell_that_a_disk_was_lost(seed: int) -> None:
    """Why kraft.version 1 names voters by their disks: here the same costs committed records."""
    quorum = DirectedQuorum(Production(seed=seed), voters=3)
    leader = quorum.leader()
    quorum.commits()
    forgetful, behind = (node for node in quorum.nodes if node != leader)
    quorum.cut([behind])
    quorum.commits()
    quorum.kill(leader)
    replace_disk(quorum, forgetful)
    quorum.heal()
    with pytest.raises(Violation, match="R-LC"):
        quorum.leader([forgetful, behind])


@each_seed
@pytest.mark.parametrize("observers", [0, 1])
def test_who_is_far_behind_gets_a_snapshot(seed: int, observers: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=3, observers=observers, snapshots=OFTEN)
    leader = quorum.leader()
    quorum.commits()
    away = quorum.nodes[-1] if quorum.nodes[-1] != leader else 1
    quorum.kill(away)
    quorum.commits(100, within_ms=5000)
    assert all(quorum.log_start(node) > 20 for node in quorum.nodes if node != away)
    quorum.restart(away)
    quorum.converges()
    assert quorum.counts["snapshot_received"] == 1
    assert quorum.counts["snapshot_loaded"] >= 1


@each_seed
def test_snapshot_is_fetched_on_from_the_next_leader(seed: int) -> None:
    quorum = DirectedQuorum(
        Production(seed=seed), voters=3, snapshots=replace(OFTEN, fetch_max_bytes=10)
    )
    leader = quorum.leader()
    quorum.commits()
    away = next(node for node in quorum.nodes if node != leader)
    quorum.kill(away)
    quorum.commits(100, within_ms=5000)
    quorum.quorum.stop_proposing()
    quorum.restart(away)
    quorum.run(10)
    assert quorum.counts["snapshot_received"] == 0, "under way"
    quorum.kill(leader)
    quorum.leader(within_ms=4000)
    quorum.restart(leader)
    quorum.converges()
    assert quorum.counts["snapshot_received"] == 1


@each_seed
def test_all_power_fails_again_and_again_under_snapshots(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=3, snapshots=OFTEN)
    for _ in range(10):
        quorum.commits(30, within_ms=5000)
        quorum.kill(*quorum.nodes, power_loss=True)
        quorum.restart(*quorum.nodes)
    quorum.converges()
    assert quorum.counts["snapshot_loaded"] > 5


@each_seed
def test_without_a_majority_nothing_happens(seed: int) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=5)
    leader = quorum.leader()
    quorum.commits()
    quorum.kill(*(node for node in quorum.nodes if node != leader))
    quorum.run(100)
    stays(quorum, 2000)
    assert not quorum.quorum.replicas[leader].leads
