"""What is written and counted: what clients lose by broken rules of replication and truncation.

Source: Raft thesis 3.5, 3.8 and 10.2.1; KIP-101, KIP-279, KIP-595.
"""

from collections.abc import Iterable

from jepsen_like.sim.network import Message
from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.schedules.harm.harm_steps import (
    comes_to_rest,
    commits_unheard,
    cut_off_one,
    cut_power,
    gets_to_work,
    hold,
    let_go,
    others,
    write,
    write_batches,
)
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from quorum.core.storage import METADATA_LOG
from quorum.raft.responses import partition_of
from wire.messages.fetching import FetchRequest, FetchResponse

__all__ = ["LOGS"]

LOGS: Schedules = {}

_SLOW = DiskFaults(sync_us_min=300_000)
_NEVER = DiskFaults(sync_us_min=60_000_000)


# --- truncation -----------------------------------------------------------------------------


@schedule(LOGS, finds=("compares_offsets_only",))
def same_length_of_another_epoch(production: Production) -> None:
    """A leader that is cut off writes a batch; another is elected until its log is as long.

    It has nothing there but that it led. The first leads again and goes on from where it was: the
    other, which follows, must not keep its own records below what it gets.
    """
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    scenario.cut([first])
    scenario.propose_if_leading(first)
    _hold_records(scenario, scenario.nodes)
    second = scenario.leader(others(scenario, first))
    replicas = scenario.quorum.replicas
    end_offset = replicas[first].end_offset
    while replicas[second].end_offset < end_offset:
        scenario.kill(second)
        scenario.restart(second)
        scenario.leader(others(scenario, first))
    scenario.heal()
    scenario.cut([second])
    scenario.leader(others(scenario, second))
    scenario.quorum.resume_proposing()
    scenario.commits(20)
    scenario.finish()


@schedule(LOGS, finds=("truncates_too_far",))
def cut_back_to_what_is_committed(production: Production) -> None:
    """A follower has what is committed, and has not heard so; it leads for a moment.

    Of that it writes one record, which it must take back, and nothing else: the third voter never
    had the rest.
    """
    scenario, first, second, behind = cut_off_one(production)
    commits_unheard(scenario, first, by=[second])
    scenario.kill(first)
    scenario.heal()
    _hold_records(scenario, scenario.nodes)
    scenario.leader([second, behind])
    scenario.cut([second])
    scenario.restart(first)
    scenario.leader([first, behind])
    scenario.heal()
    held = _hold_records(scenario, scenario.nodes)
    scenario.until("L-HW", lambda: second in _targets(held), f"{second} has cut back its log")
    scenario.kill(first)
    scenario.leader([second, behind])
    scenario.finish()


@schedule(LOGS, finds=("counts_diverging_fetches",))
def long_log_of_another_epoch(production: Production) -> None:
    """Two leaders, one of them cut off, write alone at the same offsets.

    The older one is back, and asks the other for what comes after its tail: this acknowledges
    nothing of the other's.
    """
    scenario = Scenario(production, voters=3, election_timeout_ms=50, fetch_timeout_ms=1_000)
    first = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    scenario.cut([first])
    second = scenario.leader(others(scenario, first))
    (third,) = others(scenario, first, second)
    gets_to_work(scenario, second)
    scenario.cut([third])
    _write_to_one_end(scenario, first, second)
    scenario.heal()
    scenario.cut([third])
    held = hold(scenario, lambda sent: sent.source == second and _is_fetch_answer(sent))
    scenario.until("L-HW", lambda: first in _targets(held), f"{first} has asked {second}")
    scenario.kill(second)
    scenario.heal()
    scenario.leader([first, third])
    scenario.finish()


@schedule(LOGS, finds=("learns_one_epoch_a_fetch",))
def two_epochs_at_once(production: Production) -> None:
    """Three of five have what is committed, and two of these have not heard so.

    A fourth gets it in one answer with a record of the next epoch. The first dies, and the fourth
    leads: by where it says that this epoch begins, the two cut their logs. Then it dies, too, and
    the fifth never had anything.
    """
    scenario = Scenario(production, voters=5)
    replicas = scenario.quorum.replicas
    first = scenario.leader()
    scenario.commits()
    one, another, fourth, fifth = others(scenario, first)
    comes_to_rest(scenario)
    scenario.cut([fourth, fifth])
    commits_unheard(scenario, first, by=[one, another], batches=1)
    scenario.kill(first)
    scenario.heal()
    scenario.cut([one, another])
    _hold_records(scenario, scenario.nodes)
    scenario.restart(first)
    scenario.leader([first, fourth, fifth])
    _hold_records(scenario, [fifth])
    end_offset = replicas[first].end_offset
    scenario.until(
        "L-HW",
        lambda: replicas[fourth].end_offset >= end_offset,
        f"{fourth} has two epochs in one answer",
    )
    scenario.kill(first)
    scenario.heal()
    scenario.cut([fifth])
    held = _hold_records(scenario, scenario.nodes)
    scenario.leader([one, another, fourth])
    scenario.until("L-HW", lambda: {one, another} <= _targets(held), "two others follow")
    scenario.kill(fourth)
    scenario.heal()
    scenario.leader([one, another, fifth])
    scenario.finish()


# --- counting -------------------------------------------------------------------------------


@schedule(LOGS, finds=("counts_itself_twice",))
def one_of_two_voters(production: Production) -> None:
    """A leader that is cut off is told to remove a voter, and writes on.

    Of the two voters that are left it is one, so nothing of that is committed. The other two go on
    without it.
    """
    scenario = Scenario(production, voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    scenario.run(100)
    scenario.cut([leader])
    scenario.remove_voter(scenario.key(others(scenario, leader)[0]), to=leader)
    scenario.run(20)
    write_batches(scenario, leader)
    scenario.run(20)
    scenario.leader(others(scenario, leader))
    scenario.commits()
    scenario.finish()


@schedule(
    LOGS,
    finds=(
        "counts_before_own_sync",
        "counts_what_was_written_during_a_sync",
        "waits_for_the_sync_before",
    ),
)
def leader_writes_during_a_sync(production: Production) -> None:
    """A leader with a slow disk is given a second record while the first is being synced.

    One follower gets both, and dies when the first is on the leader's disk. The leader loses power:
    the second is nowhere then, for the third voter was cut off.
    """
    scenario, leader, follower, behind = cut_off_one(production)
    replicas = scenario.quorum.replicas
    held = _hold_next_fetch(scenario, follower)
    scenario.note(f"the disk of {leader} is slow")
    scenario.disk(leader, _SLOW)
    scenario.host(leader).command(lambda _now_ms: None)  # what is due is done: records come next
    write(scenario, leader, 1)
    first_end_offset = replicas[leader].end_offset
    write(scenario, leader, 1)
    let_go(scenario, held[-1:])
    scenario.until(
        "L-HW",
        lambda: replicas[follower].end_offset == replicas[leader].end_offset,
        f"{follower} has both",
    )
    log = scenario.host(leader).disk.log(METADATA_LOG)
    scenario.until(
        "L-HW",
        lambda: log.durable.end_offset >= first_end_offset,
        f"the first is on the disk of {leader}",
    )
    scenario.kill(follower)
    _cycle_power(scenario, leader)
    scenario.leader([leader, behind])
    scenario.finish()


@schedule(LOGS, finds=("acknowledges_before_sync",))
def follower_asks_before_it_syncs(production: Production) -> None:
    """A follower's disk never ends a sync: what it has written since counts for nothing.

    The leader, which alone has that for good, dies. The follower loses power.
    """
    scenario, leader, follower, behind = cut_off_one(production)
    scenario.note(f"the disk of {follower} becomes very slow")
    scenario.disk(follower, _NEVER)
    write(scenario, leader, 3)
    scenario.run(50)
    scenario.kill(leader)
    _cycle_power(scenario, follower)
    scenario.leader([follower, behind])
    scenario.finish()


@schedule(LOGS, finds=("resumes_leadership",))
def leader_comes_back_with_less(production: Production) -> None:
    """The followers have a record that the leader has not synced: it is committed.

    They have not heard so when the leader loses power. It is back at once: if it led on, its first
    record would stand where the other is.
    """
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    scenario.note(f"the disk of {leader} is slow")
    scenario.disk(leader, _SLOW)
    hold(
        scenario,
        lambda sent: sent.source == leader and _is_fetch_answer(sent) and not _has_records(sent),
    )
    write(scenario, leader, 1)
    replica = scenario.quorum.replicas[leader]
    scenario.until("L-HW", lambda: replica.high_watermark == replica.end_offset, "it is committed")
    _cycle_power(scenario, leader)
    scenario.run(300)
    scenario.leader()
    scenario.finish()


# --- steps ----------------------------------------------------------------------------------


def _is_fetch_answer(message: Message) -> bool:
    return isinstance(message.body, FetchResponse)


def _has_records(message: Message) -> bool:
    if not isinstance(message.body, FetchResponse):
        return False
    partition = partition_of(message.body)
    return partition is not None and bool(partition.records)


def _hold_records(scenario: Scenario, nodes: Iterable[int]) -> list[Message]:
    """No records arrive at these nodes from now on; everything else does."""
    targets = set(nodes)
    scenario.note(f"no records arrive at {sorted(targets)}")
    return hold(scenario, lambda message: message.target in targets and _has_records(message))


def _targets(messages: Iterable[Message]) -> set[int]:
    return {message.target for message in messages}


def _hold_next_fetch(scenario: Scenario, follower: int) -> list[Message]:
    """The last of them waits for what is written next, and lets the leader answer at once."""

    def is_fetch(message: Message) -> bool:
        return message.source == follower and isinstance(message.body, FetchRequest)

    scenario.run(60)  # what it had asked for has been answered
    held = hold(scenario, is_fetch)
    scenario.until("L-HW", lambda: bool(held), f"{follower} has asked for more: this is held back")
    return held


def _write_to_one_end(scenario: Scenario, one: int, another: int) -> None:
    """Both lead, and write until their logs have one length."""
    replicas = scenario.quorum.replicas
    for node in (one, another):
        write(scenario, node, 3)
    shorter, longer = sorted((one, another), key=lambda node: replicas[node].end_offset)
    missing = replicas[longer].end_offset - replicas[shorter].end_offset
    if missing:
        write(scenario, shorter, missing)


def _cycle_power(scenario: Scenario, node: int) -> None:
    """It comes back at once, without what it had not synced; and all links are whole again."""
    cut_power(scenario, node)
    scenario.heal()
    scenario.restart(node)
    scenario.quorum.resume_proposing()
