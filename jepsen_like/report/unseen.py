"""How many acknowledged records nobody had polled yet, over time.

At the end of a run everything has been read back: what the curve ends with is `unseen`, or lost.
"""

from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.log_columns import OK, LogColumns
from jepsen_like.checkers.pairing import Pairing
from jepsen_like.report.clock import Clock, Column

__all__ = ["Unseen", "unseen_of"]

_POINTS = 600


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unseen:
    times: Column  # microseconds
    counts: Column


def unseen_of(log: LogColumns, clock: Clock) -> Unseen | None:
    """None where nothing was ever acknowledged."""
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
    return Unseen(times=times, counts=begun - ended)
