"""The museum's schedules of the metadata quorum: restarts, lost disks, cuts, voters that change.

Each is played on the shipped rules and on those with one bug, which Apache Kafka had or avoided.

Source: KIP-595, KIP-853, KIP-996, the Raft thesis, and the issues named.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from jepsen_like.sim.network import Message
from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stages import QuorumStage
from jepsen_like.sim.violation import Violation
from quorum.raft.config import SnapshotSettings
from wire.messages.fetching import FetchRequest

__all__ = ["QUORUM_SCHEDULES"]

QUORUM_SCHEDULES: Schedules = {}

_FOR_EVER_US = 60_000_000
_OFTEN = SnapshotSettings(
    bytes_between=500, interval_ms=0, retention_bytes=1000, retention_ms=-1, fetch_max_bytes=100
)


def _others(scenario: QuorumStage, *nodes: int) -> list[int]:
    return [node for node in scenario.nodes if node not in nodes]


# --- R1: a leader that comes back -----------------------------------------------------------


@schedule(QUORUM_SCHEDULES, finds=("resumes_leadership",))
def leader_loses_its_tail(production: Production) -> None:
    """The leader's disk is slow: the others have a batch before it has synced that itself.

    It loses power, and is started again at once, before anybody has missed it.
    """
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    scenario.quorum.stop_proposing()
    scenario.run(50)
    scenario.note(f"the disk of {leader} becomes very slow")
    scenario.disk(leader, DiskFaults(sync_us_min=_FOR_EVER_US))
    scenario.propose()
    scenario.run(20)
    scenario.kill(leader, power_loss=True)
    scenario.disk(leader, DiskFaults())
    scenario.restart(leader)
    scenario.propose_if_leading(leader)
    scenario.run(300)
    scenario.finish()


# --- R2: a disk that is lost ----------------------------------------------------------------


@schedule(QUORUM_SCHEDULES)
def voter_loses_its_disk(production: Production) -> None:
    """One voter is cut off, and behind. The leader dies, and the third comes back without a disk.

    Those two must not elect a leader: neither has what is committed.
    """
    scenario = production.quorum(voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    forgetful, behind = _others(scenario, leader)
    scenario.cut([behind])
    scenario.commits()
    scenario.kill(leader)
    scenario.wipe(forgetful)
    scenario.heal()
    scenario.run(2_000)
    scenario.restart(leader)
    scenario.run(1_000)
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("answers_before_saving",))
def vote_is_lost(production: Production) -> None:
    """The leader dies. All disks are slow, and a vote is on its way before it is on a disk."""
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    for node in _others(scenario, leader):
        scenario.disk(node, DiskFaults(sync_us_min=20_000))
    scenario.kill(leader)
    scenario.leader()
    scenario.finish()


# --- R4, R5, R6: who hears whom -------------------------------------------------------------


@schedule(QUORUM_SCHEDULES, finds=("never_checks_quorum",))
def leader_hears_only_observers(production: Production) -> None:
    """The leader and the other voters do not hear each other; an observer hears them all.

    The observer must come to follow whom the others elect.
    """
    scenario = production.quorum(voters=3, observers=1)
    leader = scenario.leader()
    scenario.commits()
    observer = scenario.nodes[-1]
    others = _others(scenario, leader, observer)
    scenario.cut_between(leader, others)
    elected = scenario.leader(others)
    scenario.until(
        "L-EL",
        lambda: scenario.leads(observer)[0] == elected,
        f"the observer {observer} follows {elected}",
    )
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("stands_without_asking",))
def voter_is_cut_off(production: Production) -> None:
    """A voter is cut off for some election time-outs. The leader is the same when it is back."""
    scenario = production.quorum(voters=3)
    leader = scenario.leader()
    scenario.commits()
    away = _others(scenario, leader)[0]
    with _is_not_deposed(scenario, production, leader):
        scenario.cut([away])
        scenario.run(1_500)
        scenario.heal()
        scenario.run(500)
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("grants_pre_votes_while_following",))
def voter_hears_all_but_the_leader(production: Production) -> None:
    """A voter and the leader do not hear each other; the third hears both, and keeps its leader."""
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    away = _others(scenario, leader)[0]
    scenario.note("nothing is written any more")
    scenario.quorum.stop_proposing()
    scenario.run(100)
    with _is_not_deposed(scenario, production, leader):
        scenario.cut_between(away, [leader])
        scenario.run(1_500)
    scenario.finish()


@contextmanager
def _is_not_deposed(scenario: QuorumStage, production: Production, leader: int) -> Iterator[None]:
    """It leads the same epoch afterwards (L-ST)."""
    before = scenario.leads(leader)
    yield
    after = scenario.leads(leader)
    if after != before and production.is_judged:
        raise Violation("L-ST", f"leader and epoch were {before}, and are now {after}")


@schedule(QUORUM_SCHEDULES, finds=("refuses_pre_votes_for_any_leader",))
def leader_dies_unheard(production: Production) -> None:
    """A leader dies when the others know of it, one long after the other, and have fetched nothing.

    They must not refuse each other's pre-votes for its sake.
    """
    scenario = Scenario(
        production, voters=3, election_timeout_ms=20, fetch_timeout_ms=1_000, propose_interval_ms=0
    )
    network = scenario.quorum.network
    scenario.note("no fetch arrives")
    network.takes = lambda message: isinstance(message.body, FetchRequest)
    leader = scenario.first_leader(scenario.nodes)
    late = _others(scenario, leader)[-1]
    scenario.note(f"{late} does not hear of it yet")

    def is_held(message: Message) -> bool:
        is_told = (message.source, message.target) == (leader, late)
        return is_told or isinstance(message.body, FetchRequest)

    network.takes = is_held
    scenario.run(500)
    network.takes = lambda message: isinstance(message.body, FetchRequest)
    scenario.leader()
    scenario.kill(leader)
    scenario.heal()
    scenario.leader(within_ms=4_000)
    scenario.finish()


# --- R7, R8: voters that change -------------------------------------------------------------


@schedule(QUORUM_SCHEDULES, finds=("changes_voters_before_a_commit",))
def change_before_a_commit(production: Production) -> None:
    """A leader that has committed nothing in its epoch yet is asked to add a voter.

    Its other voters do not get through to it: only the node to be added does.
    """
    scenario = Scenario(production, voters=3, observers=1, kraft_version=1)
    first = scenario.leader()
    scenario.commits()
    scenario.run(100)
    candidate = scenario.nodes[-1]

    def is_fetch_of_voter(message: Message) -> bool:
        return isinstance(message.body, FetchRequest) and message.source != candidate

    scenario.kill(first)
    scenario.quorum.stop_proposing()
    scenario.note("no fetch of a voter arrives any more")
    scenario.quorum.network.takes = is_fetch_of_voter
    left = _others(scenario, first, candidate)
    second = scenario.first_leader(left)
    scenario.run(50)
    scenario.add_voter(candidate, to=second)
    scenario.run(100)
    scenario.quorum.resume_proposing()
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("counts_itself_though_removed",))
def leader_removes_itself(production: Production) -> None:
    """The leader is told to remove itself while one of the other two is cut off.

    What it commits from then on must be on both of them: it counts itself no longer.
    """
    scenario = Scenario(production, voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    away = _others(scenario, leader)[0]
    scenario.run(100)
    scenario.cut([away])
    scenario.remove_voter(scenario.key(leader), to=leader)
    scenario.run(150)
    scenario.heal()
    scenario.has_voters(*_others(scenario, leader))
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("leads_on_though_removed",))
def removed_leader_resigns(production: Production) -> None:
    """The leader removes itself. When that is committed it goes, and another takes over."""
    scenario = Scenario(production, voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    scenario.run(100)
    scenario.remove_voter(scenario.key(leader))
    left = _others(scenario, leader)
    scenario.has_voters(*left)
    scenario.until("L-EL", lambda: scenario.leader(left) in left, "another leads")
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("does_not_stand_when_being_removed",))
def removed_leader_dies_first(production: Production) -> None:
    """A leader of two writes that it is removed, and dies before the other has heard of it.

    Its log is the longest: if it did not stand again, nobody could ever be elected.
    """
    scenario = Scenario(production, voters=2, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    scenario.cut([leader])
    scenario.remove_voter(scenario.key(leader), to=leader)
    scenario.run(20)
    scenario.kill(leader)
    scenario.heal()
    scenario.run(1_000)
    scenario.restart(leader)
    scenario.has_voters(3 - leader)
    scenario.finish()


# --- R9, R12: disks and snapshots -----------------------------------------------------------


@schedule(QUORUM_SCHEDULES, finds=("goes_on_without_its_disk",))
def disk_fails(production: Production) -> None:
    """The leader's disk fails: it must stop, and leave the others to elect another."""
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    scenario.note(f"the disk of {leader} fails")
    scenario.disk(leader, DiskFaults(fsync_failure=1.0))
    scenario.until("L-EL", lambda: not scenario.host(leader).is_up, f"{leader} has stopped")
    scenario.leader()
    scenario.commits()
    scenario.finish()


@schedule(QUORUM_SCHEDULES, finds=("names_snapshots_one_off",))
def node_is_far_behind(production: Production) -> None:
    """A voter is away until the log that it needs is cleaned: it begins with a snapshot."""
    scenario = Scenario(production, voters=3, snapshots=replace(_OFTEN))
    leader = scenario.leader()
    scenario.commits()
    away = _others(scenario, leader)[0]
    scenario.kill(away)
    scenario.commits(100, within_ms=5_000)
    scenario.restart(away)
    scenario.converges()
    scenario.finish()
