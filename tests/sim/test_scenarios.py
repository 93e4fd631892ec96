"""What a quorum must live through that a schedule has no words for, over a few seeds.

The schedules of `jepsen_like/scenarios/schedules/quorum` have the rest. The invariants of
docs/simulation.md are checked after every event.
"""

from dataclasses import replace

import pytest

from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.sim.world.network import LinkFaults
from quorum.core.types import ReplicaKey
from quorum.raft.config import SnapshotSettings

each_seed = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
)

OFTEN = SnapshotSettings(
    bytes_between=500, interval_ms=0, retention_bytes=1000, retention_ms=-1, fetch_max_bytes=100
)


def has_voters(quorum: DirectedQuorum, *voters: int) -> None:
    what = f"the voters are {', '.join(map(quorum.names.of, voters))}"
    quorum.until(lambda: sorted(quorum.voters) == sorted(voters), what, bound="L-MC")


@each_seed
@pytest.mark.parametrize("power_loss", [False, True])
def test_all_die_and_a_majority_comes_back(seed: int, power_loss: bool) -> None:
    quorum = DirectedQuorum(Production(seed=seed), voters=5)
    quorum.leader()
    quorum.commits(20)
    quorum.kill(*quorum.nodes, power_loss=power_loss)
    quorum.run(50)
    quorum.restart(1, 2)
    before = quorum.committed
    quorum.run(500)
    assert quorum.committed == before, quorum.quorum.summary()
    quorum.restart(4)
    quorum.commits()
    quorum.restart(3, 5)
    quorum.converges()


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
    away = quorum.host(1 if leader != 1 else 2)
    damaged = ReplicaKey(away.node_id, away.directory_id)
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
def test_snapshot_is_fetched_on_from_the_next_leader(seed: int) -> None:
    quorum = DirectedQuorum(
        Production(seed=seed), voters=3, snapshots=replace(OFTEN, fetch_max_bytes=10)
    )
    leader = quorum.leader()
    quorum.commits()
    away = next(node for node in quorum.nodes if node != leader)
    quorum.kill(away)
    quorum.commits(100, within_ms=5000)
    quorum.quorum.let_propose(False)
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
