"""Partitions are described for Metadata answers, of many topics at once.

A change of a broker concerns every topic, so that all are described anew for the next answer. Their
state is therefore taken from the image in columns: row by row it takes six times as long. Replicas
and ISRs repeat from partition to partition; partitions share the tuples.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np

from controller.metadata.partitions import NOBODY, PartitionTable, Rows
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
    for rows_of_topic in rows_by_topic:
        yield tuple(islice(described, len(rows_of_topic)))


def _described(
    table: PartitionTable, rows: Rows, alive: Collection[int]
) -> Iterator[MetadataResponsePartition]:
    columns = table.columns(rows)
    known: dict[tuple[int, ...], _Members] = {}
    for row, index, slots, mask, leader, leader_epoch in zip(
        rows.tolist(),
        columns.partition.tolist(),
        columns.replicas.T.tolist(),
        columns.isr.tolist(),
        columns.leader.tolist(),
        columns.leader_epoch.tolist(),
        strict=True,
    ):
        key = (mask, *slots)
        members = known.get(key)
        if slots[0] == NOBODY:  # a state that has no room in the columns
            state = table.state(row)
            leader, leader_epoch = state.leader, state.leader_epoch
            members = state.replicas, state.isr, offline_replicas(state.replicas, alive)
        elif members is None:
            members = known[key] = _members(slots, mask, alive)
        replicas, isr, offline = members
        yield MetadataResponsePartition(
            error_code=partition_error(leader, alive),
            partition_index=index,
            leader_id=leader,
            leader_epoch=leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=offline,
        )


def _members(slots: Sequence[int], isr_mask: int, alive: Collection[int]) -> _Members:
    replicas = tuple(replica for replica in slots if replica != NOBODY)
    isr = tuple(replica for slot, replica in enumerate(replicas) if isr_mask >> slot & 1)
    return replicas, isr, offline_replicas(replicas, alive)
