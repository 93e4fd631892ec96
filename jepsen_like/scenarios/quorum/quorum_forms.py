"""Commands of a quorum."""

from collections.abc import Callable

from jepsen_like.scenarios.language.forms import Forms, Misused
from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.stage import directed_forms
from jepsen_like.scenarios.stage.story import logs_table, table
from jepsen_like.sim.world.network import Message
from quorum.raft.responses import only_partition
from quorum.raft.roles import Leader
from wire.messages.fetching import FetchResponse
from wire.messages.quorum_epochs import VoteRequest, VoteResponse

__all__ = ["FORMS"]

FORMS = Forms(directed_forms.FORMS, around=directed_forms.AROUND)
_ELECTION = "all but that election"  # what holds everything else

FORMS.add_name(
    "the leader",
    DirectedQuorum.leader,
    "wait until one node leads, and all that are up know it",
    of_node=True,
)
FORMS.add_name("the leader among NODES", DirectedQuorum.leader, of_node=True)
FORMS.add_name("the first leader among NODES", DirectedQuorum.first_leader, of_node=True)
FORMS.add_name("the end of NODE", DirectedQuorum.end_offset)
FORMS.add_name("the epoch of NODE", DirectedQuorum.epoch)
FORMS.add_name("the committed offset", DirectedQuorum.committed_offset)
FORMS.add("wake NODE", DirectedQuorum.wake)
FORMS.add("stop proposing", DirectedQuorum.stop_proposing)
FORMS.add("resume proposing", DirectedQuorum.resume_proposing)
FORMS.add("rest", DirectedQuorum.rest)
FORMS.add("commit COUNT", DirectedQuorum.commits)
FORMS.add("commit COUNT batches of NODE on NODES unheard", DirectedQuorum.commit_unheard)
FORMS.add("converge", DirectedQuorum.converges)
FORMS.add("add voter NODE at OTHER", DirectedQuorum.add_voter)
FORMS.add("NODE must lead on in epoch EPOCH", DirectedQuorum.must_lead_on)
FORMS.add("restart NODE until its log is as long as that of OTHER", DirectedQuorum.restart_until)
FORMS.add("write COUNT at NODE and OTHER, or more", DirectedQuorum.write_to_one_end)


# --- records --------------------------------------------------------------------------------


@FORMS.form("propose", "the leader is given a record")
def propose(quorum: DirectedQuorum) -> None:
    propose_at(quorum, _leader(quorum))


@FORMS.form("propose COUNT", "the leader is given so many records, one after the other")
def propose_several(quorum: DirectedQuorum, count: int) -> None:
    for _ in range(count):
        propose(quorum)


@FORMS.form("propose at NODE", "this node is given a record, if it takes itself for the leader")
def propose_at(quorum: DirectedQuorum, node: int) -> None:
    if not quorum.takes_records(node):
        raise Misused(f"{node} does not take records: it does not lead, or not yet for sure")
    quorum.propose(node)


@FORMS.form("propose COUNT at NODES if they lead", "to each that takes itself for the leader")
def propose_if_leading(quorum: DirectedQuorum, count: int, nodes: list[int]) -> None:
    for node in nodes:
        if node in quorum.machines.up:
            for _ in range(count):
                quorum.propose(node)


@FORMS.form("write COUNT at NODE", "this leader is given so many records at once, a batch each")
def write(quorum: DirectedQuorum, count: int, node: int) -> None:
    quorum.write(node, count)


# --- messages that only a quorum has --------------------------------------------------------


@FORMS.form("hold records to NODES", "answers to fetches that have records; no others")
@FORMS.form("hold records to NODES as NAME", "under a name")
def hold_records(quorum: DirectedQuorum, nodes: list[int], name: str = "") -> None:
    quorum.note(f"no records arrive at {quorum.names.listed(nodes)}")
    quorum.machines.hold(lambda message: message.target in nodes and _has_records(message), name)


@FORMS.form("hold answers without records from NODE", "answers to fetches that have none")
def hold_empty_answers(quorum: DirectedQuorum, node: int) -> None:
    def is_empty(message: Message) -> bool:
        is_answer = isinstance(message.body, FetchResponse)
        return is_answer and message.source == node and not _has_records(message)

    quorum.machines.hold(is_empty)


@FORMS.form("hold what NODE sends to OTHER as NAME", "requests and answers")
def hold_what(quorum: DirectedQuorum, node: int, other: int, name: str) -> None:
    quorum.note(f"nothing of {quorum.names.of(node)} arrives at {quorum.names.of(other)}")
    quorum.machines.hold(lambda message: (message.source, message.target) == (node, other), name)


@FORMS.form("hold votes of NODE for OTHER as NAME", "requests of OTHER for the vote, no pre-votes")
def hold_votes(quorum: DirectedQuorum, node: int, other: int, name: str) -> None:
    def is_it(message: Message) -> bool:
        is_between = (message.source, message.target) == (other, node)
        return is_between and _asks_for_vote(message)

    quorum.machines.hold(is_it, name)


@FORMS.form("let only NODE be elected, by OTHER", "beside pre-votes, nothing else arrives")
def let_only(quorum: DirectedQuorum, node: int, other: int) -> None:
    quorum.note(f"only {quorum.names.of(node)} can be elected, by {quorum.names.of(other)}")
    quorum.machines.hold(_all_but_votes_for(node, by=other), _ELECTION)


@FORMS.form("let everybody be elected", "what `let only` holds is lost")
def let_everybody(quorum: DirectedQuorum) -> None:
    quorum.machines.messages.lose(_ELECTION)


@FORMS.form("let NODE fetch up to OFFSET", "it gets nothing behind it, and asks for no votes")
def let_fetch_up_to(quorum: DirectedQuorum, node: int, offset: int) -> None:
    replica = quorum.replica(node)

    def is_taken(message: Message) -> bool:
        is_answer = message.target == node and isinstance(message.body, FetchResponse)
        stands = message.source == node and isinstance(message.body, VoteRequest)
        return stands or (is_answer and replica.end_offset >= offset)

    quorum.note(f"{quorum.names.of(node)} gets nothing behind offset {offset}, and does not stand")
    quorum.machines.hold(is_taken)


def _has_records(message: Message) -> bool:
    if not isinstance(message.body, FetchResponse):
        return False
    partition = only_partition(message.body.responses)
    return partition is not None and bool(partition.records)


def _asks_for_vote(message: Message) -> bool:
    """A request for a vote, and not for a pre-vote."""
    body = message.body
    return isinstance(body, VoteRequest) and not body.topics[0].partitions[0].pre_vote


def _all_but_votes_for(candidate: int, *, by: int) -> Callable[[Message], bool]:
    """Takes all other messages: the candidate may ask everybody first, but only `by` to vote."""

    def takes(message: Message) -> bool:
        if isinstance(message.body, VoteResponse):
            return message.target != candidate
        is_its_request = isinstance(message.body, VoteRequest) and message.source == candidate
        return not is_its_request or (_asks_for_vote(message) and message.target != by)

    return takes


# --- processes and disks of a quorum --------------------------------------------------------


@FORMS.form("read NODE in MS ms", "how long each read of the node's disk takes from now on")
def read_in(quorum: DirectedQuorum, node: int, ms: int) -> None:
    quorum.machines.change_disk(node, read_us=ms * 1000)


@FORMS.form("heal the disk of NODE", "it is as fast as the others again")
def heal_disk(quorum: DirectedQuorum, node: int) -> None:
    quorum.host(node).disk.faults = quorum.quorum.options.disks


@FORMS.form("fail the disk of NODE", "no sync ends well any more")
def fail_disk(quorum: DirectedQuorum, node: int) -> None:
    quorum.note(f"the disk of {quorum.names.of(node)} fails")
    quorum.machines.change_disk(node, fsync_failure=1.0)


@FORMS.form("run until MS ms", "of virtual time since the beginning")
def run_until(quorum: DirectedQuorum, ms: int) -> None:
    quorum.run(max(0, ms - quorum.quorum.world.now_us // 1000))


# --- leadership and voters ------------------------------------------------------------------


@FORMS.form("resign", "the leader gives up its epoch, and says so")
def resign(quorum: DirectedQuorum) -> None:
    quorum.resign(_leader(quorum))


@FORMS.form("add voter NODE", "ask the leader to let this node vote (KIP-853)")
def add_voter(quorum: DirectedQuorum, node: int) -> None:
    quorum.add_voter(node, _leader(quorum))


@FORMS.form("remove voter NODE", "ask the leader that this node votes no more (KIP-853)")
def remove_voter(quorum: DirectedQuorum, node: int) -> None:
    remove_voter_at(quorum, node, _leader(quorum))


@FORMS.form("remove voter NODE at OTHER", "ask this node, which takes itself for the leader")
def remove_voter_at(quorum: DirectedQuorum, node: int, other: int) -> None:
    if node not in quorum.voters:
        raise Misused(f"{node} is no voter: {', '.join(map(str, quorum.voters))}")
    voters = quorum.quorum.invariants.view.committed_voters
    quorum.remove_voter(next(voter for voter in voters if voter.id == node), other)


def _leader(quorum: DirectedQuorum) -> int:
    leader = quorum.newest_leader
    if leader is None:
        raise Misused("nobody leads: `deliver until a leader` waits for one")
    return leader


# --- pictures -------------------------------------------------------------------------------


@FORMS.form("state", "what each node is, and knows")
def state(quorum: DirectedQuorum) -> None:
    heading = ("node", "role", "epoch", "leader", "voted for", "high watermark", "log")
    quorum.story.tell(*table(heading, [_state_of(quorum, node) for node in quorum.machines.nodes]))


def _state_of(quorum: DirectedQuorum, node: int) -> tuple[object, ...]:
    written = quorum.written(node)
    span = f"{written.start_offset} to {written.end_offset}"
    if node not in quorum.machines.up:
        return (node, "down", None, None, None, None, span)
    replica = quorum.replica(node)
    voted = replica.raft.role.voted
    return (
        node,
        replica.role_name,
        replica.leader.epoch,
        replica.leader.leader_id,
        None if voted is None else voted.id,
        replica.high_watermark,
        span,
    )


@FORMS.form("logs", "the epoch of each record of each log; * if it is not synced yet")
def logs(quorum: DirectedQuorum) -> None:
    cells = {node: _epochs(quorum, node) for node in quorum.machines.nodes}
    quorum.story.tell(*logs_table(cells))


def _epochs(quorum: DirectedQuorum, node: int) -> dict[int, str]:
    durable = quorum.durable(node)
    return {
        offset: f"{entry.epoch}{'' if durable.holds(entry) else '*'}"
        for entry in quorum.written(node).entries
        for offset in range(entry.base_offset, entry.next_offset)
    }


@FORMS.form("acks", "up to where each voter has acknowledged, as the leader has counted")
def acks(quorum: DirectedQuorum) -> None:
    leader = _leader(quorum)
    role = quorum.replica(leader).raft.role
    assert isinstance(role, Leader), role
    ends: dict[int, int | None] = {leader: quorum.durable(leader).end_offset}
    for node, progress in role.progress.items():
        ends[node] = progress.log_end_offset if progress.last_fetch_ms >= 0 else None
    rows = [(node, _all_before(end), "=" * (end or 0)) for node, end in sorted(ends.items())]
    quorum.story.tell(*table(("voter", "has stored", ""), rows))
    quorum.story.tell(f"committed: {_all_before(role.high_watermark)}")


def _all_before(offset: int | None) -> str:
    return "not known yet" if offset is None else f"all before {offset}"
