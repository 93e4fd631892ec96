"""Sequence numbers of idempotent producers: each record of one once, in their order, without a gap.

A send tells them as extras: producer=[id, epoch], sequence=n. A broker appends a record of a
producer to a key only behind the one with the number before it, and refuses whoever uses an older
epoch of the same id. So, of one producer id, epoch and key:

    sequence-reused        two values have one number, and both are in the log
    sequence-out-of-order  a later number is at an earlier offset
    sequence-gap           a number is missing before a later one that is there, as a reader of the
                           whole log saw who began afterwards
    zombie-write           a send was acknowledged though it began when the id's next epoch had
                           written there already, as its answer or a reader told

In the log is what was acknowledged with its offset, or read. Source: KIP-98, KIP-360.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, OK, UNKNOWN, Column, LogColumns
from jepsen_like.checkers.log_sessions import located
from jepsen_like.checkers.operations import NEVER, Operation, overtaken
from jepsen_like.checkers.pairing import first_rows
from jepsen_like.checkers.verdict import Finding, Verdict, evidence, place
from jepsen_like.histories.history import MalformedHistory

__all__ = ["check_sequences"]


class _Record(NamedTuple):
    """A record of an idempotent producer, in the log."""

    key: int
    producer: int
    epoch: int
    sequence: int
    offset: int
    value: int
    row: int  # of the sends
    operation: Operation


def check_sequences(log: LogColumns, operations: Sequence[Operation]) -> Verdict:
    records = sorted(_records(log, operations), key=lambda each: each[:5])
    findings: list[Finding] = []
    for before, after in pairwise(records):
        if before[:3] == after[:3]:
            findings += _broken(log, before, after)
    findings += _zombies(log, records)
    return Verdict.of(findings, {"records with sequences": len(records)})


def _records(log: LogColumns, operations: Sequence[Operation]) -> Iterator[_Record]:
    told = {place(each): each for each in operations if "sequence" in each.extra}
    offsets = located(log).tolist() if told else []
    for row, offset in enumerate(offsets):
        operation = told.get(int(log.sends.operation[row]))
        if operation is not None and offset != UNKNOWN and log.sends.kind[row] != FAIL:
            key, value = int(log.sends.key[row]), int(log.sends.value[row])
            yield _Record(key, *_numbers(operation), offset, value, row, operation)


def _numbers(operation: Operation) -> tuple[int, int, int]:
    match operation.extra:
        case {"producer": [int(producer), int(epoch)], "sequence": int(sequence)}:
            return producer, epoch, sequence
    raise MalformedHistory(f"operation {operation.index}: no producer=[id, epoch], sequence=number")


def _broken(log: LogColumns, before: _Record, after: _Record) -> Iterator[Finding]:
    """Findings on two records that follow one another by their numbers."""
    key, one, other = log.keys[before.key], log.values[before.value], log.values[after.value]
    if (before.value, before.offset) == (after.value, after.offset):
        return  # one record, of whoever sent it again and was told so
    if before.sequence == after.sequence:
        told = f"{one!r} and {other!r} are both in the log with sequence {after.sequence}"
        yield Finding.of("sequence-reused", key, told, before.operation, after.operation)
        return
    if before.offset > after.offset:
        told = (
            f"{one!r} has sequence {before.sequence} and offset {before.offset}, "
            f"{other!r} has {after.sequence} and {after.offset}"
        )
        yield Finding.of("sequence-out-of-order", key, told, before.operation, after.operation)
    if after.sequence > before.sequence + 1 and _is_read_whole(log, after):
        told = (
            f"sequence {before.sequence + 1} is not in the log, "
            f"and {other!r} with {after.sequence} is"
        )
        yield Finding.of("sequence-gap", key, told, before.operation, after.operation)


def _is_read_whole(log: LogColumns, record: _Record) -> bool:
    """After it surely was there."""
    of_key = log.ends.key == record.key
    readings = log.ends.start[of_key & (log.ends.start != UNKNOWN)]
    return log.sends.kind[record.row] == OK and bool((readings > record.operation.ret).any())


def _zombies(log: LogColumns, records: Iterable[_Record]) -> Iterator[Finding]:
    """A record is known to be there since its answer, or since somebody had read it."""
    of_id: dict[tuple[int, int], list[_Record]] = {}
    for each in records:
        of_id.setdefault((each.key, each.producer), []).append(each)
    readers = _first_readers(log) if of_id else np.array([])

    def known(record: _Record) -> Operation:
        reader = readers[record.row]
        ret = log.reads.ret[reader] if reader >= 0 else NEVER
        return replace(record.operation, ret=min(int(ret), record.operation.ret))

    for mine in of_id.values():
        for before, each in overtaken(mine, of=known, rank=lambda each: each.epoch):
            if log.sends.kind[each.row] != OK:
                continue
            detail = (
                f"{log.values[each.value]!r} was acknowledged to epoch {each.epoch} of "
                f"producer {each.producer}, after epoch {before.epoch} had written"
            )
            shows = [place(before.operation), place(each.operation)]
            if known(before).ret < before.operation.ret:
                shows.append(int(log.reads.operation[readers[before.row]]))
            name = log.keys[each.key]
            yield Finding(rule="zombie-write", object=name, detail=detail, ops=evidence(shows))


def _first_readers(log: LogColumns) -> Column:
    """For each send: the row of the read that was the first to end, of what it sent; -1: none."""
    codes, order = log.by_value, np.argsort(log.reads.ret, kind="stable")
    first = first_rows(codes.reads[order], codes.size)[codes.sends]
    return np.where(first >= 0, order[first] if len(order) else -1, -1)
