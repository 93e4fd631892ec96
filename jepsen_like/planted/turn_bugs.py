"""Planted bugs of the turn: what is in one, and for whom, when several events came in together."""

from jepsen_like.planted.planting import Plants, plant_in
from quorum.core import parking
from quorum.core.effects import Event
from quorum.node.member import Member
from quorum.raft.raft_node import RaftNode

__all__ = ["TURN_SURVIVORS"]

TURN_SURVIVORS: Plants = {}


@plant_in(
    TURN_SURVIVORS,
    "who waits in an epoch that is over is refused, whatever the offsets say",
    holder=parking,
    name="has_ended",
)
def forgets_the_epoch_of_who_waits(accepted: int, led: int | None) -> bool:
    return False


@plant_in(
    TURN_SURVIVORS,
    "what came in before a change of role is settled before it",
    holder=Member,
    name="ends_batch",
)
def settles_after_a_change_of_role(self: Member, event: Event) -> bool:
    return False


@plant_in(
    TURN_SURVIVORS,
    "what came in before a change of the voters is counted with those of before",
    holder=RaftNode,
    name="ends_batch",
)
def counts_with_the_voters_of_the_end(self: RaftNode, event: Event) -> bool:
    return False
