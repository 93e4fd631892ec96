"""Spans: times in which there may be cycles of transactions, as `transaction_labels` finds them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from jepsen_like.checkers.pairing import Column
from spark.transaction_rows import from_columns

__all__ = ["Span", "merged", "span_at", "span_rows"]

_BEFORE_ALL = -(1 << 62)


class Span(NamedTuple):
    run: str
    begin: int
    end: int
    label: int  # in it: of a cycle alone, or of what is least late


def merged(spans: Sequence[Span]) -> list[Span]:
    """Those that overlap as one; of these the label of the shortest."""
    found: list[Span] = []
    shortest = 0
    for each in sorted(spans):
        length = each.end - each.begin
        if found and found[-1].run == each.run and each.begin <= found[-1].end:
            last = found[-1]
            label = each.label if length < shortest else last.label
            shortest = min(shortest, length)
            found[-1] = Span(last.run, last.begin, max(last.end, each.end), label)
        else:
            found.append(each)
            shortest = length
    return found


def span_at(times: Column, begins: Column, ends: Column, number: Column) -> Column:
    """The number of the span that each time is in; -1: none. Spans are sorted, and apart."""
    at = np.searchsorted(begins, times, side="right") - 1  # -1: before all, so the one appended
    is_in = times <= np.append(ends, _BEFORE_ALL)[at]
    return np.where(is_in, np.append(number, -1)[at], -1)


def span_rows(run: str, spans: Sequence[Span]) -> pa.Table:
    begin, end, label = ([each[at] for each in spans] for at in (1, 2, 3))
    return from_columns("span", run, {"begin": begin, "end": end, "label": label})
