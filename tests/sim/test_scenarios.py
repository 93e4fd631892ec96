"""What a quorum must live through, one scenario each, over a few seeds.

First those of Apache Kafka's RaftEventSimulationTest, then those that it lacks. The invariants of
docs/simulation.md are checked after every event.
"""

from dataclasses import replace

import pytest

from jepsen_like.sim.network import LinkFaults
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.simulated import simulated
from jepsen_like.sim.violation import Violation
from quorum.raft.config import SnapshotSettings

each_seed = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
)

OFTEN = SnapshotSettings(
    bytes_between=500, interval_ms=0, retention_bytes=1000, retention_ms=-1, fetch_max_bytes=100
)


# --- those of Kafka's simulation -------------------------------------------------------------


@each_seed
@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5])
def test_first_election(voters: int, seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=voters)
    scenario.leader()
    scenario.commits()
    scenario.converges()


@each_seed
@pytest.mark.parametrize("voters", [3, 5])
def test_leader_is_killed_and_catches_up(voters: int, seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=voters)
    leader = scenario.leader()
    scenario.commits()
    scenario.kill(leader)
    assert scenario.leader() != leader
    scenario.commits()
    scenario.restart(leader)
    scenario.converges()


@each_seed
def test_leader_is_shut_down_in_good_order(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=3)
    leader = scenario.leader()
    scenario.commits()
    scenario.shut_down(leader)
    assert scenario.leader(within_ms=100) != leader, "nobody waits for the fetch timeout"
    scenario.commits()
    scenario.restart(leader)
    scenario.converges()


@each_seed
@pytest.mark.parametrize("power_loss", [False, True])
def test_all_die_and_a_majority_comes_back(seed: int, power_loss: bool) -> None:
    scenario = Scenario(simulated(seed=seed), voters=5)
    scenario.leader()
    scenario.commits(20)
    scenario.kill(*scenario.nodes, power_loss=power_loss)
    scenario.run(50)
    scenario.restart(1, 2)
    scenario.stays(500)
    scenario.restart(4)
    scenario.commits()
    scenario.restart(3, 5)
    scenario.converges()


@each_seed
def test_leader_is_cut_off_and_resigns(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=5)
    leader = scenario.leader()
    scenario.commits()
    scenario.cut([leader])
    others = [node for node in scenario.nodes if node != leader]
    assert scenario.leader(others) in others
    scenario.commits()
    scenario.run(2 * scenario.quorum.options.fetch_timeout_ms)
    assert not scenario.quorum.replicas[leader].leads
    scenario.heal()
    scenario.converges()


@each_seed
def test_majority_goes_on_without_a_minority_that_can_only_answer(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=5)
    scenario.leader()
    scenario.commits()
    scenario.cut([1, 2], requests_only=True)
    scenario.leader([3, 4, 5])
    scenario.commits(30)
    scenario.heal()
    scenario.converges()


@each_seed
def test_one_leader_after_the_other_is_cut_off(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=5)
    first = scenario.leader()
    scenario.commits()
    scenario.cut([first])
    second = scenario.leader(node for node in scenario.nodes if node != first)
    scenario.commits()
    scenario.heal()
    scenario.cut([second])
    third = scenario.leader(node for node in scenario.nodes if node != second)
    assert third != second
    scenario.commits()
    scenario.heal()
    scenario.converges()


@each_seed
def test_voter_loses_its_disk_after_an_election(seed: int) -> None:
    """With static voters this is safe only as long as nobody needs what it had promised."""
    scenario = Scenario(simulated(seed=seed), voters=3)
    leader = scenario.leader()
    scenario.commits()
    scenario.kill(leader)
    scenario.leader()
    scenario.commits()
    scenario.host(leader).disk.wipe()
    scenario.restart(leader)
    scenario.converges()


# --- those that it lacks ---------------------------------------------------------------------


@each_seed
@pytest.mark.parametrize("codecs", [False, True])
def test_messages_are_doubled_and_overtake_each_other(seed: int, codecs: bool) -> None:
    links = LinkFaults(duplication=0.5, reordering=0.5, delay_us_mean=3000)
    scenario = Scenario(simulated(seed=seed), voters=5, links=links, codecs=codecs)
    leader = scenario.leader()
    scenario.commits(30)
    scenario.kill(leader, power_loss=True)
    scenario.leader()
    scenario.commits(30)
    scenario.restart(leader)
    scenario.quorum.network.faults = LinkFaults()
    scenario.converges()
    assert scenario.counts["duplicated"] > 100
    assert scenario.counts["reordered"] > 100


@each_seed
def test_damaged_voter_stays_away_until_it_has_an_empty_disk(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    damaged = scenario.key(1 if leader != 1 else 2)
    scenario.kill(damaged.id)
    scenario.host(damaged.id).disk.is_damaged = True
    scenario.commits()
    scenario.host(damaged.id).disk.wipe()
    scenario.restart(damaged.id)
    scenario.commits()
    scenario.remove_voter(damaged)
    scenario.has_voters(*(node for node in scenario.nodes if node != damaged.id))
    scenario.run(200)
    scenario.add_voter(damaged.id)
    scenario.has_voters(1, 2, 3)
    scenario.converges()


@each_seed
def test_voters_are_added_and_removed_one_by_one(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=1, observers=2, kraft_version=1)
    scenario.leader()
    scenario.commits()
    scenario.add_voter(2)
    scenario.has_voters(1, 2)
    scenario.commits()
    scenario.run(100)
    scenario.add_voter(3)
    scenario.has_voters(1, 2, 3)
    scenario.commits()
    scenario.run(100)
    scenario.remove_voter(scenario.key(2))
    scenario.has_voters(1, 3)
    scenario.kill(2)
    scenario.commits()
    scenario.converges()


@each_seed
@pytest.mark.parametrize("voters", [2, 3])
def test_leader_removes_itself_and_another_takes_over(seed: int, voters: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=voters, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    scenario.remove_voter(scenario.key(leader))
    left = [node for node in scenario.nodes if node != leader]
    scenario.has_voters(*left)
    assert scenario.leader() in left
    scenario.commits()
    scenario.converges()


@each_seed
def test_who_removed_itself_leads_on_until_that_is_committed(seed: int) -> None:
    """Its log is the longest of a quorum of two: if it did not stand, nobody could (4.2.2)."""
    scenario = Scenario(simulated(seed=seed), voters=2, kraft_version=1)
    leader = scenario.leader()
    other = 3 - leader
    scenario.commits()
    scenario.cut([leader])
    scenario.remove_voter(scenario.key(leader), to=leader)
    scenario.run(20)
    scenario.kill(leader)
    scenario.heal()
    scenario.run(1000)
    assert scenario.voters == [1, 2], "not committed"
    scenario.restart(leader)
    scenario.has_voters(other)
    assert scenario.leader() == other
    scenario.converges()


@each_seed
def test_clocks_that_differ_by_years_and_are_set_back(seed: int) -> None:
    """Only how fast a clock goes matters, and the highest tolerance is that of the timeouts."""
    scenario = Scenario(simulated(seed=seed), voters=3, drift_ppm_max=50_000, snapshots=OFTEN)
    year_ms = 365 * 24 * 3_600_000
    for node in scenario.nodes:
        scenario.leader()
        scenario.commits()
        scenario.kill(node)
        host = scenario.host(node)
        host.clock = replace(host.clock, offset_ms=(1, -1, 10)[node - 1] * year_ms)
        scenario.run(10)
        scenario.restart(node)
    leader = scenario.leader()
    elections = scenario.quorum.invariants.elections
    scenario.run(5000)
    assert scenario.leader() == leader
    assert scenario.quorum.invariants.elections == elections
    scenario.converges()


@each_seed
def test_who_was_cut_off_does_not_depose_the_leader(seed: int) -> None:
    """Pre-vote (KIP-996): neither while it is away, nor when it is back."""
    scenario = Scenario(simulated(seed=seed), voters=3)
    leader = scenario.leader()
    scenario.commits()
    epoch = scenario.quorum.replicas[leader].leader.epoch
    away = next(node for node in scenario.nodes if node != leader)
    scenario.cut([away])
    scenario.run(1500)
    scenario.heal()
    scenario.converges()
    assert scenario.quorum.replicas[leader].leader.epoch == epoch
    assert scenario.leader() == leader


@each_seed
def test_followers_that_never_heard_a_dead_leader_elect_another(seed: int) -> None:
    """They must not refuse each other's pre-votes for its sake (KAFKA-17641)."""
    scenario = Scenario(simulated(seed=seed), voters=3)
    leader = scenario.leader()
    scenario.kill(leader)
    scenario.leader()
    scenario.commits()


@each_seed
def test_voter_loses_its_disk_before_the_next_election(seed: int) -> None:
    """Its vote and its records are gone, so it must not help anybody to a majority (KIP-853)."""
    scenario = Scenario(simulated(seed=seed), voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    forgetful, behind = (node for node in scenario.nodes if node != leader)
    scenario.cut([behind])
    scenario.commits()
    scenario.kill(leader)
    scenario.wipe(forgetful)
    scenario.heal()
    scenario.stays(2000)
    scenario.restart(leader)
    scenario.commits()
    scenario.converges()


@each_seed
def test_static_voters_cannot_tell_that_a_disk_was_lost(seed: int) -> None:
    """Why kraft.version 1 names voters by their disks: here the same costs committed records."""
    scenario = Scenario(simulated(seed=seed), voters=3)
    leader = scenario.leader()
    scenario.commits()
    forgetful, behind = (node for node in scenario.nodes if node != leader)
    scenario.cut([behind])
    scenario.commits()
    scenario.kill(leader)
    scenario.wipe(forgetful)
    scenario.heal()
    with pytest.raises(Violation, match="R-LC"):
        scenario.leader([forgetful, behind])


@each_seed
@pytest.mark.parametrize("observers", [0, 1])
def test_who_is_far_behind_gets_a_snapshot(seed: int, observers: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=3, observers=observers, snapshots=OFTEN)
    leader = scenario.leader()
    scenario.commits()
    away = scenario.nodes[-1] if scenario.nodes[-1] != leader else 1
    scenario.kill(away)
    scenario.commits(100, within_ms=5000)
    assert all(scenario.log_start(node) > 20 for node in scenario.nodes if node != away)
    scenario.restart(away)
    scenario.converges()
    assert scenario.counts["snapshot_received"] == 1
    assert scenario.counts["snapshot_loaded"] >= 1


@each_seed
def test_snapshot_is_fetched_on_from_the_next_leader(seed: int) -> None:
    scenario = Scenario(
        simulated(seed=seed), voters=3, snapshots=replace(OFTEN, fetch_max_bytes=10)
    )
    leader = scenario.leader()
    scenario.commits()
    away = next(node for node in scenario.nodes if node != leader)
    scenario.kill(away)
    scenario.commits(100, within_ms=5000)
    scenario.quorum.stop_proposing()
    scenario.restart(away)
    scenario.run(10)
    assert scenario.counts["snapshot_received"] == 0, "under way"
    scenario.kill(leader)
    scenario.leader(within_ms=4000)
    scenario.restart(leader)
    scenario.converges()
    assert scenario.counts["snapshot_received"] == 1


@each_seed
def test_all_power_fails_again_and_again_under_snapshots(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=3, snapshots=OFTEN)
    for _ in range(10):
        scenario.commits(30, within_ms=5000)
        scenario.kill(*scenario.nodes, power_loss=True)
        scenario.restart(*scenario.nodes)
    scenario.converges()
    assert scenario.counts["snapshot_loaded"] > 5


@each_seed
def test_without_a_majority_nothing_happens(seed: int) -> None:
    scenario = Scenario(simulated(seed=seed), voters=5)
    leader = scenario.leader()
    scenario.commits()
    scenario.kill(*(node for node in scenario.nodes if node != leader))
    scenario.run(100)
    scenario.stays(2000)
    assert not scenario.quorum.replicas[leader].leads
