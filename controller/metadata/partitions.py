"""Partition state in columns, as a value with a cheap successor.

Rows live in immutable chunks; a `TableDraft` copies the chunks that it touches and shares the
rest. Columns hold the common shape. A row outside it lives in the chunk's `side` mapping, behind
the same views: more than eight replicas, a running reassignment, eligible leader replicas, or an
in-sync replica set (ISR) that is not in replica order. Which row a partition has is the business
of `controller.metadata.topics`; rows mean nothing outside one process.

Decides nothing about partitions: rules are in `controller.metadata.election`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from uuid import UUID

import numpy as np
import numpy.typing as npt

from wire.primitives import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

__all__ = [
    "CHUNK_ROWS",
    "COLUMN_REPLICAS_MAX",
    "NO_LEADER",
    "RECOVERED",
    "RECOVERING",
    "UNCHANGED",
    "Chunk",
    "PartitionColumns",
    "PartitionState",
    "PartitionTable",
    "Rows",
    "TableDraft",
    "by_chunk",
]

Rows = npt.NDArray[np.int32]

_CHUNK_BITS = 12
CHUNK_ROWS = 1 << _CHUNK_BITS  # copying one costs microseconds, scanning a million rows 250 steps
_ROW_MASK = CHUNK_ROWS - 1
COLUMN_REPLICAS_MAX = 8  # the ISR is a mask of one byte
_DIRECTORIES_MAX = 1 << 16
NO_LEADER = -1
_NOBODY = -1  # fills unused replica slots; never a broker id
_BITS_SET = np.array([mask.bit_count() for mask in range(256)], np.uint8)
RECOVERED = 0
UNCHANGED = -2  # a leader that a PartitionChange record leaves as it is
RECOVERING = 1  # elected from outside the ISR, and has not yet said that it recovered


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
        assert len(self.directories) == len(self.replicas), self


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """`CHUNK_ROWS` rows. A free row has partition -1; one kept in `side` has no replicas here.

    `topic_id` to `directories` change when replicas move, the others at every change: a draft
    copies the former only when it must.
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
    side: dict[int, PartitionState]  # by row within the chunk

    @classmethod
    def empty(cls) -> "Chunk":
        return cls(
            topic_id=np.zeros(CHUNK_ROWS, "V16"),
            partition=np.full(CHUNK_ROWS, -1, np.int32),
            replicas=np.full((1, CHUNK_ROWS), _NOBODY, np.int32),
            directories=np.zeros((1, CHUNK_ROWS), np.uint16),
            isr=np.zeros(CHUNK_ROWS, np.uint8),
            leader=np.full(CHUNK_ROWS, NO_LEADER, np.int32),
            leader_epoch=np.zeros(CHUNK_ROWS, np.int32),
            partition_epoch=np.zeros(CHUNK_ROWS, np.int32),
            recovering=np.zeros(CHUNK_ROWS, np.bool_),
            side={},
        )

    def with_own_state(self) -> "Chunk":
        return replace(
            self,
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
        more = slots - self.replicas.shape[0]
        assert more > 0, (slots, self.replicas.shape)
        return replace(
            self,
            replicas=np.pad(self.replicas, ((0, more), (0, 0)), constant_values=_NOBODY),
            directories=np.pad(self.directories, ((0, more), (0, 0))),
        )

    def freeze(self) -> None:
        for column in (self.topic_id, self.partition, self.replicas, self.directories):
            column.setflags(write=False)
        for column in (self.leader, self.leader_epoch, self.partition_epoch):
            column.setflags(write=False)
        self.isr.setflags(write=False)
        self.recovering.setflags(write=False)

    def is_member(self, broker_id: int) -> npt.NDArray[np.bool_]:
        """For each row, is the broker an in-sync replica?"""
        hits: npt.NDArray[np.bool_] = (self.slots_of(broker_id) & self.isr) != 0
        return hits

    def slots_of(self, broker_id: int) -> npt.NDArray[np.uint8]:
        """For each row, the bits of the slots that hold the broker."""
        slots = np.zeros(CHUNK_ROWS, np.uint8)
        for slot, brokers in enumerate(self.replicas):
            slots |= (brokers == broker_id).view(np.uint8) << np.uint8(slot)
        return slots


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionColumns:
    """Some rows, gathered: column n of `replicas` and item n of the others belong together.

    A row of the side mapping has -1 in `replicas[0]`, and nothing else here means anything for it.
    """

    topic_id: npt.NDArray[np.void]
    partition: npt.NDArray[np.int32]
    replicas: npt.NDArray[np.int32]
    directories: npt.NDArray[np.uint16]
    isr: npt.NDArray[np.uint8]
    leader: npt.NDArray[np.int32]
    leader_epoch: npt.NDArray[np.int32]
    partition_epoch: npt.NDArray[np.int32]

    @property
    def is_columnar(self) -> npt.NDArray[np.bool_]:
        hits: npt.NDArray[np.bool_] = self.replicas[0] != _NOBODY
        return hits


def _no_rows() -> Rows:
    return np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionTable:
    """Every partition of an image, by row."""

    chunks: Sequence[Chunk] = ()
    end_row: int = 0  # rows at or above it have never been used
    free_rows: Rows = field(default_factory=_no_rows)  # a stack: the last is reused first
    directories: Sequence[UUID] = (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST)

    def __len__(self) -> int:
        return self.end_row - len(self.free_rows)

    def state(self, row: int) -> PartitionState:
        chunk, place = self.chunks[row >> _CHUNK_BITS], row & _ROW_MASK
        beside = chunk.side.get(place)
        if beside is not None:
            return beside
        replicas = tuple(b for b in chunk.replicas[:, place].tolist() if b != _NOBODY)
        assert replicas, f"row {row} is free"
        mask = int(chunk.isr[place])
        numbers = chunk.directories[: len(replicas), place].tolist()
        return PartitionState(
            replicas=replicas,
            isr=tuple(b for slot, b in enumerate(replicas) if mask >> slot & 1),
            leader=int(chunk.leader[place]),
            leader_epoch=int(chunk.leader_epoch[place]),
            partition_epoch=int(chunk.partition_epoch[place]),
            leader_recovery_state=RECOVERING if chunk.recovering[place] else RECOVERED,
            directories=tuple(self.directories[number] for number in numbers),
        )

    def place(self, row: int) -> tuple[UUID, int] | None:
        """The topic id and partition index of a row; None for a free one."""
        chunk, place = self.chunks[row >> _CHUNK_BITS], row & _ROW_MASK
        index = int(chunk.partition[place])
        return None if index < 0 else (UUID(bytes=bytes(chunk.topic_id[place])), index)

    def rows_with_replica(self, broker_id: int) -> Rows:
        return self._rows_where(
            lambda chunk: chunk.slots_of(broker_id) != 0,
            lambda state: broker_id in state.replicas,
        )

    def rows_with_isr_member(self, broker_id: int) -> Rows:
        return self._rows_where(
            lambda chunk: chunk.is_member(broker_id),
            lambda state: broker_id in state.isr,
        )

    def rows_led_by(self, broker_id: int) -> Rows:
        return self._rows_where(
            lambda chunk: (chunk.leader == broker_id) & (chunk.replicas[0] != _NOBODY),
            lambda state: state.leader == broker_id,
        )

    def rows_without_leader(self) -> Rows:
        return self.rows_led_by(NO_LEADER)

    def rows_under_replicated(self) -> Rows:
        """Rows that have more replicas than in-sync replicas."""
        return self._rows_where(
            lambda chunk: (chunk.replicas != _NOBODY).sum(axis=0) > _BITS_SET[chunk.isr],
            lambda state: len(state.replicas) > len(state.isr),
        )

    def rows_with_eligible_leaders(self) -> Rows:
        """Rows with eligible leader replicas, or a last known one, outside the ISR."""
        return self._rows_where(
            lambda chunk: np.zeros(CHUNK_ROWS, np.bool_),
            lambda state: bool(state.eligible_leader_replicas or state.last_known_elr),
        )

    def rows_eligible(self, broker_id: int) -> Rows:
        """Rows that name the broker among their eligible leader replicas."""
        return self._rows_where(
            lambda chunk: np.zeros(CHUNK_ROWS, np.bool_),
            lambda state: broker_id in state.eligible_leader_replicas,
        )

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
            found.append(np.flatnonzero(hits) + (number << _CHUNK_BITS))
        return np.concatenate(found).astype(np.int32) if found else _no_rows()

    def columns(self, rows: Rows) -> PartitionColumns:
        """The columns of `rows`, in their order."""
        count = len(rows)
        width = max((chunk.replicas.shape[0] for chunk in self.chunks), default=1)
        gathered = PartitionColumns(
            topic_id=np.zeros(count, "V16"),
            partition=np.empty(count, np.int32),
            replicas=np.full((width, count), _NOBODY, np.int32),
            directories=np.zeros((width, count), np.uint16),
            isr=np.empty(count, np.uint8),
            leader=np.empty(count, np.int32),
            leader_epoch=np.empty(count, np.int32),
            partition_epoch=np.empty(count, np.int32),
        )
        for number, here, places in by_chunk(rows):
            chunk = self.chunks[number]
            slots = chunk.replicas.shape[0]
            gathered.topic_id[here] = chunk.topic_id[places]
            gathered.partition[here] = chunk.partition[places]
            gathered.replicas[:slots, here] = chunk.replicas[:, places]
            gathered.directories[:slots, here] = chunk.directories[:, places]
            gathered.isr[here] = chunk.isr[places]
            gathered.leader[here] = chunk.leader[places]
            gathered.leader_epoch[here] = chunk.leader_epoch[places]
            gathered.partition_epoch[here] = chunk.partition_epoch[places]
        return gathered


Places = npt.NDArray[np.intp] | slice


def by_chunk(rows: Rows) -> Iterator[tuple[int, Places, Rows]]:
    """Group `rows` by chunk: chunk number, where in `rows` they stand, rows within the chunk."""
    if not len(rows):
        return
    numbers = rows >> _CHUNK_BITS
    if bool(np.all(numbers[1:] >= numbers[:-1])):
        order = None
    else:
        order = np.argsort(numbers.astype(np.int16, casting="unsafe"), kind="stable")
        rows, numbers = rows[order], numbers[order]
    borders = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(rows)]
    for start, end in pairwise(borders):
        here: Places = slice(start, end) if order is None else order[start:end]
        yield int(numbers[start]), here, rows[start:end] & _ROW_MASK


class TableDraft:
    """A successor of a table in the making. `finish` gives it out; the draft is then spent."""

    def __init__(self, table: PartitionTable) -> None:
        self._chunks = list(table.chunks)
        self._own_state: set[int] = set()
        self._own_placement: set[int] = set()
        self._end_row = table.end_row
        self._free_before = table.free_rows
        self._free: list[int] | None = None  # copied when first needed
        self._directories = list(table.directories)
        self._directory_numbers: dict[UUID, int] | None = None

    def view(self) -> PartitionTable:
        """The table as it is by now; the next change of the draft shows in it."""
        return PartitionTable(
            chunks=self._chunks,
            end_row=self._end_row,
            directories=self._directories,
        )

    def insert(self, topic_id: UUID, partition: int, state: PartitionState) -> int:
        """Put a new partition into a free row, and say which."""
        free = self._free_rows()
        if free:
            row = free.pop()
        else:
            row = self._end_row
            self._end_row += 1
            if row >> _CHUNK_BITS == len(self._chunks):
                self._own_state.add(len(self._chunks))
                self._own_placement.add(len(self._chunks))
                self._chunks.append(Chunk.empty())
        chunk, place = self._movable(row), row & _ROW_MASK
        chunk.topic_id[place] = np.void(topic_id.bytes)
        chunk.partition[place] = partition
        self._write(row, state)
        return row

    def remove(self, row: int) -> None:
        chunk, place = self._movable(row), row & _ROW_MASK
        assert chunk.partition[place] >= 0, f"row {row} is free already"
        chunk.partition[place] = -1
        self._clear(chunk, place)
        self._free_rows().append(row)

    def replace(self, row: int, *, before: PartitionState, after: PartitionState) -> None:
        """Write a new state of the partition in `row`, whatever its shape."""
        chunk, place = self._chunks[row >> _CHUNK_BITS], row & _ROW_MASK
        if (
            place not in chunk.side
            and after.replicas == before.replicas
            and after.directories == before.directories
            and _fits_columns(after)
        ):
            self._write_state(self._writable(row), place, after)
        else:
            self._movable(row)
            self._write(row, after)

    def change(
        self,
        rows: Rows,
        *,
        isr: npt.NDArray[np.uint8],
        leader: npt.NDArray[np.int32],
        recovery_state: npt.NDArray[np.int8],
    ) -> None:
        """A change of each row, all columnar and all different.

        A leader of UNCHANGED and a negative recovery state stay. Epochs move as for a
        PartitionChange record.
        """
        for number, here, places in by_chunk(rows):
            chunk = self._writable(number << _CHUNK_BITS)
            leaders = leader[here]
            elected = leaders != UNCHANGED
            chunk.isr[places] = isr[here]
            chunk.leader[places] = np.where(elected, leaders, chunk.leader[places])
            chunk.leader_epoch[places] += elected
            chunk.partition_epoch[places] += 1
            recovery = recovery_state[here]
            if np.any(recovery >= 0):
                told = chunk.recovering[places]
                chunk.recovering[places] = np.where(recovery >= 0, recovery == RECOVERING, told)

    def finish(self) -> PartitionTable:
        for number in sorted(self._own_state | self._own_placement):
            self._chunks[number].freeze()
        free = self._free_before if self._free is None else np.array(self._free, np.int32)
        return PartitionTable(
            chunks=tuple(self._chunks),
            end_row=self._end_row,
            free_rows=free,
            directories=tuple(self._directories),
        )

    def _free_rows(self) -> list[int]:
        if self._free is None:
            self._free = self._free_before.tolist()
        return self._free

    def _writable(self, row: int) -> Chunk:
        number = row >> _CHUNK_BITS
        if number not in self._own_state:
            self._own_state.add(number)
            self._chunks[number] = self._chunks[number].with_own_state()
        return self._chunks[number]

    def _movable(self, row: int) -> Chunk:
        number = row >> _CHUNK_BITS
        self._writable(row)
        if number not in self._own_placement:
            self._own_placement.add(number)
            self._chunks[number] = self._chunks[number].with_own_placement()
        return self._chunks[number]

    def _write(self, row: int, state: PartitionState) -> None:
        number, place = row >> _CHUNK_BITS, row & _ROW_MASK
        chunk = self._chunks[number]
        self._clear(chunk, place)
        directories = self._numbers_of(state.directories)
        if directories is None or not _fits_columns(state):
            chunk.side[place] = state
            return
        slots = len(state.replicas)
        if slots > chunk.replicas.shape[0]:
            chunk = self._chunks[number] = chunk.widened(slots)
        chunk.replicas[:slots, place] = state.replicas
        chunk.directories[:slots, place] = directories
        self._write_state(chunk, place, state)

    @staticmethod
    def _write_state(chunk: Chunk, place: int, state: PartitionState) -> None:
        chunk.isr[place] = sum(1 << state.replicas.index(broker) for broker in state.isr)
        chunk.leader[place] = state.leader
        chunk.leader_epoch[place] = state.leader_epoch
        chunk.partition_epoch[place] = state.partition_epoch
        chunk.recovering[place] = state.leader_recovery_state == RECOVERING

    @staticmethod
    def _clear(chunk: Chunk, place: int) -> None:
        chunk.side.pop(place, None)
        chunk.replicas[:, place] = _NOBODY
        chunk.isr[place] = 0

    def _numbers_of(self, directories: tuple[UUID, ...]) -> list[int] | None:
        """Their indexes, new ones added; None if the list of directories is full."""
        if self._directory_numbers is None:
            self._directory_numbers = {id_: n for n, id_ in enumerate(self._directories)}
        numbers = []
        for directory in directories:
            number = self._directory_numbers.get(directory)
            if number is None:
                number = len(self._directories)
                if number == _DIRECTORIES_MAX:
                    return None
                self._directory_numbers[directory] = number
                self._directories.append(directory)
            numbers.append(number)
        return numbers


def _fits_columns(state: PartitionState) -> bool:
    if state.adding_replicas or state.removing_replicas:
        return False
    if state.eligible_leader_replicas or state.last_known_elr:
        return False
    if state.leader_recovery_state not in (RECOVERED, RECOVERING):
        return False
    if not 0 < len(state.replicas) <= COLUMN_REPLICAS_MAX or min(state.replicas) < 0:
        return False
    members = frozenset(state.isr)
    if len(members) < len(state.isr) or len(frozenset(state.replicas)) < len(state.replicas):
        return False  # never written by a sane controller, but readable
    return tuple(broker for broker in state.replicas if broker in members) == state.isr
