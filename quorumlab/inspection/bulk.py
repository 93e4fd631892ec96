"""Text about many partition records at once: the same as one by one, many times as fast.

A batch is decoded into columns. A value is put into words once for all rows that have it, and the
words of all rows are joined at once. Records between blocks are told one by one. A batch has one
version of a record type: a controller writes it under one metadata.version.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from quorumlab.inspection.batches import Batch
from quorumlab.inspection.entries import (
    Entry,
    TopicNames,
    entries_at,
    json_head,
    json_text,
    line_head,
)
from quorumlab.inspection.selection import Condition, Flags, Selection
from wire.metadata_records import LEADER_UNCHANGED, RECOVERY_UNCHANGED
from wire.partition_block import decode, record_count
from wire.partition_columns import (
    DIRECTORIES_SINCE,
    REPLICAS_MAX,
    TOPIC_ID,
    NewPartitions,
    PartitionBlock,
    PartitionChanges,
    take,
)
from wire.primitives import uuid_text
from wire.record_json import json_of_rows

__all__ = ["BulkText"]

_ROWS_MIN = 64  # of a batch; below, one by one is as fast
_KEPT_MAX = 1 << 14  # words of each field
_RESTS = [f"{number:03}" for number in range(1000)]  # the last digits of an offset
_LIST = Struct(f"={REPLICAS_MAX}ib")  # a row of a matrix, and how many of it count
_COLUMNS: Mapping[str, Sequence[str]] = {
    "partition": ("partition_ids",),
    "partitionId": ("partition_ids",),
    "topic": ("topic_ids",),
    "topicId": ("topic_ids",),
    "replicas": ("replicas", "replica_counts"),
    "isr": ("isr", "isr_counts"),
    "leader": ("leaders",),
    "leaderEpoch": ("leader_epochs",),
    "partitionEpoch": ("partition_epochs",),
    "leaderRecoveryState": ("recovery_states",),
    "directories": ("directories", "directory_counts"),
}  # by the fields whose values they hold; other fields have one value in all rows of a block

_Column = NDArray[Any]
_Words = str | Sequence[str]  # of all rows, or of each


class BulkText:
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
        self._form = _JSON if is_json else _TEXT
        self._known: defaultdict[Hashable, dict[Any, str]] = defaultdict(dict)
        self._ids: dict[bytes, str] = {}

    def text(self, batch: Batch) -> str | None:
        """The lines of a batch, each with its end; None if it is better told record by record."""
        header = batch.header
        if header.record_count < _ROWS_MIN or header.is_control:
            return None
        try:
            changes = list(decode(batch.content))
        except ValueError:  # whatever a reader of batches or records refuses
            return None
        if not any(isinstance(change, PartitionBlock) for change in changes):
            return None
        pieces: list[str] = []
        counts = (record_count((change,)) for change in changes)
        starts = list(accumulate(counts, initial=0))[:-1]
        for change, entry in zip(changes, entries_at(batch, starts), strict=True):
            if isinstance(change, PartitionBlock):
                pieces.append(self._of_block(change, entry))
                continue
            self._names.learn(entry)
            line = self._line(entry)
            if line is not None:
                pieces += (line, "\n")
        return "".join(pieces)

    def _of_block(self, block: PartitionBlock, first: Entry) -> str:
        """`first` is the first record of the block."""
        rows = np.flatnonzero(self._selection.rows(block, first, self._topic))
        if self._selection.condition is not None and len(rows):
            flags = self._judged(self._selection.condition, take(block, rows), first, rows)
            rows = rows[flags]
        if not len(rows):
            return ""
        if len(rows) < len(block):
            block = take(block, rows)
        form, head, ids = self._form, self._form.head(first), block.topic_ids.tolist()
        about = {id_: form.about(head, self._id(id_), self._topic(id_)) for id_ in set(ids)}
        before, behind, end = (
            about[ids[0]] if len(about) == 1 else zip(*map(about.__getitem__, ids), strict=True)
        )
        index = _put(block.partition_ids.tolist(), str, self._known["partitionId"])
        fields = self._fields(block, first.version)
        thousands, rest = self._offsets(rows + first.offset)
        return _joined(len(block), thousands, rest, before, index, behind, *fields, end)

    def _offsets(self, offsets: _Column) -> tuple[_Words, _Words]:
        """Splits offsets in two parts; the second ones are the same thousand everywhere."""
        form = self._form
        if offsets[0] < len(_RESTS):
            return [form.offset.format(each) for each in offsets.tolist()], ""
        thousands, rests = np.divmod(offsets, len(_RESTS))
        rest = [*map(_RESTS.__getitem__, rests.tolist())]
        return _put(thousands.tolist(), form.thousands.format, self._known["thousands"]), rest

    def _fields(self, block: PartitionBlock, version: int) -> Iterator[_Words]:
        """Yields the fields behind the partition and its topic, in the order of the record."""
        form = self._form
        match block:
            case PartitionChanges():
                yield self._lists(isr=(block.isr, block.isr_counts))
                yield self._numbers("leader", block.leaders, absent=LEADER_UNCHANGED)
                states = block.recovery_states
                yield self._numbers("leaderRecoveryState", states, absent=RECOVERY_UNCHANGED)
            case NewPartitions():
                replicas, isr = (
                    (block.replicas, block.replica_counts),
                    (block.isr, block.isr_counts),
                )
                yield self._lists(replicas=replicas, isr=isr)
                yield form.field.format("removingReplicas", "[]")
                yield form.field.format("addingReplicas", "[]")
                yield self._numbers("leader", block.leaders)
                yield self._numbers("leaderEpoch", block.leader_epochs)
                yield self._numbers("partitionEpoch", block.partition_epochs)
                if version >= DIRECTORIES_SINCE:
                    keys = _keys(block.directories, block.directory_counts)
                    yield _put(keys, self._directories, self._known["directories"])

    def _numbers(self, name: str, column: _Column, *, absent: int | None = None) -> _Words:
        def word(value: int) -> str:
            return "" if value == absent else self._form.field.format(name, value)

        if (column == column[0]).all():
            return word(int(column[0]))
        return _put(column.tolist(), word, self._known[name, absent])

    def _lists(self, **lists: tuple[_Column, _Column]) -> _Words:
        """Fields that follow one another, as a matrix and counts each."""

        def word(key: bytes) -> str:
            return "".join(map(self._list, lists, _LIST.iter_unpack(key)))

        keys = _keys(*chain.from_iterable(lists.values()))
        return _put(keys, word, self._known[tuple(lists)])

    def _list(self, name: str, row: Sequence[int]) -> str:
        *values, count = row
        text = f"[{','.join(map(str, values[:count]))}]"
        return "" if count < 0 else self._form.field.format(name, text)

    def _directories(self, key: bytes) -> str:
        size = TOPIC_ID.itemsize
        ids = (self._id(key[at : at + size]) for at in range(0, key[-1] * size, size))
        quoted = ",".join(map(self._form.quoted.format, ids))
        return self._form.field.format("directories", f"[{quoted}]")

    def _judged(
        self, condition: Condition, block: PartitionBlock, first: Entry, rows: _Column
    ) -> Flags:
        """Finds the rows for which the condition holds, asked once for all rows with the same
        values."""
        asked = [rows] if "offset" in condition.names else []
        for field in sorted(condition.names & _COLUMNS.keys()):
            asked += [getattr(block, name) for name in _COLUMNS[field] if hasattr(block, name)]
        keys = _keys(*asked) if asked else [b""] * len(block)
        places = dict(zip(keys, range(len(block)), strict=True))  # one of each
        some = np.array([*places.values()], np.intp)
        facts = self._facts(take(block, some), first, rows[some].tolist())
        holds = dict(zip(places, map(condition, facts), strict=True))
        return np.fromiter(map(holds.__getitem__, keys), np.bool_, len(block))

    def _facts(
        self, block: PartitionBlock, first: Entry, rows: Sequence[int]
    ) -> Iterator[Mapping[str, Any]]:
        """Yields facts as `TopicNames.facts` has them; `rows` are the places behind `first`."""
        same = {
            "epoch": first.epoch,
            "timestamp": first.timestamp_ms,
            "type": first.type,
            "broker": None,
        }
        for row, data in zip(rows, json_of_rows(block, first.version, self._id), strict=True):
            data |= same
            data["offset"], data["partition"] = first.offset + row, data["partitionId"]
            data["topic"] = self._names.name_of(data["topicId"])
            yield data

    def _topic(self, value: bytes) -> str | None:
        return self._names.name_of(self._id(value))

    def _id(self, value: bytes) -> str:
        text = self._ids.get(value)
        if text is None:
            text = uuid_text(UUID(bytes=value))
            if len(self._ids) < _KEPT_MAX:
                self._ids[value] = text
        return text


def _keys(*columns: _Column) -> list[bytes]:
    """The bytes of each row."""
    layout = [(str(at), each.dtype, each.shape[1:]) for at, each in enumerate(columns)]
    table = np.empty(len(columns[0]), layout)
    for at, each in enumerate(columns):
        table[str(at)] = each
    keys: list[bytes] = table.view(f"V{table.itemsize}").tolist()
    return keys


def _put(values: Sequence[Any], word: Callable[[Any], str], known: dict[Any, str]) -> list[str]:
    """Values in words: each once, unless it is known."""
    try:
        return [*map(known.__getitem__, values)]
    except KeyError:
        distinct = set(values)
    if len(known) + len(distinct) > _KEPT_MAX:
        known.clear()
    known.update((value, word(value)) for value in distinct.difference(known))
    return [*map(known.__getitem__, values)]


def _joined(count: int, *words: _Words) -> str:
    """The words of each row behind one another, row after row."""
    pieces = [each if isinstance(each, str) else "" for each in words] * count
    for place, each in enumerate(words):
        if not isinstance(each, str):
            pieces[place :: len(words)] = each
    return "".join(pieces)


# --- how a row is put: lists come as `[1,2,3]`, which is JSON and text ------------------------


class _Form(NamedTuple):
    """Formats of the parts of a row."""

    offset: str
    thousands: str  # of an offset, without its last three digits
    field: str
    quoted: str
    head: Callable[[Entry], str]  # what follows the offset
    about: Callable[[str, str, str | None], tuple[str, str, str]]


def _about_in_text(head: str, id_: str, name: str | None) -> tuple[str, str, str]:
    """Returns the text before and behind the number of the partition, and at the end."""
    if name is None:
        return f"{head} partitionId=", f" topicId={id_}", "\n"
    return f"{head} {name}-", "", "\n"


def _about_in_json(head: str, id_: str, name: str | None) -> tuple[str, str, str]:
    end = "}}\n" if name is None else f'}},"topic":{json_text(name)}}}\n'
    return f'{head}{{"partitionId":', f',"topicId":"{id_}"', end


_TEXT = _Form(
    offset="{:>8}",
    thousands="{:>5}",
    field=" {}={}",
    quoted="{}",
    head=lambda first: line_head(0, first.epoch, first.timestamp_ms, first.type)[8:],
    about=_about_in_text,
)
_JSON = _Form(
    offset='{{"offset":{}',
    thousands='{{"offset":{}',
    field=',"{}":{}',
    quoted='"{}"',
    head=json_head,
    about=_about_in_json,
)
