"""The successors of a mapping and of a partition table in the making.

A mapping is copied when it is first changed: most batches leave most mappings of an image alone,
and these are shared with the image before. The chunks of a table that are changed are copied once,
at first without the columns that say where replicas lie, which most changes leave alone. Decides
nothing but where a row goes and which of its two shapes it has.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.metadata import partitions

__all__ = ["MappingDraft", "TableDraft"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class MappingDraft(Generic[_Key, _Value]):
    """`now` may be given out once nothing is changed any more."""

    __slots__ = ("_after", "_before", "changed")

    def __init__(self, before: Mapping[_Key, _Value]) -> None:
        self._before = before
        self._after: dict[_Key, _Value] | None = None
        self.changed: dict[_Key, None] = {}  # an ordered set: what was put or removed

    @property
    def now(self) -> Mapping[_Key, _Value]:
        return self._before if self._after is None else self._after

    def put(self, key: _Key, value: _Value) -> None:
        self._own()[key] = value
        self.changed[key] = None

    def remove(self, key: _Key) -> None:
        if key in self.now:
            del self._own()[key]
        self.changed[key] = None

    def _own(self) -> dict[_Key, _Value]:
        if self._after is None:
            self._after = dict(self._before)
        return self._after


_ONE_A_ROW = tuple(name for name in partitions.COLUMNS if name not in ("replicas", "directories"))
DIRECTORIES_MAX = 1 << 16  # columns hold their numbers in two bytes


class TableDraft:
    """A successor of a table in the making. `finish` gives it out; the draft is then spent."""

    def __init__(self, table: partitions.PartitionTable) -> None:
        self._chunks = list(table.chunks)
        self._own_state: set[int] = set()
        self._own_placement: set[int] = set()
        self._end_row = table.end_row
        self._free_before = table.free_rows
        self._free: list[int] | None = None  # copied when first needed
        self._directories = list(table.directories)
        self._directory_numbers: dict[UUID, int] | None = None

    def view(self) -> partitions.PartitionTable:
        """The table as it is by now; the next change of the draft shows in it."""
        return partitions.PartitionTable(
            chunks=self._chunks, end_row=self._end_row, directories=self._directories
        )

    def insert(self, topic_id: UUID, partition: int, state: partitions.PartitionState) -> int:
        """Put a new partition into a free row, and say which."""
        row = int(self._take_rows(1)[0])
        chunk, place = self._movable(row), row & partitions.ROW_MASK
        chunk.topic_id[place] = np.void(topic_id.bytes)
        chunk.partition[place] = partition
        self._write(row, state)
        return row

    def insert_many(self, new: partitions.PartitionColumns) -> partitions.Rows:
        """Put new partitions of the common shape into free rows, and say which.

        The numbers of `new.directories` are those of `directory_numbers`.
        """
        rows = self._take_rows(len(new.partition))
        slots = new.replicas.shape[0]
        for number, here, places in partitions.by_chunk(rows):
            chunk = self._movable(number << partitions.CHUNK_BITS)
            if slots > chunk.replicas.shape[0]:
                chunk = self._chunks[number] = chunk.widened(slots)
            chunk.replicas[:slots, places] = new.replicas[:, here]
            chunk.directories[:slots, places] = new.directories[:, here]
            for name in _ONE_A_ROW:
                getattr(chunk, name)[places] = getattr(new, name)[here]
        return rows

    def remove(self, row: int) -> None:
        chunk, place = self._movable(row), row & partitions.ROW_MASK
        assert chunk.partition[place] >= 0, f"row {row} is free already"
        chunk.partition[place] = -1
        self._clear(chunk, place)
        self._free_rows().append(row)

    def replace(
        self, row: int, *, before: partitions.PartitionState, after: partitions.PartitionState
    ) -> None:
        """Write a new state of the partition in `row`, whatever its shape."""
        chunk, place = self._chunks[row >> partitions.CHUNK_BITS], row & partitions.ROW_MASK
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
        rows: partitions.Rows,
        *,
        isr: npt.NDArray[np.uint8],
        leader: npt.NDArray[np.int32],
        recovery_state: npt.NDArray[np.int8],
    ) -> None:
        """A change of each row, all columnar and all different.

        A leader of UNCHANGED and a negative recovery state stay. Epochs move as for a
        PartitionChange record.
        """
        for number, here, places in partitions.by_chunk(rows):
            chunk = self._writable(number << partitions.CHUNK_BITS)
            chunk.isr[places] = isr[here]
            chunk.partition_epoch[places] += 1
        elected = np.flatnonzero(leader != partitions.UNCHANGED)
        for number, here, places in partitions.by_chunk(rows[elected]):
            chunk = self._chunks[number]
            chunk.leader[places] = leader[elected[here]]
            chunk.leader_epoch[places] += 1
        told = np.flatnonzero(recovery_state >= 0)
        for number, here, places in partitions.by_chunk(rows[told]):
            self._chunks[number].recovering[places] = (
                recovery_state[told[here]] == partitions.RECOVERING
            )

    def finish(self) -> partitions.PartitionTable:
        for number in sorted(self._own_state | self._own_placement):
            self._chunks[number].freeze()
        free = self._free_before if self._free is None else np.array(self._free, np.int32)
        return partitions.PartitionTable(
            chunks=tuple(self._chunks),
            end_row=self._end_row,
            free_rows=free,
            directories=tuple(self._directories),
        )

    def _take_rows(self, count: int) -> partitions.Rows:
        """Free rows first, then rows that were never used."""
        free = self._free_rows()
        kept = max(0, len(free) - count)
        reused = free[kept:]
        del free[kept:]
        fresh = range(self._end_row, self._end_row + count - len(reused))
        self._end_row = fresh.stop
        while self._end_row > len(self._chunks) << partitions.CHUNK_BITS:
            self._own_state.add(len(self._chunks))
            self._own_placement.add(len(self._chunks))
            self._chunks.append(partitions.Chunk.empty())
        return np.array([*reversed(reused), *fresh], np.int32)

    def _free_rows(self) -> list[int]:
        if self._free is None:
            self._free = self._free_before.tolist()
        return self._free

    def _writable(self, row: int) -> partitions.Chunk:
        number = row >> partitions.CHUNK_BITS
        if number not in self._own_state:
            self._own_state.add(number)
            self._chunks[number] = self._chunks[number].with_own_state()
        return self._chunks[number]

    def _movable(self, row: int) -> partitions.Chunk:
        number = row >> partitions.CHUNK_BITS
        self._writable(row)
        if number not in self._own_placement:
            self._own_placement.add(number)
            self._chunks[number] = self._chunks[number].with_own_placement()
        return self._chunks[number]

    def _write(self, row: int, state: partitions.PartitionState) -> None:
        number, place = row >> partitions.CHUNK_BITS, row & partitions.ROW_MASK
        chunk = self._chunks[number]
        self._clear(chunk, place)
        directories = self.directory_numbers(state.directories)
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
    def _write_state(chunk: partitions.Chunk, place: int, state: partitions.PartitionState) -> None:
        chunk.isr[place] = sum(1 << state.replicas.index(broker) for broker in state.isr)
        chunk.leader[place] = state.leader
        chunk.leader_epoch[place] = state.leader_epoch
        chunk.partition_epoch[place] = state.partition_epoch
        chunk.recovering[place] = state.leader_recovery_state == partitions.RECOVERING

    @staticmethod
    def _clear(chunk: partitions.Chunk, place: int) -> None:
        chunk.side.pop(place, None)
        chunk.replicas[:, place] = partitions.NOBODY
        chunk.isr[place] = 0

    @property
    def directories(self) -> Sequence[UUID]:
        return self._directories

    def directory_numbers(self, directories: Iterable[UUID]) -> list[int] | None:
        """Their indexes in the table's list, new ones added; None if the list is full."""
        if self._directory_numbers is None:
            self._directory_numbers = {id_: n for n, id_ in enumerate(self._directories)}
        numbers = []
        for directory in directories:
            number = self._directory_numbers.get(directory)
            if number is None:
                number = len(self._directories)
                if number == DIRECTORIES_MAX:
                    return None
                self._directory_numbers[directory] = number
                self._directories.append(directory)
            numbers.append(number)
        return numbers


def _fits_columns(state: partitions.PartitionState) -> bool:
    if state.adding_replicas or state.removing_replicas:
        return False
    if state.eligible_leader_replicas or state.last_known_elr:
        return False
    if state.leader_recovery_state not in (partitions.RECOVERED, partitions.RECOVERING):
        return False
    if not 0 < len(state.replicas) <= partitions.COLUMN_REPLICAS_MAX or min(state.replicas) < 0:
        return False
    members = frozenset(state.isr)
    if len(members) < len(state.isr) or len(frozenset(state.replicas)) < len(state.replicas):
        return False  # never written by a sane controller, but readable
    return tuple(broker for broker in state.replicas if broker in members) == state.isr
