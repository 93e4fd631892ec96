"""Partition state in columns, as a value with a cheap successor.

Rows live in immutable chunks; a draft (`controller.metadata.draft`) copies the chunks that it
touches and shares the rest. Columns hold the common shape. A row outside it lives in the chunk's
`side` mapping, behind the same views: more than eight replicas, a running reassignment, eligible
leader replicas, or an in-sync replica set (ISR) that is not in replica order. Which row a
partition has is the business of `controller.metadata.topics`; rows mean nothing outside one
process.

Decides nothing about partitions: rules are in `controller.metadata.election`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from wire.primitives import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

__all__ = [
    "BITS_SET",
    "CHUNK_BITS",
    "CHUNK_ROWS",
    "COLUMN_REPLICAS_MAX",
    "NOBODY",
    "NO_LEADER",
    "NO_ROWS",
    "RECOVERED",
    "RECOVERING",
    "ROW_MASK",
    "UNCHANGED",
    "Chunk",
    "PartitionColumns",
    "PartitionState",
    "PartitionTable",
    "Places",
    "Rows",
    "by_chunk",
    "slots_of",
]

Rows = npt.NDArray[np.int32]

CHUNK_BITS = 12
CHUNK_ROWS = 1 << CHUNK_BITS  # copying one costs microseconds, scanning a million rows 250 steps
ROW_MASK = CHUNK_ROWS - 1
COLUMN_REPLICAS_MAX = 8  # the ISR is a mask of one byte
NO_LEADER = -1
NOBODY = -1  # fills unused replica slots; never a broker id
BITS_SET = np.array([mask.bit_count() for mask in range(256)], np.uint8)
_SLOT_BITS = np.array([[1 << slot] for slot in range(COLUMN_REPLICAS_MAX)], np.uint8)
RECOVERED = 0
UNCHANGED = -2  # a leader that a PartitionChange record leaves as it is
RECOVERING = 1  # elected from outside the ISR, and has not yet said that it recovered
_FEW_ROWS = 16  # to be read one by one: a column costs as much as four of them


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """What the metadata log says of one partition."""

    replicas: tuple[int, ...]  # the first is the preferred leader
    isr: tuple[int, ...]  # part of replicas
    leader: int  # in isr, or NO_LEADER
    leader_epoch: int = 0  # grows with every election
    partition_epoch: int = 0  # grows with every change
    leader_recovery_state: int = RECOVERED
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    directories: tuple[UUID, ...] = ()  # one for each replica
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.directories:
            unknown = (DIRECTORY_MIGRATING,) * len(self.replicas)
            object.__setattr__(self, "directories", unknown)
        elif len(self.directories) != len(self.replicas):
            raise ValueError(f"one directory for each replica, not as in {self}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionColumns:
    """Some rows, gathered: column n of `replicas` and item n of the others belong together.

    A row of the side mapping has -1 in `replicas[0]`, and nothing else here means anything for it.
    """

    topic_id: npt.NDArray[np.void]  # 16 bytes each
    partition: npt.NDArray[np.int32]
    replicas: npt.NDArray[np.int32]  # [slot, row]; unused slots are -1
    directories: npt.NDArray[np.uint16]  # [slot, row]: an index into PartitionTable.directories
    isr: npt.NDArray[np.uint8]  # bit n: the replica in slot n is in sync
    leader: npt.NDArray[np.int32]
    leader_epoch: npt.NDArray[np.int32]
    partition_epoch: npt.NDArray[np.int32]
    recovering: npt.NDArray[np.bool_]

    @property
    def is_columnar(self) -> npt.NDArray[np.bool_]:
        hits: npt.NDArray[np.bool_] = self.replicas[0] != NOBODY
        return hits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk(PartitionColumns):
    """`CHUNK_ROWS` rows. A free row has partition -1; one kept in `side` has no replicas here.

    `topic_id` to `directories` change when replicas move, the others at every change: a draft
    copies the former only when it must.
    """

    side: dict[int, PartitionState]  # by row within the chunk

    @classmethod
    def empty(cls) -> "Chunk":
        return cls(
            topic_id=np.zeros(CHUNK_ROWS, "V16"),
            partition=np.full(CHUNK_ROWS, -1, np.int32),
            replicas=np.full((1, CHUNK_ROWS), NOBODY, np.int32),
            directories=np.zeros((1, CHUNK_ROWS), np.uint16),
            isr=np.zeros(CHUNK_ROWS, np.uint8),
            leader=np.full(CHUNK_ROWS, NO_LEADER, np.int32),
            leader_epoch=np.zeros(CHUNK_ROWS, np.int32),
            partition_epoch=np.zeros(CHUNK_ROWS, np.int32),
            recovering=np.zeros(CHUNK_ROWS, np.bool_),
            side={},
        )

    def with_own_state(self) -> "Chunk":
        return Chunk(
            topic_id=self.topic_id,
            partition=self.partition,
            replicas=self.replicas,
            directories=self.directories,
            isr=self.isr.copy(),
            leader=self.leader.copy(),
            leader_epoch=self.leader_epoch.copy(),
            partition_epoch=self.partition_epoch.copy(),
            recovering=self.recovering.copy(),
            side=dict(self.side),
        )

    def with_own_placement(self) -> "Chunk":
        return replace(
            self,
            topic_id=self.topic_id.copy(),
            partition=self.partition.copy(),
            replicas=self.replicas.copy(),
            directories=self.directories.copy(),
        )

    def widened(self, slots: int) -> "Chunk":
        """With room for `slots` replicas a row."""
        known = self.replicas.shape[0]
        assert slots > known, (slots, self.replicas.shape)
        replicas = np.full((slots, CHUNK_ROWS), NOBODY, np.int32)
        directories = np.zeros((slots, CHUNK_ROWS), np.uint16)
        replicas[:known], directories[:known] = self.replicas, self.directories
        return replace(self, replicas=replicas, directories=directories)

    def freeze(self) -> None:
        for name in COLUMNS:
            getattr(self, name).setflags(write=False)

    def is_member(self, broker_id: int) -> npt.NDArray[np.bool_]:
        """For each row, is the broker an in-sync replica?"""
        hits: npt.NDArray[np.bool_] = (slots_of(self.replicas, broker_id) & self.isr) != 0
        return hits


COLUMNS = tuple(field.name for field in fields(PartitionColumns))
NO_ROWS: Rows = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionTable:
    """Every partition of an image, by row."""

    chunks: Sequence[Chunk] = ()
    end_row: int = 0  # rows at or above it have never been used
    free_rows: Rows = field(default_factory=lambda: NO_ROWS)  # a stack: the last is reused first
    directories: Sequence[UUID] = (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST)

    def __len__(self) -> int:
        return self.end_row - len(self.free_rows)

    def state(self, row: int) -> PartitionState:
        chunk, place = self.chunks[row >> CHUNK_BITS], row & ROW_MASK
        beside = chunk.side.get(place)
        if beside is not None:
            return beside
        return self._columnar(
            chunk.replicas[:, place].tolist(),
            chunk.directories[:, place].tolist(),
            int(chunk.isr[place]),
            int(chunk.leader[place]),
            int(chunk.leader_epoch[place]),
            int(chunk.partition_epoch[place]),
            bool(chunk.recovering[place]),
        )

    def _columnar(
        self,
        slots: list[int],
        numbers: list[int],
        isr: int,
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        recovering: bool,
    ) -> PartitionState:
        replicas = tuple([broker for broker in slots if broker != NOBODY])
        assert replicas, "the row is free"
        return PartitionState(
            replicas=replicas,
            isr=tuple([broker for slot, broker in enumerate(replicas) if isr >> slot & 1]),
            leader=leader,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            leader_recovery_state=RECOVERING if recovering else RECOVERED,
            directories=tuple([self.directories[n] for n in numbers[: len(replicas)]]),
        )

    def place(self, row: int) -> tuple[UUID, int] | None:
        """The topic id and partition index of a row; None for a free one."""
        chunk, place = self.chunks[row >> CHUNK_BITS], row & ROW_MASK
        index = int(chunk.partition[place])
        return None if index < 0 else (UUID(bytes=bytes(chunk.topic_id[place])), index)

    def places(self, rows: Rows) -> list[tuple[UUID, int] | None]:
        """`place` of each of `rows`. Partitions of a topic share its id."""
        if len(rows) < _FEW_ROWS:
            return [self.place(row) for row in rows.tolist()]
        groups = tuple(by_chunk(rows))
        ids, indexes = (
            self._column(name, groups, len(rows)).tolist() for name in ("topic_id", "partition")
        )
        id_of = cache(_uuid)
        return [
            None if index < 0 else (id_of(id_bytes), index)
            for id_bytes, index in zip(ids, indexes, strict=True)
        ]

    def partitions(self, rows: Rows) -> Iterator[tuple[UUID, int, PartitionState]]:
        """The topic id, partition index and state of each of `rows` that is not free.

        Partitions of a topic share its id, partitions in the same state share that: many do, and
        a state costs several times as much as finding it.
        """
        if len(rows) < _FEW_ROWS:
            for row in rows.tolist():
                place = self.place(row)
                if place is not None:
                    yield (*place, self.state(row))
            return
        for start in range(0, len(rows), CHUNK_ROWS):
            yield from self._gathered(rows[start : start + CHUNK_ROWS])

    def _gathered(self, rows: Rows) -> Iterator[tuple[UUID, int, PartitionState]]:
        """Yield `place` and `state` of each row, with every column read once."""
        now = self.columns(rows)
        # Turned over, a matrix has its rows first. `_columnar` takes `values` in this order.
        columns = [getattr(now, name).T.tolist() for name in COLUMNS]
        id_of = cache(_uuid)
        known: dict[tuple[int, ...], PartitionState] = {}
        for row, id_bytes, index, slots, numbers, *values in zip(
            rows.tolist(), *columns, strict=True
        ):
            if index < 0:
                continue
            key = (*slots, *numbers, *values)
            state = known.get(key)
            if slots[0] == NOBODY:
                state = self.chunks[row >> CHUNK_BITS].side[row & ROW_MASK]
            elif state is None:
                state = known[key] = self._columnar(slots, numbers, *values)
            yield id_of(id_bytes), index, state

    def has_replica(self, rows: Rows, broker_id: int) -> npt.NDArray[np.bool_]:
        """For each of `rows`, does the partition have a replica on the broker?"""
        slots, _ = self.members(rows)
        hits: npt.NDArray[np.bool_] = slots_of(slots, broker_id) != 0
        for place in np.flatnonzero(slots[0] == NOBODY).tolist():
            row = int(rows[place])
            beside = self.chunks[row >> CHUNK_BITS].side.get(row & ROW_MASK)
            hits[place] = beside is not None and broker_id in beside.replicas
        return hits

    def rows_with_replica(self, broker_id: int) -> Rows:
        return self._rows_where(
            lambda chunk: slots_of(chunk.replicas, broker_id) != 0,
            lambda state: broker_id in state.replicas,
        )

    def rows_with_isr_member(self, broker_id: int) -> Rows:
        return self._rows_where(
            lambda chunk: chunk.is_member(broker_id), lambda state: broker_id in state.isr
        )

    def rows_in_sync_in(self, broker_id: int, directories: Collection[UUID]) -> Rows:
        """Rows with an in-sync replica in one of these directories of the broker."""
        numbers = [n for n, known in enumerate(self.directories) if known in directories]

        def is_there(chunk: Chunk) -> npt.NDArray[np.bool_]:
            hits = np.zeros(CHUNK_ROWS, np.bool_)
            members = chunk.isr & slots_of(chunk.replicas, broker_id)
            for slot, places in enumerate(chunk.directories):
                hits |= ((members >> np.uint8(slot)) & np.uint8(1) > 0) & np.isin(places, numbers)
            return hits

        def is_beside(state: PartitionState) -> bool:
            if broker_id not in state.isr:
                return False
            return state.directories[state.replicas.index(broker_id)] in directories

        return self._rows_where(is_there, is_beside)

    def rows_led_by(self, broker_id: int) -> Rows:
        return self._rows_where(
            lambda chunk: (chunk.leader == broker_id) & (chunk.replicas[0] != NOBODY),
            lambda state: state.leader == broker_id,
        )

    def rows_without_leader(self) -> Rows:
        return self.rows_led_by(NO_LEADER)

    def rows_led_by_another(self) -> Rows:
        """Rows whose leader is not their first replica; also those without one."""
        return self._rows_where(
            lambda chunk: (chunk.leader != chunk.replicas[0]) & (chunk.replicas[0] != NOBODY),
            lambda state: state.leader != state.replicas[0],
        )

    def rows_in_reassignment(self) -> Rows:
        return self._rows_where(
            _none, lambda state: bool(state.adding_replicas or state.removing_replicas)
        )

    def rows_under_replicated(self) -> Rows:
        """Rows that have more replicas than in-sync replicas."""
        return self._rows_where(
            lambda chunk: (chunk.replicas != NOBODY).sum(axis=0) > BITS_SET[chunk.isr],
            lambda state: len(state.replicas) > len(state.isr),
        )

    def rows_with_eligible_leaders(self) -> Rows:
        """Rows with eligible leader replicas, or a last known one, outside the ISR."""
        return self._rows_where(
            _none, lambda state: bool(state.eligible_leader_replicas or state.last_known_elr)
        )

    def rows_eligible(self, broker_id: int) -> Rows:
        """Rows that name the broker among their eligible leader replicas."""
        return self._rows_where(_none, lambda state: broker_id in state.eligible_leader_replicas)

    def _rows_where(
        self,
        columns: Callable[[Chunk], npt.NDArray[np.bool_]],
        beside: Callable[[PartitionState], bool],
    ) -> Rows:
        found: list[npt.NDArray[np.intp]] = []
        for number, chunk in enumerate(self.chunks):
            hits = columns(chunk)
            for place, state in chunk.side.items():
                hits[place] = beside(state)
            found.append(np.flatnonzero(hits) + (number << CHUNK_BITS))
        return np.concatenate(found).astype(np.int32) if found else NO_ROWS

    def columns(self, rows: Rows) -> PartitionColumns:
        """The columns of `rows`, in their order."""
        groups = tuple(by_chunk(rows))
        return PartitionColumns(**{name: self._column(name, groups, len(rows)) for name in COLUMNS})

    def members(self, rows: Rows) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """The columns `replicas` and `isr` of `rows`."""
        groups = tuple(by_chunk(rows))
        return self._column("replicas", groups, len(rows)), self._column("isr", groups, len(rows))

    def _column(self, name: str, groups: Sequence["Group"], count: int) -> Any:
        like = getattr(_EMPTY, name)
        if like.ndim == 1:
            column = np.empty(count, like.dtype)
            for number, here, places in groups:
                column[here] = getattr(self.chunks[number], name).take(places)
            return column
        width = max((len(self.chunks[number].replicas) for number, _, _ in groups), default=1)
        column = np.full((width, count), like[0, 0])
        for number, here, places in groups:
            for slot, values in enumerate(getattr(self.chunks[number], name)):
                column[slot, here] = values.take(places)
        return column


def _uuid(value: bytes) -> UUID:
    return UUID(bytes=value)


def _none(_chunk: Chunk) -> npt.NDArray[np.bool_]:
    """Only rows of the side mapping can have it."""
    return np.zeros(CHUNK_ROWS, np.bool_)


def slots_of(
    replicas: npt.NDArray[np.int32], brokers: int | npt.NDArray[np.int32]
) -> npt.NDArray[np.uint8]:
    """For each row of `replicas` [slot, row], the bits of the slots that hold its broker."""
    hits = (replicas == brokers).view(np.uint8)
    bits: npt.NDArray[np.uint8] = np.bitwise_or.reduce(hits * _SLOT_BITS[: len(replicas)], axis=0)
    return bits


_EMPTY = Chunk.empty()
Places = npt.NDArray[np.intp]
# Some rows of one chunk: its number, where they stand among all, and where in the chunk.
Group = tuple[int, Places | slice, Places]


def by_chunk(rows: Rows) -> Iterator[Group]:
    """Group `rows` by chunk."""
    if not len(rows):
        return
    numbers = rows >> CHUNK_BITS
    if bool(np.all(numbers[1:] >= numbers[:-1])):
        order = None
    else:
        order = np.argsort(numbers.astype(np.int16, casting="unsafe"), kind="stable")
        rows, numbers = rows[order], numbers[order]
    places = (rows & ROW_MASK).astype(np.intp)  # a third of the time of narrow ones, as an index
    borders = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(rows)]
    for start, end in pairwise(borders):
        here = slice(start, end) if order is None else order[start:end]
        yield int(numbers[start]), here, places[start:end]
