"""The partition changes that follow when a broker starts, stops, fails, or loses a directory.

One broker may have a replica of every partition. Many partitions are therefore decided over
columns; a few are decided one by one, which is as fast. Both ways make the same changes.

Source: KIP-497, KIP-631, KIP-858, KIP-966; Kafka's ReplicationControlManager.
"""

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from uuid import UUID

import numpy as np

from controller.config import ControllerConfig
from controller.decisions import columns
from controller.decisions.partition_changes import (
    changes_of_rows,
    largest_min_isr,
    without_broker,
)
from controller.metadata import configs
from controller.metadata.changes import Change
from controller.metadata.election import Acceptable, Desired, Election
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import NO_EPOCH_BUMP_ON_SHRINK
from controller.metadata.partitions import NO_LEADER, NO_ROWS, PartitionState, Rows
from wire.metadata_records import PartitionChangeRecord
from wire.partition_columns import PartitionChanges

__all__ = [
    "COLUMNS_FROM",
    "ONE_BY_ONE_MAX",
    "elect_one_by_one",
    "elect_with",
    "leads_something",
    "leave_directories",
    "leave_isrs",
]

COLUMNS_FROM = 100  # rows; fewer are decided as fast one by one
ONE_BY_ONE_MAX = 500  # changes in a turn: they take 0.1 ms each, and the quorum's followers wait


def leads_something(image: MetadataImage, broker_id: int) -> bool:
    return len(image.partitions.rows_led_by(broker_id)) > 0


def leave_isrs(
    image: MetadataImage,
    broker_id: int,
    config: ControllerConfig,
    *,
    lost: bool = False,
    one_by_one_max: int | None = None,
) -> tuple[Change, ...]:
    """Take a broker out of every ISR that has other members, and elect where it led.

    `lost`: it stopped without a clean shutdown, and may lack records that it once had. Of the rows
    that cannot be decided as columns, at most `one_by_one_max` are changed.
    """
    table = image.partitions
    rows = table.rows_with_isr_member(broker_id)
    if lost:
        rows = np.union1d(rows, table.rows_eligible(broker_id)).astype(np.int32)
    others = without_broker(image, broker_id)
    return _leave(image, rows, broker_id, config, others, lost=lost, one_by_one_max=one_by_one_max)


def elect_with(
    image: MetadataImage, broker_id: int, config: ControllerConfig
) -> tuple[Change, ...]:
    """Elect leaders where there are none and the broker, which comes up, allows it.

    At most `ONE_BY_ONE_MAX` that cannot be decided as columns: the others are overdue then.
    """
    table = image.partitions
    rows = np.intersect1d(table.rows_without_leader(), table.rows_with_replica(broker_id))
    rows = rows.astype(np.int32)
    blocks: list[PartitionChanges] = []
    if len(rows) >= COLUMNS_FROM and _fits_columns(image):
        up = columns.Acceptable.of(image, _up_with(image, broker_id))
        blocks, rows = _in_columns(
            image, rows, config, lambda part: columns.elected(image, part, up)
        )
    others = elect_one_by_one(image, rows, config, _with(image, broker_id))
    return (*blocks, *islice(others, ONE_BY_ONE_MAX))


def leave_directories(
    image: MetadataImage, broker_id: int, lost: Collection[UUID], config: ControllerConfig
) -> tuple[Change, ...]:
    """Take a broker out of the ISRs of its replicas in directories that went offline."""

    def is_acceptable(candidate: int, directory: UUID) -> bool:
        if candidate == broker_id and directory in lost:
            return False
        return image.is_acceptable(candidate, directory)

    rows = image.partitions.rows_in_sync_in(broker_id, lost)
    return _leave(image, rows, broker_id, config, is_acceptable)


def _leave(
    image: MetadataImage,
    rows: Rows,
    broker_id: int,
    config: ControllerConfig,
    acceptable: Acceptable,
    *,
    lost: bool = False,
    one_by_one_max: int | None = None,
) -> tuple[Change, ...]:
    """Take a broker out of the ISRs of `rows`; `acceptable` must say that it cannot lead there."""
    blocks: list[PartitionChanges] = []
    if len(rows) >= COLUMNS_FROM and _fits_columns(image):
        up = columns.Acceptable.of(image, _up_without(image, broker_id))
        blocks, rows = _in_columns(
            image, rows, config, lambda part: columns.without_member(image, part, broker_id, up)
        )
    others = _leave_one_by_one(image, rows, broker_id, config, acceptable, lost)
    return (*blocks, *islice(others, one_by_one_max))


# --- one by one -----------------------------------------------------------------------------


def _leave_one_by_one(
    image: MetadataImage,
    rows: Rows,
    broker_id: int,
    config: ControllerConfig,
    acceptable: Acceptable,
    lost: bool,
) -> Iterable[PartitionChangeRecord]:
    gone = (broker_id,) if lost else ()

    def desire(election: Election, state: PartitionState) -> Desired:
        isr = tuple(member for member in state.isr if member != broker_id)
        return Desired(election=election, isr=isr, lost=gone)

    return changes_of_rows(image, config, rows, desire, acceptable)


def elect_one_by_one(
    image: MetadataImage,
    rows: Rows,
    config: ControllerConfig,
    acceptable: Acceptable,
    how: Election | None = None,
) -> Iterable[PartitionChangeRecord]:
    """The changes by an election in each row; `how` None: as its topic allows."""

    def desire(election: Election, _: PartitionState) -> Desired:
        return Desired(election=how or election)

    return changes_of_rows(image, config, rows, desire, acceptable)


# --- columns --------------------------------------------------------------------------------


def _fits_columns(image: MetadataImage) -> bool:
    """Do the rules over columns hold at this metadata.version?"""
    return image.metadata_version >= NO_EPOCH_BUMP_ON_SHRINK


def _in_columns(
    image: MetadataImage,
    rows: Rows,
    config: ControllerConfig,
    decide: Callable[[Rows], columns.Decided],
) -> tuple[list[PartitionChanges], Rows]:
    """The changes of `rows`, and the rows that have to be decided one by one."""
    blocks: list[PartitionChanges] = []
    rest = [NO_ROWS]
    unclean = configs.topics_with_unclean_election(image, config.static_configs)
    enough = largest_min_isr(image, config) if image.has_eligible_leaders else 0
    for part in columns.parts(rows):
        decided = decide(part)
        odd = _odd(image, part, decided, unclean, enough)
        blocks += columns.block_of(decided, keep=~odd)
        rest.append(part[odd])
    return blocks, np.concatenate(rest)


def _odd(
    image: MetadataImage,
    rows: Rows,
    decided: columns.Decided,
    unclean: Collection[UUID],
    enough: int,
) -> columns.Hits:
    """Which rows have to be decided one by one?

    Those of no common shape; those whose ISR is below `enough`, which may need eligible leader
    replicas; and those without a leader in a topic that allows `unclean` elections.
    """
    odd = ~decided.is_columnar | (decided.sizes < enough)
    if unclean:
        leaderless = np.flatnonzero(decided.leaders == NO_LEADER)
        found = columns.rows_of_topics(image, rows[leaderless], unclean)
        odd |= np.isin(rows, found)
    return odd


# --- which brokers are up --------------------------------------------------------------------


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
