"""Planted bugs of linearizable reads: a leader that answers without knowing that it leads.

Found at random but seldom: tests/sim/test_reads.py has the schedule.
"""

from jepsen_like.sim.planted.planting import Plants, plant_in
from quorum.core.types import ReplicaKey
from quorum.raft import confirming, leading, serving
from quorum.raft.replica import Replica
from quorum.raft.roles import Leader

__all__ = ["READ_SCHEDULED"]

READ_SCHEDULED: Plants = {}

# What a plant calls of the rule that it replaces.
_track = leading.track


@plant_in(
    READ_SCHEDULED,
    "who reads confirms first that it leads (thesis 6.4)",
    holder=confirming,
    name="is_confirmed",
)
def reads_without_a_round(replica: Replica, role: Leader) -> bool:
    return True


@plant_in(
    READ_SCHEDULED,
    "a fetch says nothing of the time after it left",
    holder=serving,
    name="track",
)
def takes_fetches_for_answers(
    replica: Replica, role: Leader, key: ReplicaKey, fetch_offset: int, now_ms: int
) -> None:
    _track(replica, role, key, fetch_offset, now_ms)
    known = replica.voters.get(key.id)
    if known is not None and known.key.matches(key):
        role.confirming.heard.add(known.key)
        confirming.poll(replica, role, now_ms)


@plant_in(
    READ_SCHEDULED,
    "an answer that came before the question is none",
    holder=confirming,
    name="_begin",
)
def counts_the_answers_of_earlier_rounds(role: Leader) -> None:
    role.confirming.round = role.confirming.asked
