"""`inspect partition`: the batches and markers of a topic's partition, and what lies beside it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from jepsen_like.real.layout import ClusterError
from quorum.core.producers import AbortedTransaction
from quorum.log.files.producer_snapshot import ProducerRow, producer_rows
from quorum.log.files.transaction_files import aborted_in
from quorumlab.arguments import UsageError
from quorumlab.inspection.batches import Batch, Complaints
from quorumlab.inspection.entries import fields_text, json_text, line_head
from quorumlab.inspection.group_log import group_lines
from quorumlab.inspection.partition_files import Partition, find_partition
from quorumlab.inspection.partition_log import (
    Line,
    Seen,
    lines_of,
    partition_batches,
    problems_of_index,
)
from quorumlab.inspection.selection import EVERYWHERE, parse_range
from quorumlab.inspection.transaction_log import transaction_lines
from quorumlab.output import complain
from quorumlab.verbs.inspecting import DAMAGED, say_lines
from wire.varint import Malformed

__all__ = ["run_partition"]

_OF_COORDINATORS = {TRANSACTIONS_TOPIC: transaction_lines, OFFSETS_TOPIC: group_lines}
_Beside = tuple[str, Mapping[str, Any]]  # what it is, and its fields


def run_partition(args: SimpleNamespace) -> int:
    offsets = _offsets(args.offsets)
    partition = find_partition(args.target)
    problems = Complaints()
    is_text = args.format == "text"
    try:
        told = _told(partition, offsets, problems)
        say_lines(map(_as_text if is_text else _as_json, told))
    except OSError as error:
        raise ClusterError(f"{error.filename} cannot be read: {error.strerror}") from error
    for problem in problems:
        complain(problem)
    return DAMAGED if problems else 0


def _offsets(text: str | None) -> range:
    try:
        return parse_range(text) if text else EVERYWHERE
    except ValueError as error:
        raise UsageError(str(error)) from error


def _told(partition: Partition, offsets: range, problems: Complaints) -> Iterator[Line | _Beside]:
    """All of it is read, whatever is shown: an index is judged by the whole log."""
    seen = Seen()
    for found in partition_batches(partition.segments):
        if not isinstance(found, Batch):
            problems.add(found)
            continue
        header = found.header
        lines = list(lines_of(found, seen))
        tell = _OF_COORDINATORS.get(partition.topic or "")
        if tell is not None and not header.is_control:
            lines = list(tell(found)) or lines  # compaction may have emptied it
        if header.base_offset < offsets.stop and header.last_offset >= offsets.start:
            yield from lines
    index: list[AbortedTransaction] = []
    for path, entry in _index(partition, problems):  # a running node writes it after the marker
        index.append(entry)
        yield "ABORTED_TRANSACTION", _aborted(path, entry)
    if partition.is_whole and partition.segments:
        for problem in problems_of_index(seen, index):
            problems.add(problem)
    yield from _producers(partition, problems)
    for producer_id, first in sorted(seen.open.items()):
        yield "OPEN_TRANSACTION", {"producerId": producer_id, "firstOffset": first}


def _index(partition: Partition, problems: Complaints) -> Iterator[tuple[Path, AbortedTransaction]]:
    for path in partition.aborted:
        try:
            for entry in aborted_in(path.read_bytes()):
                yield path, entry
        except Malformed as error:
            problems.add(f"{path}: {error}")


def _aborted(path: Path, entry: AbortedTransaction) -> dict[str, Any]:
    return {
        "file": path.name,
        "producerId": entry.producer_id,
        "firstOffset": entry.first_offset,
        "lastOffset": entry.last_offset,
        "lastStableOffset": entry.last_stable_offset,
    }


def _producers(partition: Partition, problems: Complaints) -> Iterator[_Beside]:
    """The newest file has what the others have, and more."""
    for path in partition.producers[-1:]:
        try:
            rows = producer_rows(path.read_bytes())
        except Malformed as error:
            problems.add(f"{path}: {error}")
            continue
        for row in rows:
            yield "PRODUCER", _producer(path, row)


def _producer(path: Path, row: ProducerRow) -> dict[str, Any]:
    return {
        "file": path.name,
        "producerId": row.producer_id,
        "producerEpoch": row.producer_epoch,
        "coordinatorEpoch": row.coordinator_epoch,
        "lastSequence": row.last_sequence,
        "lastOffset": row.last_offset,
        "lastTimestamp": row.timestamp_ms,
        **({"currentTxnFirstOffset": row.first_offset} if row.first_offset >= 0 else {}),
    }


def _as_text(told: Line | _Beside) -> str:
    if isinstance(told, Line):
        head = line_head(told.offset, told.epoch, told.timestamp_ms, told.type)
        return f"{head} {fields_text(told.data)}".rstrip()
    name, data = told
    return f"{name} {fields_text(data)}"


def _as_json(told: Line | _Beside) -> str:
    if not isinstance(told, Line):
        name, data = told
        return json_text({"type": name, "data": data})
    return json_text(
        {
            "offset": told.offset,
            "epoch": told.epoch,
            "timestamp": told.timestamp_ms,
            "type": told.type,
            "data": told.data,
        }
    )
