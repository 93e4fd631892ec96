"""Spans: times in which there may be cycles of transactions, as `transaction_labels` finds them."""

from collections.abc import Iterable, Sequence
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
    end: int  # a label, the latest in it


def merged(spans: Iterable[Span]) -> list[Span]:
    """Those that overlap as one, in their order."""
    found: list[Span] = []
    for each in sorted(spans):
        if found and found[-1].run == each.run and each.begin <= found[-1].end:
            last = found[-1]
            found[-1] = last._replace(end=max(last.end, each.end))
        else:
            found.append(each)
    return found


def span_at(times: Column, begins: Column, ends: Column, number: Column) -> Column:
    """The number of the span that each time is in; -1: none. Spans are sorted, and apart."""
    at = np.searchsorted(begins, times, side="right") - 1  # -1: before all, so the one appended
    is_in = times <= np.append(ends, _BEFORE_ALL)[at]
    return np.where(is_in, np.append(number, -1)[at], -1)


def span_rows(run: str, spans: Sequence[Span]) -> pa.Table:
    begin, end = ([each[at] for each in spans] for at in (1, 2))
    return from_columns("span", run, {"begin": begin, "end": end})
