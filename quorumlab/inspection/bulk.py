"""Lines about many partition records at once: the same as one by one, ten times as fast.

A batch is decoded into columns; lists and ids, of which few are different, are put into words once.
What lies between blocks is told one by one. A batch has one version of a record type: a controller
writes it under one metadata.version.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, compress
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from quorumlab.inspection.batches import Batch
from quorumlab.inspection.entries import Entry, entries_at
from quorumlab.inspection.selection import Selection
from quorumlab.inspection.telling import TopicNames, json_head, json_text, line_head
from wire.metadata_records import LEADER_UNCHANGED, RECOVERY_UNCHANGED
from wire.partition_block import Change, decode
from wire.partition_columns import NewPartitions, PartitionBlock, PartitionChanges, take
from wire.primitives import uuid_text
from wire.record_json import DIRECTORIES_SINCE, json_of_rows

__all__ = ["BulkLines"]

_ROWS_MIN = 64  # of a batch; below, one by one is as fast
_KEPT_MAX = 1 << 16  # texts of each kind


class BulkLines:
    """Keeps what it has put into words."""

    def __init__(
        self,
        names: TopicNames,
        selection: Selection,
        line: Callable[[Entry], str | None],
        *,
        is_json: bool,
    ) -> None:
        """`line` tells one record, if it is wanted."""
        self._names = names
        self._selection = selection
        self._line = line
        self._form: type[_JsonForm | _TextForm] = _JsonForm if is_json else _TextForm
        self._lists: dict[tuple[int, ...], str] = {}
        self._ids: dict[bytes, str] = {}

    def lines(self, batch: Batch) -> list[str] | None:
        """The lines of a batch; None if it is better told record by record."""
        header = batch.header
        if header.record_count < _ROWS_MIN or header.is_control:
            return None
        try:
            changes = list(decode(batch.content))
        except ValueError:  # whatever a reader of batches or records refuses
            return None
        if not any(isinstance(change, PartitionBlock) for change in changes):
            return None
        lines: list[str] = []
        starts = list(accumulate(map(_record_count, changes), initial=0))[:-1]
        for change, entry in zip(changes, entries_at(batch, starts), strict=True):
            if isinstance(change, PartitionBlock):
                lines += self._of_block(change, entry)
                continue
            self._names.learn(entry)
            line = self._line(entry)
            if line is not None:
                lines.append(line)
        return lines

    def _of_block(self, block: PartitionBlock, first: Entry) -> Iterable[str]:
        """`first` is the first record of the block."""
        offsets: Iterable[int] = range(first.offset, first.offset + len(block))
        taken = self._selection.rows(
            block, first, lambda topic_id: self._names.name_of(self._id(topic_id))
        )
        if self._selection.condition is not None and taken.any():
            judged = map(self._selection.condition, self._facts(block, first))
            taken &= np.fromiter(judged, np.bool_, len(block))
        if not taken.all():
            block = take(block, np.flatnonzero(taken))
            offsets = compress(offsets, taken.tolist())
        form = self._form(first, self._names)
        where = (offsets, map(self._id, block.topic_ids.tolist()), block.partition_ids.tolist())
        isr = self._int_lists(block.isr, block.isr_counts)
        match block:
            case PartitionChanges():
                states = block.recovery_states.tolist()
                return map(form.change, *where, isr, block.leaders.tolist(), states)
            case NewPartitions():
                replicas = self._int_lists(block.replicas, block.replica_counts)
                epochs = (block.leader_epochs.tolist(), block.partition_epochs.tolist())
                ids = self._id_lists(block)
                return map(form.new, *where, replicas, isr, block.leaders.tolist(), *epochs, ids)

    def _facts(self, block: PartitionBlock, first: Entry) -> Iterator[Mapping[str, Any]]:
        """As `TopicNames.facts` has them, for every row."""
        same = {
            "epoch": first.epoch,
            "timestamp": first.timestamp_ms,
            "type": first.type,
            "broker": None,
        }
        for row, data in enumerate(json_of_rows(block, first.version, self._id)):
            data |= same
            data["offset"], data["partition"] = first.offset + row, data["partitionId"]
            data["topic"] = self._names.name_of(data["topicId"])
            yield data

    def _int_lists(self, matrix: NDArray[Any], counts: NDArray[Any]) -> Iterator[str | None]:
        for values, count in zip(matrix.tolist(), counts.tolist(), strict=True):
            yield None if count < 0 else self._list(tuple(values[:count]))

    def _id_lists(self, block: NewPartitions) -> Iterator[Sequence[str]]:
        counts = block.directory_counts.tolist()
        for values, count in zip(block.directories.tolist(), counts, strict=True):
            yield [self._id(value) for value in values[:count]]

    def _list(self, values: tuple[int, ...]) -> str:
        text = self._lists.get(values)
        if text is None:
            text = f"[{','.join(map(str, values))}]"
            if len(self._lists) < _KEPT_MAX:
                self._lists[values] = text
        return text

    def _id(self, value: bytes) -> str:
        text = self._ids.get(value)
        if text is None:
            text = uuid_text(UUID(bytes=value))
            if len(self._ids) < _KEPT_MAX:
                self._ids[value] = text
        return text


def _record_count(change: Change) -> int:
    return len(change) if isinstance(change, PartitionBlock) else 1


# --- how a row is put: lists come as `[1,2,3]`, which is JSON and text ------------------------


class _TextForm:
    def __init__(self, first: Entry, names: TopicNames) -> None:
        self._head = line_head(0, first.epoch, first.timestamp_ms, first.type)[8:]
        self._names = names
        self._has_directories = first.version >= DIRECTORIES_SINCE

    def _start(self, offset: int, id_: str, index: int) -> str:
        name = self._names.name_of(id_)
        about = f"partitionId={index} topicId={id_}" if name is None else f"{name}-{index}"
        return f"{offset:>8}{self._head} {about}"

    def change(
        self, offset: int, id_: str, index: int, isr: str | None, leader: int, recovery: int
    ) -> str:
        text = self._start(offset, id_, index)
        if isr is not None:
            text = f"{text} isr={isr}"
        if leader != LEADER_UNCHANGED:
            text = f"{text} leader={leader}"
        return text if recovery == RECOVERY_UNCHANGED else f"{text} leaderRecoveryState={recovery}"

    def new(
        self,
        offset: int,
        id_: str,
        index: int,
        replicas: str,
        isr: str,
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        directories: Sequence[str],
    ) -> str:
        text = (
            f"{self._start(offset, id_, index)} replicas={replicas} isr={isr} removingReplicas=[]"
            f" addingReplicas=[] leader={leader} leaderEpoch={leader_epoch}"
            f" partitionEpoch={partition_epoch}"
        )
        return f"{text} directories=[{','.join(directories)}]" if self._has_directories else text


class _JsonForm:
    def __init__(self, first: Entry, names: TopicNames) -> None:
        self._head = json_head(first)
        self._names = names
        self._has_directories = first.version >= DIRECTORIES_SINCE

    def _line(self, offset: int, id_: str, data: str) -> str:
        name = self._names.name_of(id_)
        topic = "" if name is None else f',"topic":{json_text(name)}'
        return f'{{"offset":{offset}{self._head}{{{data}}}{topic}}}'

    def change(
        self, offset: int, id_: str, index: int, isr: str | None, leader: int, recovery: int
    ) -> str:
        data = f'"partitionId":{index},"topicId":"{id_}"'
        if isr is not None:
            data = f'{data},"isr":{isr}'
        if leader != LEADER_UNCHANGED:
            data = f'{data},"leader":{leader}'
        if recovery != RECOVERY_UNCHANGED:
            data = f'{data},"leaderRecoveryState":{recovery}'
        return self._line(offset, id_, data)

    def new(
        self,
        offset: int,
        id_: str,
        index: int,
        replicas: str,
        isr: str,
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        directories: Sequence[str],
    ) -> str:
        data = (
            f'"partitionId":{index},"topicId":"{id_}","replicas":{replicas},"isr":{isr},'
            f'"removingReplicas":[],"addingReplicas":[],"leader":{leader},'
            f'"leaderEpoch":{leader_epoch},"partitionEpoch":{partition_epoch}'
        )
        if self._has_directories:
            ids = '","'.join(directories)
            data = f'{data},"directories":["{ids}"]' if directories else f'{data},"directories":[]'
        return self._line(offset, id_, data)
