"""Conditions of a quorum. Each names the bound that is exceeded if it does not come to hold."""

from jepsen_like.scenarios.language.forms import Forms
from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.stage import directed_forms
from quorum.core.storage import METADATA_LOG

__all__ = ["CONDITIONS"]

CONDITIONS = Forms(directed_forms.CONDITIONS)
CONDITIONS.add("NODE takes records", DirectedQuorum.takes_records)
CONDITIONS.add("one of NODES leads", DirectedQuorum.is_led_by_one, bound="L-EL")


@CONDITIONS.form("a leader", "somebody leads and takes records, and all that it reaches know it")
def a_leader(quorum: DirectedQuorum) -> bool:
    leader = quorum.newest_leader
    return leader is not None and quorum.takes_records(leader) and quorum.is_followed(leader)


@CONDITIONS.form("no leader", "nobody takes itself for the leader")
def no_leader(quorum: DirectedQuorum) -> bool:
    return quorum.newest_leader is None


@CONDITIONS.form("NODE leads", "this node takes itself for the leader", bound="L-EL")
def leads(quorum: DirectedQuorum, node: int) -> bool:
    return node in quorum.machines.up and quorum.replica(node).leads


@CONDITIONS.form("NODE follows OTHER", "this node takes the other for the leader", bound="L-EL")
def follows(quorum: DirectedQuorum, node: int, other: int) -> bool:
    return node in quorum.machines.up and quorum.leads(node)[0] == other != node


@CONDITIONS.form("NODE is ROLE", "it has this role, as `state` shows it")
def is_a(quorum: DirectedQuorum, node: int, role: str) -> bool:
    return node in quorum.machines.up and quorum.replica(node).role_name == role


@CONDITIONS.form("NODE is in an epoch above EPOCH", "it knows of a later epoch", bound="L-EL")
def is_beyond(quorum: DirectedQuorum, node: int, epoch: int) -> bool:
    return quorum.leads(node)[1] > epoch


@CONDITIONS.form(
    "NODE is neither ROLE nor candidate", "it has another role than these", bound="L-EL"
)
def is_neither(quorum: DirectedQuorum, node: int, role: str) -> bool:
    return quorum.replica(node).role_name not in (role, "candidate")


@CONDITIONS.form("committed", "the leader knows that all of its log is committed")
def committed(quorum: DirectedQuorum) -> bool:
    leader = quorum.newest_leader
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


@CONDITIONS.form("the voters are NODES", "by what is committed", bound="L-MC")
def voters_are(quorum: DirectedQuorum, nodes: list[int]) -> bool:
    return sorted(quorum.voters) == sorted(nodes)


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


@CONDITIONS.form("NODE knows all of its log committed", "its high watermark is its end offset")
def knows_all(quorum: DirectedQuorum, node: int) -> bool:
    return quorum.replica(node).high_watermark == quorum.end_offset(node)


@CONDITIONS.form("NODE has all before OFFSET", "in its log, synced or not")
def has_written(quorum: DirectedQuorum, node: int, offset: int) -> bool:
    return quorum.end_offset(node) >= offset


@CONDITIONS.form("NODE has more than OFFSET", "its log ends behind it")
def has_more(quorum: DirectedQuorum, node: int, offset: int) -> bool:
    return quorum.end_offset(node) > offset


@CONDITIONS.form("NODE has what OTHER has", "their logs end at one offset")
def has_what(quorum: DirectedQuorum, node: int, other: int) -> bool:
    return quorum.end_offset(node) == quorum.end_offset(other)


@CONDITIONS.form("NODE has applied its log", "all of it")
def has_applied(quorum: DirectedQuorum, node: int) -> bool:
    return quorum.replica(node).application.end_offset == quorum.end_offset(node)


@CONDITIONS.form("NODE has applied all that is committed", "to its application")
def has_applied_all(quorum: DirectedQuorum, node: int) -> bool:
    return quorum.replica(node).application.end_offset >= quorum.committed


@CONDITIONS.form("the log of NODE begins after OFFSET", "what lies before has been dropped")
def begins_after(quorum: DirectedQuorum, node: int, offset: int) -> bool:
    return quorum.log_start(node) > offset


@CONDITIONS.form("NODE has a snapshot", "a whole one")
def has_snapshot(quorum: DirectedQuorum, node: int) -> bool:
    return quorum.replica(node).raft.replica.log.latest_snapshot is not None


@CONDITIONS.form("NODE is syncing", "its disk is at work for the metadata log", bound="L-EL")
def is_syncing(quorum: DirectedQuorum, node: int) -> bool:
    return quorum.host(node).disk.log(METADATA_LOG).syncing


@CONDITIONS.form("NODE has saved epoch EPOCH", "on its disk", bound="L-EL")
def has_saved(quorum: DirectedQuorum, node: int, epoch: int) -> bool:
    return quorum.host(node).disk.log(METADATA_LOG).election.epoch == epoch
