"""How many operations ended, and how long they took, in buckets of time: small for any history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.log_columns import OK
from jepsen_like.report.bars import NONE, Bars
from jepsen_like.report.clock import Column

__all__ = ["QUANTILES", "Latencies", "Series", "series_of"]

QUANTILES = (0.5, 0.95, 0.99, 1.0)
_BUCKETS = (30, 300)  # at least, and at most
_ENDED_A_BUCKET = 8  # on average, as far as that makes not too few
_FUNCTIONS_MAX = 12
_OUTCOMES = 3

Quantiles = Sequence[Sequence[int]]  # a row a quantile, NONE in buckets without an operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Of what was ok, in microseconds, in the bucket of its call."""

    function: str
    count: int
    quantiles: Quantiles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    width: int  # of a bucket, in microseconds
    ended: Mapping[int, Column]  # by outcome: how many, in the bucket of their end
    latencies: Sequence[Latencies]  # of the functions with most operations


def series_of(bars: Bars, end: int) -> Series:
    least, most = _BUCKETS
    width = _width(end, min(max(len(bars) // _ENDED_A_BUCKET, least), most))
    buckets = end // width + 1
    done = bars.completed != NONE
    ended = {
        outcome: np.bincount(bars.ret[done & (bars.outcome == outcome)] // width, minlength=buckets)
        for outcome in range(_OUTCOMES)
    }
    rows_of = {
        name: np.flatnonzero((bars.function == code) & (bars.outcome == OK))
        for code, name in enumerate(bars.functions)
    }
    largest = sorted(rows_of.items(), key=lambda each: -len(each[1]))[:_FUNCTIONS_MAX]
    return Series(
        width=width,
        ended=ended,
        latencies=[
            Latencies(
                function=name,
                count=len(rows),
                quantiles=_quantiles(bars.call[rows], bars.ret[rows], width, buckets),
            )
            for name, rows in largest
            if len(rows)
        ],
    )


def _width(end: int, most: int) -> int:
    """A round number of microseconds, so that there are not too many buckets."""
    width = 1
    while True:
        for factor in (1, 2, 5):
            if end // (factor * width) < most:
                return factor * width
        width *= 10


def _quantiles(call: Column, ret: Column, width: int, buckets: int) -> Quantiles:
    bucket, latency = call // width, ret - call
    order = np.lexsort((latency, bucket))
    latency = latency[order]
    counts = np.bincount(bucket, minlength=buckets)
    first = np.cumsum(counts) - counts
    has_any = counts > 0
    told = []
    for quantile in QUANTILES:
        at = first + np.ceil(quantile * counts).astype(np.int64) - 1
        row = np.full(buckets, NONE, dtype=np.int64)
        row[has_any] = latency[at[has_any]]
        told.append(row.tolist())
    return told
