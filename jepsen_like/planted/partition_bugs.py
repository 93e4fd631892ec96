"""Planted bugs of brokers: what leaders count on, what followers cut back and append.

The names in brackets are those of the museum: Apache Kafka had each of these bugs.
"""

from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.groups import loading
from broker.membership import alterations
from broker.membership.alterations import Alterations, Verdict
from broker.partition import isr, isr_rules, partition, reads
from broker.partition.idempotence import InSequence, ProducerStates, SequenceVerdict
from broker.partition.isr import Committed, IsrState, PendingShrink
from broker.partition.isr_rules import EligibleReplicas, Peers
from broker.partition.lag_watch import LagWatch
from broker.partition.local_log import LocalLog
from broker.partition.partition import (
    NOTHING,
    Change,
    FollowerOf,
    IsrChange,
    LeaderOf,
    Partition,
    Progress,
)
from broker.replicas import Replicas
from broker.replication import following
from broker.replication.following import last_fetched_epoch
from broker.replication.replication import Replication
from broker.requests import producing
from broker.requests.sessions import FetchSessions, SessionPartition
from controller.metadata.partitions import PartitionState
from jepsen_like.planted.planting import Plants, plant_in
from quorum.core.types import NO_EPOCH
from quorum.log.epochs import EpochCache
from quorum.log.fetch import Diverging, FetchPosition, UnknownEpoch, Valid
from quorum.log.files import checkpoints
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, ReplicaState
from wire.primitives import ZERO_UUID

__all__ = ["PARTITION_PLANTS", "PARTITION_SURVIVORS"]

PARTITION_PLANTS: Plants = {}
PARTITION_SURVIVORS: Plants = {}

# What a plant calls of the rule that it replaces.
_maximal_isr = isr.maximal_isr
_high_watermark = EligibleReplicas.high_watermark
_append = Partition.append
_follow = Replication.follow
_judge = alterations.judge
_conclude = Alterations.conclude
_is_outdated = partition.is_outdated
_may_expand = isr.may_expand
_start_epoch = isr.start_epoch
_find = Replicas.find
_became = Partition.became
_holders = FetchSessions.holders


# --- what a leader counts on ----------------------------------------------------------------


@plant_in(
    PARTITION_PLANTS,
    "whoever is asked to leave the ISR counts until it has left (D1)",
    holder=isr,
    name="maximal_isr",
    seeds_max=15,
)
def counts_on_the_shrunk_isr(state: IsrState) -> tuple[int, ...]:
    if isinstance(state, PendingShrink):
        return tuple(replica for replica in state.members if replica not in state.leaving)
    return _maximal_isr(state)


@plant_in(
    PARTITION_PLANTS,
    "whoever may have joined the ISR counts (D1)",
    holder=isr,
    name="maximal_isr",
)
def counts_on_the_committed_isr(state: IsrState) -> tuple[int, ...]:
    return state.members


@plant_in(
    PARTITION_PLANTS,
    "a smaller ISR may commit more: look at once (D2, KAFKA-13091)",
    holder=Partition,
    name="became",
)
def does_not_look_after_an_answer(self: Partition, change: Change, now_ms: int) -> Progress:
    """The answer that counts is the one in the metadata log."""
    if change is Change.UPDATED and isinstance(self.role, LeaderOf):
        return NOTHING
    return _became(self, change, now_ms)


@plant_in(
    PARTITION_PLANTS,
    "what got no answer is asked again (D3)",
    holder=alterations,
    name="judge",
)
def asks_once(error: ErrorCode | None) -> Verdict:
    return Verdict.WAIT if error is None else _judge(error)


@plant_in(
    PARTITION_PLANTS,
    "the metadata log ends what an answer was waited for (D4, KAFKA-14144)",
    holder=partition,
    name="is_outdated",
)
def believes_only_answers(state: PartitionState, role: LeaderOf | FollowerOf) -> bool:
    is_waiting = isinstance(role, LeaderOf) and not isinstance(role.isr, Committed)
    return (is_waiting and state.leader_epoch == role.leader_epoch) or _is_outdated(state, role)


@plant_in(
    PARTITION_PLANTS,
    "nobody waits for a replica that may not join (D8, KAFKA-15021)",
    holder=isr_rules,
    name="is_joinable",
)
def waits_for_whoever_fetches(follower: isr.FollowerProgress, peers: Peers) -> bool:
    return True


@plant_in(
    PARTITION_PLANTS,
    "nothing is exposed while too few are in sync (KAFKA-15583)",
    holder=isr,
    name="has_enough_replicas",
    seeds_max=15,
)
def is_content_with_any_isr(isr_size: int, min_isr: int) -> bool:
    return True


@plant_in(
    PARTITION_PLANTS,
    "who may be about to join does not count for min.insync.replicas",
    holder=EligibleReplicas,
    name="high_watermark",
    seeds_max=20,
)
def counts_the_joining_as_in_sync(
    self: EligibleReplicas, partition: Partition, role: LeaderOf, now_ms: int
) -> int:
    counted = replace(role, isr=Committed(members=_maximal_isr(role.isr)))
    return _high_watermark(self, partition, counted, now_ms)


@plant_in(
    PARTITION_PLANTS,
    "who joins has reached where the leader's epoch began (C3, KAFKA-7128)",
    holder=isr,
    name="may_expand",
)
def joins_at_the_high_watermark(
    state: IsrState, follower: isr.FollowerProgress, **known: Any
) -> bool:
    return _may_expand(state, follower, **{**known, "epoch_start_offset": 0})


@plant_in(
    PARTITION_PLANTS,
    "who gets no answer does not know that nothing was done (KIP-497)",
    holder=Alterations,
    name="conclude",
)
def takes_silence_for_a_refusal(
    self: Alterations, change: IsrChange, result: Any, now_ms: int
) -> None:
    if result is None and change.role.isr is change.asked:
        change.role.isr = Committed(members=change.asked.members)
    _conclude(self, change, result, now_ms)


@plant_in(
    PARTITION_PLANTS,
    "a high watermark does not fall in a leader epoch",
    holder=EligibleReplicas,
    name="high_watermark",
    seeds_max=20,
)
def follows_the_slowest(
    self: EligibleReplicas, partition: Partition, role: LeaderOf, now_ms: int
) -> int:
    ends = [follower.log_end_offset for follower in role.followers.values()]
    return max(0, min([partition.open_log.end_offset, *ends]))


# --- what clients are told ------------------------------------------------------------------


@plant_in(
    PARTITION_PLANTS,
    "acks=all waits for all that are in sync",
    holder=producing,
    name="waits_for_isr",
    seeds_max=40,
)
def acknowledges_at_once(acks: int) -> bool:
    return False


@plant_in(
    PARTITION_PLANTS,
    "consumers see nothing that a change of leader could take back",
    holder=reads,
    name="readable_end",
    seeds_max=40,
)
def shows_consumers_the_end(partition: Partition, *, is_follower: bool) -> int:
    return partition.open_log.end_offset


@plant_in(
    PARTITION_PLANTS,
    "what an idempotent producer repeats is in the log once (KIP-98)",
    holder=ProducerStates,
    name="check",
    seeds_max=20,
)
def takes_repetitions(self: ProducerStates, header: BatchHeader) -> SequenceVerdict:
    return InSequence()


@plant_in(
    PARTITION_PLANTS,
    "what was read is not told once another leads",
    holder=reads,
    name="is_still_led",
)
def answers_whatever_was_read(partition: Partition, leader_epoch: int) -> bool:
    return partition.log is not None


@plant_in(
    PARTITION_PLANTS,
    "the id of a deleted topic is not that of the topic that has its name now (KIP-516)",
    holder=Replicas,
    name="find",
)
def finds_whatever_has_the_name(
    self: Replicas, topic: str, topic_id: UUID, index: int
) -> Partition | ErrorCode:
    names: dict[UUID, str] = self.__dict__.setdefault("names_of_old", {})
    names.update((partition.topic_id, partition.topic) for partition in self)
    if topic_id in names:
        return _find(self, names[topic_id], ZERO_UUID, index)
    return _find(self, topic, topic_id, index)


@plant_in(
    PARTITION_PLANTS,
    "a coordinator knows all that was acknowledged before its election",
    holder=loading,
    name="load_end",
    seeds_max=150,
)
def loads_what_it_knows_to_be_committed(log: LocalLog) -> int:
    return log.high_watermark


# --- what an incremental fetch looks at -----------------------------------------------------


@plant_in(
    PARTITION_PLANTS,
    "every session that holds a partition is told that it has moved (KIP-227)",
    holder=FetchSessions,
    name="holders",
    seeds_max=20,
)
def tells_one_session(self: FetchSessions, name: str) -> tuple[SessionPartition, ...]:
    return _holders(self, name)[:1]


@plant_in(
    PARTITION_PLANTS,
    "a follower that rests no more is judged by its own clock",
    holder=LagWatch,
    name="add",
)
def forgets_who_stops_resting(self: LagWatch, partition: Partition) -> None:
    return


@plant_in(
    PARTITION_PLANTS,
    "a follower that rested was caught up at the last fetch of its session",
    holder=isr,
    name="leave_session",
)
def judges_by_an_earlier_session(follower: isr.FollowerProgress) -> None:
    follower.clock = None


# --- epochs of records ------------------------------------------------------------------------


@plant_in(
    PARTITION_PLANTS,
    "a leader writes in its own leader epoch (KIP-101)",
    holder=Partition,
    name="append",
    seeds_max=40,
)
def writes_in_the_epoch_before(self: Partition, batch: bytes, header: BatchHeader) -> int:
    role, before = self.led, last_fetched_epoch(self.open_log)
    epoch = role.leader_epoch if before == NO_EPOCH else before
    self.role = replace(role, leader_epoch=epoch)
    try:
        return _append(self, batch, header)
    finally:
        self.role = role


# --- truncation and fencing -----------------------------------------------------------------


@plant_in(
    PARTITION_PLANTS,
    "a follower cuts back by epoch, not to its high watermark (B5, KIP-101)",
    holder=Replication,
    name="follow",
    seeds_max=25,
)
def truncates_to_the_high_watermark(self: Replication, partition: Partition, now_ms: int) -> None:
    partition.open_log.truncate(partition.open_log.high_watermark)
    _follow(self, partition, now_ms)


@plant_in(
    PARTITION_PLANTS,
    "a follower says the epoch of its last record (B6, KIP-101)",
    holder=following,
    name="last_fetched_epoch",
    seeds_max=40,
)
def tells_no_epoch(log: LocalLog) -> int:
    return NO_EPOCH


@plant_in(
    PARTITION_PLANTS,
    "an epoch that never wrote here is told apart (C1, KIP-279)",
    holder=reads,
    name="check_fetch_position",
)
def answers_for_any_epoch(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, last_fetched_epoch: int
) -> FetchPosition:
    end = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if end is None:
        return UnknownEpoch()
    if end.offset < fetch_offset:
        return Diverging(epoch=last_fetched_epoch, end_offset=end.offset)
    return Valid()


@plant_in(
    PARTITION_PLANTS,
    "where an unknown epoch ended there says nothing of the log here (C1, KIP-279)",
    holder=following,
    name="truncation_point",
)
def truncates_where_the_leader_says(
    epochs: EpochCache, *, end_offset: int, diverging: Diverging
) -> int:
    return min(diverging.end_offset, end_offset)


@plant_in(
    PARTITION_PLANTS,
    "a fetch of another leader epoch is fenced (C2, KIP-320)",
    holder=partition,
    name="check_leader_epoch",
)
def serves_any_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


@plant_in(
    PARTITION_PLANTS,
    "an answer that a change of leader has overtaken is dropped (C4)",
    holder=following,
    name="is_stale",
    seeds_max=60,
)
def obeys_late_answers(partition: Partition, asked: FetchPartition) -> bool:
    return not isinstance(partition.role, FollowerOf)


@plant_in(
    PARTITION_PLANTS,
    "what a follower had in an earlier leader epoch, it need not have any more",
    holder=isr,
    name="start_epoch",
)
def counts_on_earlier_epochs(follower: isr.FollowerProgress, **known: Any) -> None:
    if follower.log_end_offset == isr.UNKNOWN_OFFSET:
        _start_epoch(follower, **known)


# --- orderly stops --------------------------------------------------------------------------


@plant_in(
    PARTITION_PLANTS,
    "a process that never registered leaves the mark of an orderly stop as it was (KIP-966)",
    holder=checkpoints,
    name="clean_shutdown_epoch",
    seeds_max=30,
)
def stops_without_an_epoch(before: int | None, broker_epoch: int) -> int:
    return broker_epoch


# --- changes that break nothing by themselves -----------------------------------------------

# One request is in flight, and an answer that comes after its time is nobody's: there is no other
# that it could be taken for.


@plant_in(
    PARTITION_SURVIVORS,
    "an answer ends only what it answers (D3, KAFKA-12686)",
    holder=Alterations,
    name="conclude",
)
def takes_any_answer_for_its_own(
    self: Alterations, change: IsrChange, result: Any, now_ms: int
) -> None:
    role = change.partition.role
    if result is not None and result.error_code is ErrorCode.NONE and isinstance(role, LeaderOf):
        role.isr = Committed(members=result.isr)
        role.partition_epoch = max(role.partition_epoch, result.partition_epoch)
    else:
        _conclude(self, change, result, now_ms)


# The controller refuses to take such a replica into an ISR, by its broker epoch.


@plant_in(
    PARTITION_SURVIVORS,
    "a fetch of an earlier life of a broker does not count (KIP-903)",
    holder=isr_rules,
    name="is_current",
)
def counts_earlier_lives(replica: ReplicaState, peers: Peers) -> bool:
    return True
