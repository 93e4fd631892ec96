"""Commands and conditions of a quorum."""

from jepsen_like.scenarios import quorum_pictures, stage_forms
from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.forms import Forms, Misused

__all__ = ["CONDITIONS", "FORMS"]

FORMS = Forms(stage_forms.FORMS, around=stage_forms.AROUND)
CONDITIONS = Forms(stage_forms.CONDITIONS)


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


# --- leadership and voters ------------------------------------------------------------------


@FORMS.form("resign", "the leader gives up its epoch, and says so")
def resign(quorum: DirectedQuorum) -> None:
    quorum.resign(_leader(quorum))


@FORMS.form("add voter NODE", "ask the leader to let this node vote (KIP-853)")
def add_voter(quorum: DirectedQuorum, node: int) -> None:
    quorum.add_voter(node, _leader(quorum))


@FORMS.form("remove voter NODE", "ask the leader that this node votes no more (KIP-853)")
def remove_voter(quorum: DirectedQuorum, node: int) -> None:
    if node not in quorum.voters:
        raise Misused(f"{node} is no voter: {', '.join(map(str, quorum.voters))}")
    quorum.remove_voter(node, _leader(quorum))


def _leader(quorum: DirectedQuorum) -> int:
    leader = quorum.leader
    if leader is None:
        raise Misused("nobody leads: `deliver until a leader` waits for one")
    return leader


# --- pictures -------------------------------------------------------------------------------


@FORMS.form("state", "what each node is, and knows")
def state(quorum: DirectedQuorum) -> None:
    for line in quorum_pictures.state(quorum):
        quorum.story.tell(line)


@FORMS.form("logs", "the epoch of each record of each log; * if it is not synced yet")
def logs(quorum: DirectedQuorum) -> None:
    for line in quorum_pictures.logs(quorum):
        quorum.story.tell(line)


@FORMS.form("acks", "up to where each voter has acknowledged, as the leader has counted")
def acks(quorum: DirectedQuorum) -> None:
    for line in quorum_pictures.acks(quorum, _leader(quorum)):
        quorum.story.tell(line)


# --- conditions -----------------------------------------------------------------------------


@CONDITIONS.form("a leader", "somebody leads and takes records, and all that it reaches know it")
def a_leader(quorum: DirectedQuorum) -> bool:
    leader = quorum.leader
    return leader is not None and quorum.takes_records(leader) and quorum.is_followed(leader)


@CONDITIONS.form("no leader", "nobody takes itself for the leader")
def no_leader(quorum: DirectedQuorum) -> bool:
    return quorum.leader is None


@CONDITIONS.form("NODE leads", "this node takes itself for the leader")
def leads(quorum: DirectedQuorum, node: int) -> bool:
    return node in quorum.machines.up and quorum.replica(node).leads


@CONDITIONS.form("NODE follows OTHER", "this node takes the other for the leader")
def follows(quorum: DirectedQuorum, node: int, other: int) -> bool:
    return node in quorum.machines.up and quorum.replica(node).leader.leader_id == other != node


@CONDITIONS.form("NODE is ROLE", "as `state` shows it")
def is_a(quorum: DirectedQuorum, node: int, role: str) -> bool:
    return node in quorum.machines.up and quorum.replica(node).role_name == role


@CONDITIONS.form("committed", "the leader knows that all of its log is committed")
def committed(quorum: DirectedQuorum) -> bool:
    leader = quorum.leader
    if leader is None:
        return False
    replica = quorum.replica(leader)
    return replica.high_watermark == replica.end_offset


@CONDITIONS.form("the same everywhere", "all nodes that are up have one log, and know it committed")
def same(quorum: DirectedQuorum) -> bool:
    ends = {
        (quorum.replica(node).high_watermark, quorum.durable(node).last)
        for node in quorum.machines.up
    }
    return len(ends) == 1 and committed(quorum)


@CONDITIONS.form("the voters are NODES", "by what is committed")
def voters_are(quorum: DirectedQuorum, nodes: list[int]) -> bool:
    return quorum.voters == nodes


@CONDITIONS.form("NODE has stored all before OFFSET", "synced to its disk")
def has_stored(quorum: DirectedQuorum, node: int, offset: int) -> bool:
    return quorum.durable(node).end_offset >= offset


@CONDITIONS.form("NODE knows that all before OFFSET is committed", "its high watermark")
def knows_committed(quorum: DirectedQuorum, node: int, offset: int) -> bool:
    high_watermark = quorum.replica(node).high_watermark
    return node in quorum.machines.up and high_watermark is not None and high_watermark >= offset


@CONDITIONS.form("all before OFFSET is committed", "a majority of the voters has it")
def is_committed(quorum: DirectedQuorum, offset: int) -> bool:
    return quorum.committed >= offset
