"""How a run went over time: operations that ended, their latencies, records that nobody had polled.

Everything is counted in buckets of time, which are few for any history. At the end of a run all
records have been read back: what the last curve ends with is `unseen`, or lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.log_columns import OK, LogColumns
from jepsen_like.checkers.pairing import Pairing
from jepsen_like.report.bars import NONE, Bars, Clock, Column

__all__ = ["QUANTILES", "Series", "series_of", "unseen_of"]

QUANTILES = (0.5, 0.95, 0.99, 1.0)
_BUCKETS = (30, 300)  # at least, and at most
_ENDED_A_BUCKET = 8  # on average, as far as that makes not too few
_FUNCTIONS_MAX = 12
_OUTCOMES = 3

Quantiles = Sequence[Sequence[int]]  # a row a quantile, NONE in buckets without an operation
_POINTS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Latencies of operations that were ok, in microseconds, in the bucket of the call."""

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


def unseen_of(log: LogColumns, clock: Clock) -> dict[str, list[int]] | None:
    """So many `counts` at these `times`; None where nothing was ever acknowledged."""
    sends, reads = log.sends, log.reads
    acknowledged = np.flatnonzero(sends.kind == OK)
    if not len(acknowledged):
        return None
    pairing = Pairing.of(sends.key, sends.value, reads.key, reads.value)
    sent = pairing.pairs(sends.key[acknowledged], sends.value[acknowledged])
    from_line = sends.ret[acknowledged]
    read = pairing.pairs(reads.key, reads.value)
    order = np.lexsort((reads.ret, read))
    first = order[np.diff(read[order], prepend=-1) != 0]
    at = np.searchsorted(read[first], sent)
    is_read = np.isin(sent, read)
    to_line = np.maximum(reads.ret[first][at[is_read]], from_line[is_read])
    times = np.unique(np.linspace(0, clock.end, _POINTS).astype(np.int64))
    begun = np.searchsorted(np.sort(clock.at[from_line]), times, side="right")
    ended = np.searchsorted(np.sort(clock.at[to_line]), times, side="right")
    return {"times": times.tolist(), "counts": (begun - ended).tolist()}
