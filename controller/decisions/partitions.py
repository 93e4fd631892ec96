"""Partition changes that brokers cause: ISR changes that leaders ask for, and brokers that come
and go.

One broker may be in every partition. `leave_isrs` and `elect_with` therefore decide over columns
when many partitions are concerned, and one by one otherwise, where that is as fast. Both ways
come to the same changes.

Source: KIP-497 and KIP-631; Kafka's ReplicationControlManager.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import islice
from uuid import UUID

import numpy as np

from controller.config import ControllerConfig
from controller.decisions import columns
from controller.decisions.decision import Decision
from controller.metadata import alter_partition, configs, election
from controller.metadata.changes import Change
from controller.metadata.election import Acceptable, Election, ElectionPolicy, Wish
from controller.metadata.image import MetadataImage
from controller.metadata.partition_records import changed
from controller.metadata.partitions import NO_LEADER, PartitionState, Rows
from wire.errors import ErrorCode
from wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    PartitionDataResult,
    TopicDataResult,
)
from wire.metadata_records import PartitionChangeRecord

__all__ = [
    "UNCLEAN_ELECTIONS_MAX",
    "decide_alter_partition",
    "elect_unclean",
    "elect_with",
    "leads_something",
    "leave_directories",
    "leave_isrs",
]

COLUMNS_FROM = 100  # rows; below, single records are decided as fast
UNCLEAN_ELECTIONS_MAX = 1000  # in one go: the rest follows at once
_ELR_FEATURE = "eligible.leader.replicas.version"


# --- AlterPartition -------------------------------------------------------------------------


def decide_alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, config: ControllerConfig
) -> Decision[AlterPartitionResponse]:
    """Change the ISRs that the leader of some partitions asks to; each by itself."""
    if alter_partition.has_stale_broker_epoch(image, request.broker_id, request.broker_epoch):
        return Decision(response=AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    changes: list[Change] = []
    states: dict[tuple[UUID, int], PartitionState] = {}  # after earlier changes of this request
    topics = []
    for topic in request.topics:
        results = []
        for asked in topic.partitions:
            key = (topic.topic_id, asked.partition_index)
            state = states.get(key) or image.partition(*key)
            if state is None:
                results.append(_unknown_partition(image, *key))
                continue
            result, record = _alter_one(image, key, state, asked, request.broker_id, config)
            results.append(result)
            if record is not None:
                changes.append(record)
                states[key] = changed(state, record)
        topics.append(TopicDataResult(topic_id=topic.topic_id, partitions=tuple(results)))
    response = AlterPartitionResponse(topics=tuple(topics))
    return Decision(response=response, changes=tuple(changes), is_atomic=False)


def _unknown_partition(image: MetadataImage, topic_id: UUID, index: int) -> PartitionDataResult:
    known = image.topic_by_id(topic_id) is not None
    return PartitionDataResult(
        partition_index=index,
        error_code=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID),
    )


def _alter_one(
    image: MetadataImage,
    key: tuple[UUID, int],
    state: PartitionState,
    asked: PartitionData,
    broker_id: int,
    config: ControllerConfig,
) -> tuple[PartitionDataResult, PartitionChangeRecord | None]:
    error = alter_partition.refusal(image, state, asked, broker_id=broker_id)
    if error is not ErrorCode.NONE:
        return PartitionDataResult(partition_index=key[1], error_code=error), None
    record = election.decide_change(
        *key,
        state,
        wish=Wish(
            election=election_for(image, key[0], config),
            isr=alter_partition.requested_isr(state, asked),
            recovery_state=asked.leader_recovery_state,
        ),
        policy=policy_for(image, key[0], config, image.is_acceptable),
    )
    after = state if record is None else changed(state, record)
    if after.leader != broker_id:
        # It completed a reassignment that moves the leader away: done, and said by an error.
        moved = ErrorCode.NEW_LEADER_ELECTED
        return PartitionDataResult(partition_index=key[1], error_code=moved), record
    result = PartitionDataResult(
        partition_index=key[1],
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=after.leader_recovery_state,
        partition_epoch=after.partition_epoch,
    )
    return result, record


def policy_for(
    image: MetadataImage, topic_id: UUID, config: ControllerConfig, acceptable: Acceptable
) -> ElectionPolicy:
    elr_enabled = image.features.get(_ELR_FEATURE, 0) > 0
    min_isr = 1
    if elr_enabled:
        name = image.topics.by_id[topic_id].name
        min_isr = configs.min_insync_replicas(image, name, config.static_configs)
    return ElectionPolicy(
        acceptable=acceptable,
        metadata_version=image.metadata_version,
        elr_enabled=elr_enabled,
        min_insync_replicas=min_isr,
    )


def election_for(image: MetadataImage, topic_id: UUID, config: ControllerConfig) -> Election:
    """How a leader may be found for a partition of this topic."""
    name = image.topics.by_id[topic_id].name
    allowed = configs.unclean_election_enabled(image, name, config.static_configs)
    return Election.UNCLEAN if allowed else Election.ONLINE


# --- brokers that come and go ---------------------------------------------------------------


def leads_something(image: MetadataImage, broker_id: int) -> bool:
    return len(image.partitions.rows_led_by(broker_id)) > 0


def leave_isrs(
    image: MetadataImage, broker_id: int, config: ControllerConfig, *, lost: bool = False
) -> tuple[Change, ...]:
    """Take a broker out of every ISR that has other members, and elect where it led.

    `lost`: it stopped without a clean shutdown, and may lack records that it once had.
    """
    table = image.partitions
    rows = table.rows_with_isr_member(broker_id)
    if lost:
        rows = np.union1d(rows, table.rows_eligible(broker_id))
    others = _without(image, broker_id)
    if len(rows) < COLUMNS_FROM or not _fits_columns(image):
        return tuple(_leave_one_by_one(image, rows, broker_id, config, others, lost))
    decided = columns.without_member(image, rows, broker_id, is_up=_up_without(image, broker_id))
    rest = _unclean_or_odd(image, rows, decided, config)
    block = columns.block_of(decided, keep=~rest)
    records = _leave_one_by_one(image, rows[rest], broker_id, config, others, lost)
    return (*block, *records)


def elect_with(
    image: MetadataImage, broker_id: int, config: ControllerConfig
) -> tuple[Change, ...]:
    """Elect leaders where there are none and the broker, which comes up, makes it possible."""
    table = image.partitions
    rows = np.intersect1d(table.rows_without_leader(), table.rows_with_replica(broker_id))
    rows = rows.astype(np.int32)
    if len(rows) < COLUMNS_FROM or not _fits_columns(image):
        return tuple(_elect_one_by_one(image, rows, config, _with(image, broker_id)))
    decided = columns.elected(image, rows, is_up=_up_with(image, broker_id))
    rest = _unclean_or_odd(image, rows, decided, config)
    block = columns.block_of(decided, keep=~rest)
    return (*block, *_elect_one_by_one(image, rows[rest], config, _with(image, broker_id)))


def elect_unclean(image: MetadataImage, config: ControllerConfig) -> tuple[Change, ...]:
    """Elect from outside the ISR where there is no leader and the topic allows it."""
    unclean = configs.topics_with_unclean_election(image, config.static_configs)
    rows = image.partitions.rows_without_leader()
    if not unclean or not len(rows):
        return ()
    allowed = columns.rows_of_topics(image, rows, unclean)
    records = _elect_one_by_one(image, allowed, config, image.is_acceptable)
    return tuple(islice(records, UNCLEAN_ELECTIONS_MAX))


def leave_directories(
    image: MetadataImage, broker_id: int, lost: Collection[UUID], config: ControllerConfig
) -> tuple[Change, ...]:
    """Take a broker out of the ISRs of its replicas in directories that went offline."""

    def is_acceptable(candidate: int, directory: UUID) -> bool:
        if candidate == broker_id and directory in lost:
            return False
        return image.is_acceptable(candidate, directory)

    table = image.partitions
    rows = [
        row
        for row in table.rows_with_isr_member(broker_id).tolist()
        if _directory_of(table.state(row), broker_id) in lost
    ]
    there = np.array(rows, np.int32)
    return tuple(_leave_one_by_one(image, there, broker_id, config, is_acceptable, lost=False))


def _directory_of(state: PartitionState, broker_id: int) -> UUID:
    return state.directories[state.replicas.index(broker_id)]


def _leave_one_by_one(
    image: MetadataImage,
    rows: Rows,
    broker_id: int,
    config: ControllerConfig,
    acceptable: Acceptable,
    lost: bool,
) -> Iterable[PartitionChangeRecord]:
    gone = (broker_id,) if lost else ()
    for row in rows.tolist():
        state = image.partitions.state(row)
        isr = tuple(member for member in state.isr if member != broker_id)
        record = _decide_row(image, row, state, Wish(isr=isr, lost=gone), config, acceptable)
        if record is not None:
            yield record


def _elect_one_by_one(
    image: MetadataImage, rows: Rows, config: ControllerConfig, acceptable: Acceptable
) -> Iterable[PartitionChangeRecord]:
    for row in rows.tolist():
        state = image.partitions.state(row)
        record = _decide_row(image, row, state, Wish(), config, acceptable)
        if record is not None:
            yield record


def _decide_row(
    image: MetadataImage,
    row: int,
    state: PartitionState,
    wish: Wish,
    config: ControllerConfig,
    acceptable: Acceptable,
) -> PartitionChangeRecord | None:
    place = image.partitions.place(row)
    assert place is not None, f"row {row} is free"
    topic_id, index = place
    wish = replace(wish, election=election_for(image, topic_id, config))
    policy = policy_for(image, topic_id, config, acceptable)
    return election.decide_change(topic_id, index, state, wish=wish, policy=policy)


# --- columns --------------------------------------------------------------------------------


def _fits_columns(image: MetadataImage) -> bool:
    """Do the rules over columns hold? They know neither ELR nor the epochs of older levels."""
    no_bump = image.metadata_version >= election.NO_EPOCH_BUMP_ON_SHRINK
    return no_bump and image.features.get(_ELR_FEATURE, 0) == 0


def _unclean_or_odd(
    image: MetadataImage, rows: Rows, decided: columns.Decided, config: ControllerConfig
) -> columns.Hits:
    """Rows that are decided one by one: of no common shape, or to be elected uncleanly."""
    rest = ~decided.is_columnar
    unclean = configs.topics_with_unclean_election(image, config.static_configs)
    if unclean:
        leaderless = np.flatnonzero(decided.leaders == NO_LEADER)
        found = columns.rows_of_topics(image, rows[leaderless], unclean)
        rest |= np.isin(rows, found)
    return rest


def _without(image: MetadataImage, gone: int) -> Acceptable:
    def is_acceptable(broker_id: int, directory: UUID) -> bool:
        return broker_id != gone and image.is_acceptable(broker_id, directory)

    return is_acceptable


def _with(image: MetadataImage, coming: int) -> Acceptable:
    def is_acceptable(broker_id: int, directory: UUID) -> bool:
        if broker_id == coming:
            broker = image.brokers[broker_id]
            return not broker.in_controlled_shutdown and broker.has_online(directory)
        return image.is_acceptable(broker_id, directory)

    return is_acceptable


def _up_without(image: MetadataImage, gone: int) -> dict[int, bool]:
    return {id_: broker.is_active and id_ != gone for id_, broker in image.brokers.items()}


def _up_with(image: MetadataImage, coming: int) -> dict[int, bool]:
    return {
        id_: not broker.in_controlled_shutdown and (not broker.fenced or id_ == coming)
        for id_, broker in image.brokers.items()
    }
