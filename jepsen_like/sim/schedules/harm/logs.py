"""What is written and counted: what clients lose by broken rules of replication and truncation.

Source: Raft thesis 3.5, 3.8 and 10.2.1; KIP-101, KIP-279, KIP-595.
"""

from collections.abc import Callable, Iterable

from jepsen_like.sim.disk import DiskFaults
from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.harm.steps import (
    commits_unheard,
    is_at_work,
    loses_power,
    others,
    write,
)
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from quorum.raft.responses import partition_of
from quorum.storage.contract import METADATA_LOG
from wire.messages.fetch import FetchRequest, FetchResponse

__all__ = ["LOGS"]

LOGS: Schedules = {}

_SLOW = DiskFaults(sync_us_min=300_000)
_NEVER = DiskFaults(sync_us_min=60_000_000)


# --- truncation -----------------------------------------------------------------------------


@schedule(LOGS, finds=("compares_offsets_only",))
def same_length_of_another_epoch(production: Production) -> None:
    """A leader writes a batch that nobody gets. Another is elected, again and again, and writes
    nothing but that, until its log is as long. The first leads again and goes on from there: the
    other, which follows, must not keep its own records below what it gets."""
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    scenario.commits()
    _rest(scenario)
    scenario.cut([first])
    scenario.propose_if_leading(first)
    _withholds_records(scenario, scenario.nodes)
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
    """A follower has what is committed, and has not heard so; it leads for a moment, and writes
    that. It must take back this one record alone: the third voter never had the rest."""
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    scenario.commits()
    second, behind = others(scenario, first)
    _rest(scenario)
    scenario.cut([behind])
    commits_unheard(scenario, first, by=[second])
    scenario.quorum.stop_proposing()
    scenario.kill(first)
    scenario.heal()
    _withholds_records(scenario, scenario.nodes)
    scenario.leader([second, behind])
    scenario.cut([second])
    scenario.restart(first)
    scenario.leader([first, behind])
    scenario.heal()
    wanted = _withholds_records(scenario, scenario.nodes)
    scenario.until("L-HW", lambda: second in wanted, f"{second} has cut back its log")
    scenario.kill(first)
    scenario.leader([second, behind])
    scenario.finish()


@schedule(LOGS, finds=("counts_diverging_fetches",))
def long_log_of_another_epoch(production: Production) -> None:
    """Two leaders, one of them cut off, write alone at the same offsets. The older one is back,
    and asks the other for what comes after its tail: this acknowledges nothing of the other's."""
    scenario = Scenario(production, voters=3, election_timeout_ms=50, fetch_timeout_ms=1_000)
    first = scenario.leader()
    scenario.commits()
    _rest(scenario)
    scenario.cut([first])
    second = scenario.leader(others(scenario, first))
    (third,) = others(scenario, first, second)
    is_at_work(scenario, second)
    scenario.cut([third])
    _write_to_one_end(scenario, first, second)
    scenario.heal()
    scenario.cut([third])
    answered = _withholds(scenario, second, _is_fetched)
    scenario.until("L-HW", lambda: first in answered, f"{first} has asked {second}")
    scenario.kill(second)
    scenario.heal()
    scenario.leader([first, third])
    scenario.finish()


@schedule(LOGS, finds=("learns_one_epoch_a_fetch",))
def two_epochs_at_once(production: Production) -> None:
    """Three of five have what is committed; two have not heard so. A fourth gets it in one answer
    with a record of the next epoch, and leads: what it says of that epoch's beginning makes
    followers cut their logs. It dies, and so does the first; the fifth never had anything."""
    scenario = Scenario(production, voters=5)
    first = scenario.leader()
    scenario.commits()
    one, another, fourth, fifth = others(scenario, first)
    _rest(scenario)
    scenario.cut([fourth, fifth])
    commits_unheard(scenario, first, by=[one, another], batches=1)
    scenario.quorum.stop_proposing()
    scenario.kill(first)
    scenario.heal()
    scenario.cut([one, another])
    _withholds_records(scenario, scenario.nodes)
    scenario.restart(first)
    scenario.leader([first, fourth, fifth])
    _withholds_records(scenario, [fifth])
    end_offset = scenario.quorum.replicas[first].end_offset
    scenario.until(
        "L-HW",
        lambda: scenario.quorum.replicas[fourth].end_offset >= end_offset,
        f"{fourth} has two epochs in one answer",
    )
    scenario.kill(first)
    scenario.heal()
    scenario.cut([fifth])
    wanted = _withholds_records(scenario, scenario.nodes)
    scenario.leader([one, another, fourth])
    scenario.until("L-HW", lambda: {one, another} <= wanted, "two others follow")
    scenario.kill(fourth)
    scenario.heal()
    scenario.leader([one, another, fifth])
    scenario.finish()


# --- counting -------------------------------------------------------------------------------


@schedule(LOGS, finds=("counts_itself_twice",))
def one_of_two_voters(production: Production) -> None:
    """A leader that is cut off is told to remove a voter, and writes on. Of the two voters that
    are left it is one: nothing is committed, and the two that were cut off go on without it."""
    scenario = Scenario(production, voters=3, kraft_version=1)
    leader = scenario.leader()
    scenario.commits()
    scenario.run(100)
    scenario.cut([leader])
    scenario.remove_voter(scenario.key(others(scenario, leader)[0]), to=leader)
    scenario.run(20)
    for _ in range(3):
        scenario.propose_if_leading(leader)
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
    """The leader's disk is slow. It is given a second record while the first is being synced, one
    follower gets both, and the leader loses power when the first is on its disk. Then that
    follower dies, and the second record is nowhere: the third voter was cut off."""
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    follower, behind = others(scenario, leader)
    _rest(scenario)
    scenario.cut([behind])
    scenario.run(60)  # what it had asked for has been answered
    network, held = scenario.quorum.network, list[Message]()
    network.takes = lambda message: _is_fetch_of(follower, message) and _keep(message, held)
    scenario.until("L-HW", lambda: bool(held), f"{follower} has asked for more: this is held back")
    scenario.note(f"the disk of {leader} is slow")
    scenario.disk(leader, _SLOW)
    scenario.host(leader).command(lambda _now_ms: None)  # what is due is done: records come next
    replicas = scenario.quorum.replicas
    write(scenario, leader, 1)
    first_end_offset = replicas[leader].end_offset
    write(scenario, leader, 1)
    network.takes = lambda _message: False
    network.schedule(held[-1], 0)
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
    _comes_back_with_less(scenario, leader)
    scenario.leader([leader, behind])
    scenario.finish()


@schedule(LOGS, finds=("acknowledges_before_sync",))
def follower_asks_before_it_syncs(production: Production) -> None:
    """A follower's disk never ends a sync, and the follower loses power: what it had written
    counted for nothing. The leader, which alone has the rest, dies."""
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    follower, behind = others(scenario, leader)
    _rest(scenario)
    scenario.cut([behind])
    scenario.note(f"the disk of {follower} becomes very slow")
    scenario.disk(follower, _NEVER)
    write(scenario, leader, 3)
    scenario.run(50)
    scenario.kill(leader)
    _comes_back_with_less(scenario, follower)
    scenario.leader([follower, behind])
    scenario.finish()


@schedule(LOGS, finds=("resumes_leadership",))
def leader_comes_back_with_less(production: Production) -> None:
    """The followers have a record that the leader has not synced, so that it is committed, and
    have not heard so. The leader loses power and is back at once: if it led on, its first record
    would stand where the other is."""
    scenario = Scenario(production, voters=3)
    leader = scenario.leader()
    scenario.commits()
    _rest(scenario)
    scenario.note(f"the disk of {leader} is slow")
    scenario.disk(leader, _SLOW)
    _withholds(scenario, leader, lambda sent: _is_fetched(sent) and not _has_records(sent))
    write(scenario, leader, 1)
    replica = scenario.quorum.replicas[leader]
    scenario.until("L-HW", lambda: replica.high_watermark == replica.end_offset, "it is committed")
    _comes_back_with_less(scenario, leader)
    scenario.run(300)
    scenario.leader()
    scenario.finish()


# --- steps ----------------------------------------------------------------------------------


def _rest(scenario: Scenario) -> None:
    """Nothing more is written, and all have heard what is committed."""
    scenario.quorum.stop_proposing()
    scenario.run(100)


def _keep(message: Message, held: list[Message]) -> bool:
    held.append(message)
    return True


def _is_fetch_of(node: int, message: Message) -> bool:
    return message.source == node and isinstance(message.body, FetchRequest)


def _is_fetched(message: Message) -> bool:
    """Is it the answer to a Fetch?"""
    return isinstance(message.body, FetchResponse)


def _has_records(message: Message) -> bool:
    if not isinstance(message.body, FetchResponse):
        return False
    partition = partition_of(message.body)
    return partition is not None and bool(partition.records)


def _withholds_records(scenario: Scenario, nodes: Iterable[int]) -> set[int]:
    """No records arrive at these nodes from now on; everything else does.

    Returns those for whom there were some: it grows.
    """
    targets, wanted = set(nodes), set[int]()
    scenario.note(f"no records arrive at {sorted(targets)}")

    def takes(message: Message) -> bool:
        is_taken = message.target in targets and _has_records(message)
        if is_taken:
            wanted.add(message.target)
        return is_taken

    scenario.quorum.network.takes = takes
    return wanted


def _withholds(scenario: Scenario, source: int, is_such: Callable[[Message], bool]) -> set[int]:
    """None of such messages leaves the source. Returns for whom there were some: it grows."""
    targets = set[int]()

    def takes(message: Message) -> bool:
        is_taken = message.source == source and is_such(message)
        if is_taken:
            targets.add(message.target)
        return is_taken

    scenario.quorum.network.takes = takes
    return targets


def _write_to_one_end(scenario: Scenario, one: int, another: int) -> None:
    """Both lead, and write until their logs have one length."""
    replicas = scenario.quorum.replicas
    for node in (one, another):
        write(scenario, node, 3)
    shorter, longer = sorted((one, another), key=lambda node: replicas[node].end_offset)
    missing = replicas[longer].end_offset - replicas[shorter].end_offset
    if missing:
        write(scenario, shorter, missing)


def _comes_back_with_less(scenario: Scenario, node: int) -> None:
    """Without what it had not synced; and all links are whole again."""
    loses_power(scenario, node)
    scenario.heal()
    scenario.restart(node)
    scenario.quorum.resume_proposing()
