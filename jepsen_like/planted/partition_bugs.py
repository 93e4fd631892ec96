"""Planted bugs of brokers: what leaders count on, what clients are told, what logs keep or cut.

The names in brackets are those of the museum: Apache Kafka had each of these bugs.
"""

from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.coordination import loading
from broker.groups import offsets
from broker.membership import alterations
from broker.membership.alterations import Alterations, Verdict
from broker.partition import appends, isr, partition, reads
from broker.partition.idempotence import InSequence, SequenceVerdict
from broker.partition.isr import Committed, IsrState, PendingShrink
from broker.partition.isr_rules import EligibleReplicas
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
from broker.requests.sessions import FetchSessions, SessionPartition
from broker.requests.views import Views
from controller.metadata import alter_partition
from controller.metadata.delta import MetadataDelta
from controller.metadata.partitions import NO_ROWS, RECOVERED, RECOVERING, PartitionState
from jepsen_like.planted.planting import plant_in
from quorum.core.producers import ProducerEntry
from quorum.core.types import NO_EPOCH
from quorum.log import fetch
from quorum.log.epochs import EpochCache
from quorum.log.fetch import Diverging, FetchPosition, UnknownEpoch, Valid
from quorum.log.files import checkpoints
from wire.batch import BatchHeader
from wire.capabilities import NOTHING_LACKING, Lacking
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.fetching import FetchPartition
from wire.messages.group_offsets import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from wire.messages.partitions import AlterPartitionRequest, IsrPartition
from wire.primitives import ZERO_UUID

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
_trim = LocalLog.trim
_forget = Views.forget
_refused_fetch = offsets.refused_fetch
_check_fetch_position = fetch.check_fetch_position
_is_caught_up = isr.is_caught_up
_is_invalid_recovery = alter_partition.is_invalid_recovery
_alter_partition_request = alterations.alter_partition_request


# --- what a leader counts on ----------------------------------------------------------------


@plant_in("partition", isr, "maximal_isr", seeds_max=15, found_at=0)
def counts_on_the_shrunk_isr(state: IsrState) -> tuple[int, ...]:
    """Breaks: whoever is asked to leave the ISR counts until it has left (D1)."""
    if isinstance(state, PendingShrink):
        return tuple(replica for replica in state.members if replica not in state.leaving)
    return _maximal_isr(state)


@plant_in("partition", isr, "maximal_isr")
def counts_on_the_committed_isr(state: IsrState) -> tuple[int, ...]:
    """Breaks: whoever may have joined the ISR counts (D1)."""
    return state.members


@plant_in("partition", Partition, "became")
def does_not_look_after_an_answer(self: Partition, change: Change, now_ms: int) -> Progress:
    """Breaks: a smaller ISR may commit more: look at once (D2, KAFKA-13091).

    The answer that counts is the one in the metadata log.
    """
    if change is Change.UPDATED and isinstance(self.role, LeaderOf):
        return NOTHING
    return _became(self, change, now_ms)


@plant_in("partition", alterations, "judge")
def asks_once(error: ErrorCode | None) -> Verdict:
    """Breaks: what got no answer is asked again (D3)."""
    return Verdict.WAIT if error is None else _judge(error)


@plant_in("partition", partition, "is_outdated")
def believes_only_answers(state: PartitionState, role: LeaderOf | FollowerOf) -> bool:
    """Breaks: the metadata log ends what an answer was waited for (D4, KAFKA-14144)."""
    is_waiting = isinstance(role, LeaderOf) and not isinstance(role.isr, Committed)
    return (is_waiting and state.leader_epoch == role.leader_epoch) or _is_outdated(state, role)


@plant_in("partition", EligibleReplicas, "high_watermark", seeds_max=20, found_at=0)
def counts_the_joining_as_in_sync(
    self: EligibleReplicas, partition: Partition, role: LeaderOf, now_ms: int
) -> int:
    """Breaks: who may be about to join does not count for min.insync.replicas."""
    counted = replace(role, isr=Committed(members=_maximal_isr(role.isr)))
    return _high_watermark(self, partition, counted, now_ms)


@plant_in("partition", isr, "may_expand")
def joins_at_the_high_watermark(
    state: IsrState, follower: isr.FollowerProgress, **known: Any
) -> bool:
    """Breaks: who joins has reached where the leader's epoch began (C3, KAFKA-7128)."""
    return _may_expand(state, follower, **{**known, "epoch_start_offset": 0})


@plant_in("partition", Alterations, "conclude")
def takes_silence_for_a_refusal(
    self: Alterations, change: IsrChange, result: Any, now_ms: int
) -> None:
    """Breaks: who gets no answer does not know that nothing was done (KIP-497)."""
    if result is None and change.role.isr is change.asked:
        change.role.isr = Committed(members=change.asked.members)
    _conclude(self, change, result, now_ms)


@plant_in("partition", EligibleReplicas, "high_watermark", seeds_max=20, found_at=5)
def follows_the_slowest(
    self: EligibleReplicas, partition: Partition, role: LeaderOf, now_ms: int
) -> int:
    """Breaks: a high watermark does not fall in a leader epoch."""
    ends = [follower.log_end_offset for follower in role.followers.values()]
    return max(0, min([partition.open_log.end_offset, *ends]))


# --- the exact boundary of a rule --------------------------------------------------------------


@plant_in("partition", isr, "is_caught_up", seeds_max=20, found_at=7)
def takes_the_boundary_for_lagging(
    follower: isr.FollowerProgress, *, lag_time_max_ms: int, **known: Any
) -> bool:
    """Breaks: who had everything replica.lag.time.max.ms ago, and not before, is caught up."""
    return _is_caught_up(follower, lag_time_max_ms=lag_time_max_ms - 1, **known)


@plant_in("partition", alterations, "alter_partition_request", seeds_max=20, found_at=2)
def goes_on_recovering(
    changes: tuple[IsrChange, ...], node_id: int, broker_epoch: int
) -> AlterPartitionRequest:
    """Breaks: a leader that asks for an ISR has recovered (KIP-704)."""
    request = _alter_partition_request(changes, node_id, broker_epoch)
    states = {
        (each.partition.topic_id, each.partition.index): each.role.leader_recovery_state
        for each in changes
    }
    topics = tuple(
        replace_message(
            topic,
            partitions=tuple(
                replace_message(
                    asked, leader_recovery_state=states[(topic.topic_id, asked.partition_index)]
                )
                for asked in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return replace_message(request, topics=topics)


# --- what clients are told ------------------------------------------------------------------


@plant_in("partition", reads, "readable_end", seeds_max=40, found_at=32)
def shows_consumers_the_end(partition: Partition, isolation: reads.Isolation) -> int:
    """Breaks: consumers see nothing that a change of leader could take back."""
    return partition.open_log.end_offset


@plant_in("partition", appends, "check_sequence", seeds_max=20, found_at=7)
def takes_repetitions(entry: ProducerEntry | None, header: BatchHeader) -> SequenceVerdict:
    """Breaks: what an idempotent producer repeats is in the log once (KIP-98)."""
    return InSequence()


@plant_in("partition", reads, "is_still_led")
def answers_whatever_was_read(partition: Partition, leader_epoch: int) -> bool:
    """Breaks: what was read is not told once another leads."""
    return partition.log is not None


@plant_in("partition", Replicas, "find")
def finds_whatever_has_the_name(
    self: Replicas, topic: str, topic_id: UUID, index: int
) -> Partition | ErrorCode:
    """Breaks: the id of a deleted topic is not that of the topic that has its name now
    (KIP-516)."""
    names: dict[UUID, str] = self.__dict__.setdefault("names_of_old", {})
    names.update((partition.topic_id, partition.topic) for partition in self)
    if topic_id in names:
        return _find(self, names[topic_id], ZERO_UUID, index)
    return _find(self, topic, topic_id, index)


@plant_in("partition", loading, "load_end", seeds_max=150, found_at=18)
def loads_what_it_knows_to_be_committed(log: LocalLog) -> int:
    """Breaks: a coordinator knows all that was acknowledged before its election."""
    return log.high_watermark


# A broker prepares most of a Metadata answer once, and drops what a change concerns: two bugs keep
# what one kind of change concerns. The third forgets that a client has older software.


@plant_in("partition", Views, "forget", seeds_max=10, found_at=0)
def answers_as_if_no_broker_had_changed(self: Views, delta: MetadataDelta) -> None:
    """Breaks: a Metadata answer says which replicas cannot be reached now."""
    _forget(self, replace(delta, brokers_changed=()))


@plant_in("partition", Views, "forget", seeds_max=10, found_at=0)
def answers_as_if_no_partition_had_changed(self: Views, delta: MetadataDelta) -> None:
    """Breaks: a Metadata answer has the newest state of each partition."""
    _forget(self, replace(delta, rows_changed=NO_ROWS))


@plant_in("partition", offsets, "refused_fetch", seeds_max=150, found_at=29)
def tells_errors_in_new_words(
    asked: OffsetFetchRequestGroup, error: ErrorCode, lacking: Lacking
) -> OffsetFetchResponseGroup:
    """Breaks: a client that takes no error of a group is told it of each partition."""
    return _refused_fetch(asked, error, NOTHING_LACKING)


# --- what an incremental fetch looks at -----------------------------------------------------


@plant_in("partition", FetchSessions, "holders", seeds_max=20, found_at=11)
def tells_one_session(self: FetchSessions, name: str) -> tuple[SessionPartition, ...]:
    """Breaks: every session that holds a partition is told that it has moved (KIP-227)."""
    return _holders(self, name)[:1]


@plant_in("partition", isr, "leave_session")
def judges_by_an_earlier_session(follower: isr.FollowerProgress) -> None:
    """Breaks: a follower that rested was caught up at the last fetch of its session."""
    follower.clock = None


# --- epochs of records ------------------------------------------------------------------------


@plant_in("partition", Partition, "append", seeds_max=40, found_at=0)
def writes_in_the_epoch_before(self: Partition, batch: bytes, header: BatchHeader) -> int:
    """Breaks: a leader writes in its own leader epoch (KIP-101)."""
    role, before = self.led, last_fetched_epoch(self.open_log)
    epoch = role.leader_epoch if before == NO_EPOCH else before
    self.role = replace(role, leader_epoch=epoch)
    try:
        return _append(self, batch, header)
    finally:
        self.role = role


# --- where the view of a log starts and ends ---------------------------------------------------


@plant_in("partition", LocalLog, "trim", seeds_max=40, found_at=0)
def deletes_all_that_is_exposed(self: LocalLog, start_offset: int) -> None:
    """Breaks: what lies behind the offset that was asked for is not deleted (KIP-107)."""
    _trim(self, self.high_watermark if start_offset > self.start_offset else start_offset)


@plant_in("partition", LocalLog, "trim", seeds_max=40, found_at=0)
def deletes_what_is_not_exposed(self: LocalLog, start_offset: int) -> None:
    """Breaks: nothing is deleted that is not exposed (KIP-107)."""
    if self.start_offset < start_offset == self.high_watermark:
        self.high_watermark = start_offset = self.end_offset
    _trim(self, start_offset)


# --- truncation and fencing -----------------------------------------------------------------


@plant_in("partition", Replication, "follow", seeds_max=40, found_at=16)
def truncates_to_the_high_watermark(self: Replication, partition: Partition, now_ms: int) -> None:
    """Breaks: a follower cuts back by epoch, not to its high watermark (B5, KIP-101)."""
    partition.open_log.truncate(partition.open_log.high_watermark)
    _follow(self, partition, now_ms)


@plant_in("partition", reads, "check_fetch_position")
def answers_for_any_epoch(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, last_fetched_epoch: int
) -> FetchPosition:
    """Breaks: an epoch that never wrote here is told apart (C1, KIP-279)."""
    end = epochs.end_offset_for(last_fetched_epoch, end_offset)
    if end is None:
        return UnknownEpoch()
    if end.offset < fetch_offset:
        return Diverging(epoch=last_fetched_epoch, end_offset=end.offset)
    return Valid()


@plant_in("partition", reads, "check_fetch_position")
def takes_equal_length_for_equal_content(
    epochs: EpochCache, *, end_offset: int, fetch_offset: int, **known: Any
) -> FetchPosition:
    """Breaks: who ends where its leader ends may have other records there (KIP-101)."""
    if fetch_offset == end_offset:
        return Valid()
    return _check_fetch_position(epochs, end_offset=end_offset, fetch_offset=fetch_offset, **known)


@plant_in("partition", following, "truncation_point")
def truncates_where_the_leader_says(
    epochs: EpochCache, *, end_offset: int, diverging: Diverging
) -> int:
    """Breaks: where an unknown epoch ended there says nothing of the log here (C1, KIP-279)."""
    return min(diverging.end_offset, end_offset)


@plant_in("partition", partition, "check_leader_epoch")
def serves_any_epoch(requested: int, current: int, *, is_leader: bool) -> ErrorCode:
    """Breaks: a fetch of another leader epoch is fenced (C2, KIP-320)."""
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


@plant_in("partition", following, "is_stale", seeds_max=60, found_at=5)
def obeys_late_answers(partition: Partition, asked: FetchPartition) -> bool:
    """Breaks: an answer that a change of leader has overtaken is dropped (C4)."""
    return not isinstance(partition.role, FollowerOf)


@plant_in("partition", isr, "start_epoch")
def counts_on_earlier_epochs(follower: isr.FollowerProgress, **known: Any) -> None:
    """Breaks: what a follower had in an earlier leader epoch, it need not have any more."""
    if follower.log_end_offset == isr.UNKNOWN_OFFSET:
        _start_epoch(follower, **known)


# --- orderly stops --------------------------------------------------------------------------


@plant_in("partition", checkpoints, "clean_shutdown_epoch", seeds_max=30, found_at=3)
def stops_without_an_epoch(before: int | None, broker_epoch: int) -> int:
    """Breaks: a process that never registered leaves the mark of an orderly stop as it was
    (KIP-966)."""
    return broker_epoch


# --- changes that break nothing by themselves -----------------------------------------------

# One request is in flight, and an answer that comes after its time is nobody's: there is no other
# that it could be taken for.


@plant_in("partition_survivors", Alterations, "conclude")
def takes_any_answer_for_its_own(
    self: Alterations, change: IsrChange, result: Any, now_ms: int
) -> None:
    """Breaks: an answer ends only what it answers (D3, KAFKA-12686)."""
    role = change.partition.role
    if result is not None and result.error_code is ErrorCode.NONE and isinstance(role, LeaderOf):
        role.isr = Committed(members=result.isr)
        role.partition_epoch = max(role.partition_epoch, result.partition_epoch)
    else:
        _conclude(self, change, result, now_ms)


# A shipped leader says with every change of its ISR that it has recovered. Together with
# `goes_on_recovering` this breaks M-REC.


@plant_in("partition_survivors", alter_partition, "is_invalid_recovery")
def lets_two_recover(state: PartitionState, asked: IsrPartition) -> bool:
    """Breaks: a recovering leader is alone in its ISR: two are too many (KIP-704)."""
    is_pair = len(asked.new_isr_with_epochs) == 2 and asked.leader_recovery_state == RECOVERING
    if is_pair:
        return state.leader_recovery_state == RECOVERED
    return _is_invalid_recovery(state, asked)
