"""What Metadata answers say of partitions, made for many topics at once.

A change of a broker concerns every topic, so that all are described anew for the next answer. Their
state is therefore taken from the image in columns: row by row it takes six times as long. Replicas
and ISRs repeat from partition to partition; partitions share the tuples.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from controller.metadata.partitions import NOBODY, PartitionState, PartitionTable, Rows
from controller.metadata.topics import TopicImage
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataResponsePartition

__all__ = ["described_partitions", "offline_replicas", "partition_error"]

_Members = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # replicas, ISR, offline


def offline_replicas(replicas: Sequence[int], alive: Collection[int]) -> tuple[int, ...]:
    """Replicas on brokers that cannot be reached: fenced, unregistered, or without the listener."""
    return tuple(replica for replica in replicas if replica not in alive)


def partition_error(leader: int, alive: Collection[int]) -> ErrorCode:
    return ErrorCode.NONE if leader in alive else ErrorCode.LEADER_NOT_AVAILABLE


def described_partitions(
    table: PartitionTable, topics: Sequence[TopicImage], alive: Collection[int]
) -> Iterator[tuple[MetadataResponsePartition, ...]]:
    """Yield the partitions of each topic, by index."""
    rows_by_topic = [[row for _, row in topic.partitions()] for topic in topics]
    rows = np.array([row for rows in rows_by_topic for row in rows], np.int32)
    described = _described(table, rows, alive)
    start = 0
    for end in np.cumsum([len(rows) for rows in rows_by_topic]).tolist():
        yield tuple(described[start:end])
        start = end


def _described(
    table: PartitionTable, rows: Rows, alive: Collection[int]
) -> list[MetadataResponsePartition]:
    columns = table.columns(rows)
    known: dict[tuple[int, ...], _Members] = {}
    described = []
    for row, index, slots, mask, leader, leader_epoch in zip(
        rows.tolist(),
        columns.partition.tolist(),
        columns.replicas.T.tolist(),
        columns.isr.tolist(),
        columns.leader.tolist(),
        columns.leader_epoch.tolist(),
        strict=True,
    ):
        if slots[0] == NOBODY:
            described.append(_described_state(index, table.state(row), alive))
            continue
        key = (mask, *slots)
        members = known.get(key)
        if members is None:
            members = known[key] = _members(slots, mask, alive)
        replicas, isr, offline = members
        described.append(
            MetadataResponsePartition(
                error_code=partition_error(leader, alive),
                partition_index=index,
                leader_id=leader,
                leader_epoch=leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                offline_replicas=offline,
            )
        )
    return described


def _members(slots: Sequence[int], isr_mask: int, alive: Collection[int]) -> _Members:
    replicas = tuple(replica for replica in slots if replica != NOBODY)
    isr = tuple(replica for slot, replica in enumerate(replicas) if isr_mask >> slot & 1)
    return replicas, isr, offline_replicas(replicas, alive)


def _described_state(
    index: int, state: PartitionState, alive: Collection[int]
) -> MetadataResponsePartition:
    """A partition whose state has no room in the columns."""
    return MetadataResponsePartition(
        error_code=partition_error(state.leader, alive),
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=offline_replicas(state.replicas, alive),
    )
