"""Two leaders, or one that should not be: what clients lose by broken rules of elections.

Source: Raft thesis 3.4 and 3.6; KIP-595.
"""

from collections.abc import Callable

from jepsen_like.sim.network import Message
from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.schedules.harm.harm_steps import (
    comes_to_rest,
    commits_unheard,
    cut_power,
    gets_to_work,
    hold,
    others,
    write,
    write_batches,
)
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from quorum.core.storage import METADATA_LOG
from wire.messages.fetching import FetchResponse
from wire.messages.quorum_epochs import VoteRequest, VoteResponse

__all__ = ["VOTES"]

VOTES: Schedules = {}

_SLOW = DiskFaults(sync_us_min=50_000)
_NEVER = DiskFaults(sync_us_min=60_000_000)
_RECORDS = 5  # that one writes alone; the other commits one less, beside that it leads


# --- whose log is newer -----------------------------------------------------------------------


@schedule(VOTES, finds=("compares_offsets_first",))
def longer_log_of_an_earlier_epoch(production: Production) -> None:
    """A leader is cut off and writes on. Another is elected, commits a little, and dies.

    The first one's log is the longest, and must not win.
    """
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    scenario.commits()
    scenario.cut([first])
    write_batches(scenario, first, 50)
    second = scenario.leader(others(scenario, first))
    (third,) = others(scenario, first, second)
    commits_unheard(scenario, second, by=[third])
    scenario.quorum.resume_proposing()
    scenario.kill(second)
    scenario.heal()
    scenario.leader([first, third])
    scenario.finish()


# --- two leaders of one epoch -----------------------------------------------------------------

# One has a long log that nobody else holds, and adds no more to it than that it leads. The other
# commits a little. By epoch and offset the long log seems to hold that, and it does not.


@schedule(VOTES, finds=("forgets_its_vote", "votes_twice"))
def second_vote_in_an_epoch(production: Production) -> None:
    """Two stand in one epoch. The third votes for one, is started anew, and asked by the other.

    That one's log is long: with a second vote it would lead for a moment, and what the first one
    commits then would be lost.
    """
    scenario = Scenario(production, voters=3, request_timeout_ms=3_000)
    network, replicas = scenario.quorum.network, scenario.quorum.replicas
    writer, other, voter = _writes_alone(scenario)
    takes_others = _all_but_votes_for(writer, by=voter)

    def asks(message: Message) -> bool:
        return _is_vote(message) and not takes_others(message)

    held = hold(scenario, lambda message: asks(message) or takes_others(message))
    what = f"{writer} asks for a vote, and gets no answer yet"
    scenario.until("L-EL", lambda: any(map(asks, held)), what)
    scenario.note(f"{writer} pauses")
    scenario.host(writer).pause()
    scenario.cut([writer])
    network.takes = _all_but_votes_for(other, by=voter)
    scenario.until("L-EL", lambda: replicas[other].leads, f"{voter} has voted for {other}")
    scenario.run(10)
    scenario.kill(voter)
    scenario.restart(voter)
    scenario.heal()
    scenario.note(f"{voter} is asked by {writer}, which goes on")
    network.takes = takes_others
    network.schedule(next(filter(asks, held)), 0)
    scenario.run(10)
    scenario.host(writer).resume()
    scenario.run(20)
    scenario.kill(writer)
    _commits_before_they_meet(scenario, writer, other, voter)
    scenario.finish()


@schedule(
    VOTES,
    finds=("answers_before_saving", "releases_all_that_is_held", "waits_for_the_first_under_way"),
)
def vote_is_not_on_the_disk(production: Production) -> None:
    """One with a long log stands while a voter with a slow disk saves the epoch before.

    That is saved, the vote is not, and the voter loses power. It votes again, for one who commits.
    """
    scenario = Scenario(production, voters=3)
    network, replicas = scenario.quorum.network, scenario.quorum.replicas
    writer, other, voter = _writes_alone(scenario)
    log = scenario.host(voter).disk.log(METADATA_LOG)
    epoch = replicas[writer].leader.epoch
    network.takes = _all_but_votes_for(writer, by=voter)
    scenario.note(f"the disk of {voter} is slow, and then stands still")
    scenario.disk(voter, _SLOW)
    scenario.until("L-EL", lambda: log.syncing, f"{voter} saves what it has heard of")
    scenario.disk(voter, _NEVER)
    scenario.until("L-EL", lambda: log.election.epoch == epoch, f"{voter} has saved epoch {epoch}")
    scenario.run(20)
    scenario.kill(writer)
    cut_power(scenario, voter)
    scenario.restart(voter)
    network.takes = _all_but_votes_for(other, by=voter)
    scenario.until("L-EL", lambda: replicas[other].leads, f"{voter} has voted for {other}")
    _commits_before_they_meet(scenario, writer, other, voter)
    scenario.finish()


# --- figure 8 ---------------------------------------------------------------------------------


@schedule(VOTES, finds=("commits_earlier_epochs",))
def record_of_an_earlier_epoch_on_a_majority(production: Production) -> None:
    """A leader writes a batch that nobody else gets, and another leads in vain.

    The first leads again, and the third gets that batch: this does not commit it, for the other may
    still win.
    """
    scenario = Scenario(production, voters=3, bytes_max=1, propose_interval_ms=0)
    first = scenario.leader()
    gets_to_work(scenario, first)
    scenario.converges()
    scenario.cut([first])
    scenario.propose_if_leading(first)
    end_offset = scenario.quorum.replicas[first].end_offset
    scenario.quorum.network.takes = lambda message: isinstance(message.body, FetchResponse)
    second = scenario.first_leader(others(scenario, first))
    (third,) = others(scenario, first, second)
    scenario.run(20)
    scenario.kill(second)
    scenario.heal()
    _gets_no_more_than(scenario, third, end_offset)
    scenario.kill(first)
    scenario.heal()
    scenario.restart(second)
    scenario.leader([second, third])
    gets_to_work(scenario, second)
    scenario.propose_if_leading(second)
    scenario.finish()


# --- steps ------------------------------------------------------------------------------------


def _writes_alone(scenario: Scenario) -> tuple[int, int, int]:
    """The leader is cut off and goes on writing until it resigns; meanwhile nobody else stands.

    Returns that one, and the others. No link is cut any more.
    """
    network, replicas = scenario.quorum.network, scenario.quorum.replicas
    writer = scenario.leader()
    scenario.commits()
    comes_to_rest(scenario)
    scenario.cut([writer])
    network.takes = lambda message: isinstance(message.body, VoteRequest)
    write(scenario, writer, _RECORDS)
    _, led = scenario.leads(writer)
    what = f"{writer} has given up epoch {led}"
    scenario.until("L-EL", lambda: replicas[writer].leader.epoch > led, what)
    scenario.heal()
    other, voter = others(scenario, writer)
    return writer, other, voter


def _all_but_votes_for(candidate: int, *, by: int) -> Callable[[Message], bool]:
    """Takes all other messages: the candidate may ask everybody first, but only `by` to vote."""

    def takes(message: Message) -> bool:
        if isinstance(message.body, VoteResponse):
            return message.target != candidate
        is_its_request = isinstance(message.body, VoteRequest) and message.source == candidate
        return not is_its_request or (_is_vote(message) and message.target != by)

    return takes


def _is_vote(message: Message) -> bool:
    """Is this a request for a vote, and not for a pre-vote?"""
    body = message.body
    return isinstance(body, VoteRequest) and not body.topics[0].partitions[0].pre_vote


def _commits_before_they_meet(scenario: Scenario, writer: int, leader: int, voter: int) -> None:
    """While the writer is down. Then the leader dies, and the writer is started, and leads.

    The writer's log is one longer then: it ends with a record of that epoch, too. Who hears of two
    leaders of one epoch stops, so the writer is heard only once it is in a later one.
    """
    replicas = scenario.quorum.replicas
    scenario.heal()
    gets_to_work(scenario, leader)
    write(scenario, leader, _RECORDS - 1)
    end_offset = replicas[leader].end_offset
    scenario.until(
        "L-HW", lambda: replicas[leader].application.end_offset == end_offset, "it is committed"
    )
    scenario.kill(leader)
    scenario.cut([writer])
    scenario.restart(writer)
    scenario.until(
        "L-EL",
        lambda: replicas[writer].role_name not in ("resigned", "candidate"),
        f"{writer} has left its epoch",
    )
    scenario.heal()
    scenario.leader([writer, voter])


def _gets_no_more_than(scenario: Scenario, node: int, end_offset: int) -> None:
    """It fetches up to there from whoever leads, and does not stand itself."""
    replica = scenario.quorum.replicas[node]

    def is_taken(message: Message) -> bool:
        has_it = replica.end_offset == end_offset
        is_answer = message.target == node and isinstance(message.body, FetchResponse)
        stands = message.source == node and isinstance(message.body, VoteRequest)
        return stands or (has_it and is_answer)

    scenario.note(f"{node} does not stand, and gets no more than that batch")
    scenario.quorum.network.takes = is_taken
    what = f"{node} has the batch, too"
    scenario.until("L-EL", lambda: replica.end_offset == end_offset, what)
    scenario.run(20)
