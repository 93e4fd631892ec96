"""Voters that change, and disks that are lost: two majorities that share no voter.

Source: KIP-853; Raft thesis 4; raft-dev 2015, "bug in single-server changes".
"""

from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.harm.harm_steps import (
    SNAPSHOTS_OFTEN,
    comes_to_rest,
    cut_off_one,
    hold,
    let_go,
    others,
    write_batches,
)
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from quorum.raft.config import SnapshotSettings
from wire.messages.fetching import FetchRequest

__all__ = ["VOTERS"]

VOTERS: Schedules = {}

_EACH_SECOND = SnapshotSettings(interval_ms=1_000)
_ELECTIONS_MS = 700  # time enough for those that are left to elect a leader, if they may


# --- who is a voter -------------------------------------------------------------------------


@schedule(VOTERS, finds=("counts_observers",))
def only_observers_follow(production: Production) -> None:
    """A leader is cut off with two observers, writes on, and dies.

    The other voters have not heard of it, and elect another.
    """
    scenario = Scenario(production, voters=3, observers=2)
    *voters, one, another = scenario.nodes
    leader = scenario.leader(voters)
    scenario.commits()
    comes_to_rest(scenario)
    scenario.cut([leader, one, another])
    _writes_on_and_dies(scenario, leader)
    _others_go_on(scenario)
    scenario.finish()


@schedule(VOTERS, finds=("votes_in_the_place_of_another_disk",))
def voter_has_forgotten_and_votes(production: Production) -> None:
    """A leader and one voter commit what the third has not heard of. The leader dies.

    The voter comes back without its disk, and with that its vote is lost: it must not elect the
    third.
    """
    scenario, leader, forgetful, behind = _with_one_behind(production)
    scenario.cut_between(behind, [leader])
    scenario.kill(leader)
    scenario.wipe(forgetful)
    scenario.heal()
    _others_go_on(scenario)
    scenario.finish()


@schedule(VOTERS, finds=("takes_any_disk_for_the_voters",))
def voter_has_forgotten_and_stands(production: Production) -> None:
    """A leader and one voter commit what the third has not heard of. The voter loses its disk.

    It has fetched as much again as the third has when the leader dies: it must not stand.
    """
    scenario, leader, forgetful, behind = _with_one_behind(production, bytes_max=100)
    replicas = scenario.quorum.replicas
    enough = replicas[behind].end_offset

    def is_too_much(message: Message) -> bool:
        has_enough = replicas[forgetful].end_offset >= enough
        return message.target == forgetful and message.source == leader and has_enough

    scenario.quorum.network.takes = is_too_much
    scenario.wipe(forgetful)
    scenario.until(
        "L-HW",
        lambda: replicas[forgetful].end_offset >= enough,
        f"{forgetful} has as much as {behind} again",
    )
    scenario.kill(leader)
    scenario.heal()
    _others_go_on(scenario)
    scenario.finish()


@schedule(VOTERS, finds=("counts_voters_once_committed",))
def voters_that_have_left_elect(production: Production) -> None:
    """Two of five voters are removed, and all know it.

    Two of the three that are left commit what the third has not heard of, and die. It is started
    again with those that were removed.
    """
    scenario = Scenario(production, voters=5, kraft_version=1)
    first = scenario.leader()
    scenario.commits()
    gone = others(scenario, first)[-2:]
    _remove(scenario, *gone)
    scenario.commits()
    scenario.run(100)
    scenario.note(f"{first} resigns")
    scenario.host(first).command(scenario.quorum.replicas[first].resign)
    scenario.run(50)
    leader = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    with_it, left = others(scenario, leader, *gone)
    scenario.cut([leader, with_it])
    _writes_on_and_dies(scenario, leader, with_it)
    survivors = [left, *gone]
    scenario.kill(*survivors)
    scenario.restart(*survivors)
    _others_go_on(scenario)
    scenario.finish()


@schedule(VOTERS, finds=("loads_without_voters",))
def voters_have_left_in_a_snapshot(production: Production) -> None:
    """Two of five voters are removed while a third is away, which begins with a snapshot.

    The other two commit what it has not heard of, and die: those that were removed must not elect
    it.
    """
    scenario = Scenario(production, voters=5, kraft_version=1, snapshots=SNAPSHOTS_OFTEN)
    leader = scenario.leader()
    scenario.commits()
    with_it, away, *gone = others(scenario, leader)
    scenario.kill(away)
    _remove(scenario, *gone, to=leader)
    changed = scenario.committed
    scenario.until("L-HW", lambda: scenario.log_start(leader) > changed, "the log is cleaned")
    scenario.restart(away)
    scenario.until("L-HW", lambda: scenario.log_start(away) > changed, f"{away} has the snapshot")
    scenario.commits()
    comes_to_rest(scenario)
    scenario.cut([leader, with_it])
    _writes_on_and_dies(scenario, leader, with_it)
    _others_go_on(scenario)
    scenario.finish()


# --- changing them --------------------------------------------------------------------------


@schedule(VOTERS, finds=("changes_voters_that_are_not_committed",))
def two_are_removed_at_once(production: Production) -> None:
    """A leader of five is cut off with one other, and told to remove two of the rest.

    Once both removals are written they do not count for it, and it would be a majority with the
    other. For each other all three count.
    """
    scenario = Scenario(production, voters=5, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    with_it, _, *victims = others(scenario, leader)
    scenario.cut([leader, with_it])
    for victim in victims:
        scenario.remove_voter(scenario.key(victim), to=leader)
        scenario.run(20)
    _writes_on_and_dies(scenario, leader, with_it)
    _others_go_on(scenario)
    scenario.finish()


@schedule(VOTERS, finds=("changes_voters_before_a_commit",))
def two_leaders_change_voters(production: Production) -> None:
    """One of four leads, is cut off, and adds a fifth. The next leader removes it.

    If that one did so before anything of its own epoch is committed, it would be a majority of the
    three that are left with one other; and the first, the added one, and the fourth would be one of
    five.
    """
    scenario, first, added = _with_one_added_alone(production)
    replicas = scenario.quorum.replicas
    left = others(scenario, first, added)
    held = hold(
        scenario,
        lambda message: isinstance(message.body, FetchRequest) and message.source in left,
    )
    second = scenario.first_leader(left)
    with_it, fourth = others(scenario, first, added, second)
    scenario.cut_between(fourth, [second, with_it])
    scenario.remove_voter(scenario.key(first), to=second)
    scenario.run(20)
    let_go(scenario, held)
    scenario.until(
        "L-HW",
        lambda: replicas[with_it].end_offset == replicas[second].end_offset,
        f"{with_it} has what {second} has",
    )
    scenario.run(20)
    _writes_on_and_dies(scenario, second, with_it)
    _others_go_on(scenario)
    scenario.finish()


@schedule(VOTERS, finds=("keeps_truncated_voters",))
def added_voter_never_was(production: Production) -> None:
    """One of four leads, is cut off, and adds a fifth.

    The next leader lets it take that back, and removes it. With the fifth and one that has not
    heard of that, it is a majority of nothing.
    """
    scenario, first, added = _with_one_added_alone(production)
    _next_leader_removes(scenario, first, added)
    scenario.finish()


@schedule(VOTERS, finds=("says_the_latest_voters",))
def added_voter_is_in_no_snapshot(production: Production) -> None:
    """One of four leads, is cut off, and adds a fifth.

    Then it takes a snapshot of what is committed, and is started again. It takes back what it
    added, and must have forgotten it.
    """
    scenario, first, added = _with_one_added_alone(production, from_ms=900, snapshots=_EACH_SECOND)
    log = scenario.quorum.replicas[first].raft.replica.log
    scenario.until("L-HW", lambda: log.latest_snapshot is not None, f"{first} has a snapshot")
    scenario.kill(first)
    scenario.restart(first)
    _next_leader_removes(scenario, first, added)
    scenario.finish()


# --- how they begin -------------------------------------------------------------------------


def _with_one_behind(production: Production, **options: int) -> tuple[Scenario, int, int, int]:
    """A leader, one that has committed with it, and one that lacks that and is still cut off."""
    scenario, leader, with_it, behind = cut_off_one(production, kraft_version=1, **options)
    _writes_on(scenario, leader)
    return scenario, leader, with_it, behind


def _with_one_added_alone(
    production: Production, from_ms: int = 0, **options: SnapshotSettings
) -> tuple[Scenario, int, int]:
    """One of four leads and is cut off; then it adds the observer that is still with it.

    Returns those two; they are cut off still. Not before `from_ms`.
    """
    scenario = Scenario(production, voters=4, observers=1, kraft_version=1, **options)
    world, replicas = scenario.quorum.world, scenario.quorum.replicas
    first = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    scenario.until("L-HW", lambda: world.now_us >= from_ms * 1000, "it is time")
    added = scenario.nodes[-1]
    scenario.cut([first, added])
    before = replicas[first].end_offset
    scenario.add_voter(added, to=first)
    scenario.until(
        "L-MC",
        lambda: before < replicas[first].end_offset == replicas[added].end_offset,
        f"{added} is a voter, as far as these two know",
    )
    return scenario, first, added


# --- steps ----------------------------------------------------------------------------------


def _writes_on(scenario: Scenario, leader: int) -> None:
    """It has the time to commit what it writes with whoever hears it."""
    write_batches(scenario, leader)
    scenario.run(50)


def _writes_on_and_dies(scenario: Scenario, leader: int, *with_it: int) -> None:
    """All links are whole again, but those that it wrote with are dead, too."""
    _writes_on(scenario, leader)
    scenario.kill(leader, *with_it)
    scenario.heal()


def _others_go_on(scenario: Scenario) -> None:
    """Whoever comes to lead now, if they can elect one, writes something."""
    scenario.run(_ELECTIONS_MS)
    for node in scenario.nodes:
        if scenario.host(node).is_up:
            scenario.propose_if_leading(node)
    scenario.run(50)


def _remove(scenario: Scenario, *victims: int, to: int | None = None) -> None:
    """One after the other."""
    for victim in victims:
        left = [voter for voter in scenario.voters if voter != victim]
        scenario.remove_voter(scenario.key(victim), to=to)
        scenario.has_voters(*left)


def _next_leader_removes(scenario: Scenario, first: int, added: int) -> None:
    """What the first has added is taken back; then the next leader and one other remove it.

    These two commit more, and die. Only the first, whom it had added, and one that does not know of
    the removal are left.
    """
    left = others(scenario, first, added)
    second = scenario.leader(left)
    end_offset = scenario.quorum.replicas[second].end_offset
    scenario.until("L-HW", lambda: scenario.committed >= end_offset, f"{second} has committed")
    scenario.heal()
    scenario.leader()
    scenario.run(100)
    with_it = others(scenario, first, added, second)[0]
    scenario.cut([second, with_it])
    scenario.remove_voter(scenario.key(first), to=second)
    scenario.has_voters(*left)
    _writes_on_and_dies(scenario, second, with_it)
    _others_go_on(scenario)
