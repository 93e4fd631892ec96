"""The facts about one value of a register that a search decides: a piece has some values.

A value that was seen, and that nobody can have written, is wrong by itself. And most changes of
unknown end are no choice for the search:

- If the value was seen or replaced, the register did not begin with it, and one change alone makes
  it, then that change happened, before the first one that shows it returned: so it has an end.
- If nobody saw or expected the value, the change may be left out: whatever came next was a write,
  and what was there before may as well have stayed until then. Only a compare-and-set that failed
  for another value, and does not tell what it saw, can have needed the change: it is unwanted.

The others may have happened at any time after their calls, once or never: they are pending.
Source: `checkers.register_accesses`, which does the same for whole registers.

Of each value a few rows of a piece say all of this, so that no worker needs all rows of one.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Column, Mask, Pairing, numbered
from jepsen_like.checkers.verdict import SHOWN, Finding, Told, Verdict, places, report
from spark.columns import numbers, objects
from spark.pieces import Mapped, whole
from spark.searched_rows import NIL_TEXT, SEARCHED, verdict_row

__all__ = ["UNKNOWN_MAX", "by_searched_value", "sufficient"]

UNKNOWN_MAX = 1_000  # of one register, that are pending, or unwanted
_MAKES, _SHOWS, _ASKS, _FAILED, _UNKNOWN, _UNTOLD = range(6)  # what a row says of its value
_SUFFICIENT = np.array([2, SHOWN, 1, 1, UNKNOWN_MAX + 1, 1])  # rows of each that say all


def sufficient(mb: int) -> Mapped:
    """Any rows; of each value those that are enough."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        piece = _Values(rows.select(SEARCHED.names))
        group = piece.value * len(_SUFFICIENT) + piece.says
        order = np.lexsort((piece.ret, group))
        ordered = group[order]
        is_first = np.append(True, ordered[1:] != ordered[:-1])
        rank = np.arange(len(order)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        yield piece.rows.take(pa.array(np.sort(order[rank < _SUFFICIENT[piece.says[order]]])))

    return whole(judge, mb)


def by_searched_value(initial: str, mb: int) -> Mapped:
    """Pieces have all of these rows of their values, in any order. `initial`: the text of what
    registers begin with."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        piece = _Values(rows.select(SEARCHED.names))
        if findings := piece.findings(initial):
            yield verdict_row(Verdict.of(findings))
        yield from piece.unknown(initial)
        yield from piece.few("untold", np.flatnonzero(piece.says == _UNTOLD), most=1)

    return whole(judge, mb)


class _Values:
    """Columns are of rows; what is known of a value is repeated on each of its rows."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.names, self.key = objects(rows)
        of = rows.column("value").combine_chunks().dictionary_encode()
        self._texts, self._code = of.dictionary, np.asarray(of.indices, dtype=np.int64)
        pairing = Pairing.of(self.key, self._code)
        _, self.value = numbered(pairing.pairs(self.key, self._code), pairing.size)
        self.call, self.ret = numbers(rows, "call"), numbers(rows, "ret", missing=NEVER)
        self.says = self._says()

    def _says(self) -> Column:
        is_expected, is_read = self._has("tag", "expected"), self._has("f", "read")
        is_ok = self._has("kind", "ok")
        alternatives = {
            _FAILED: self._has("tag", "failed"),
            _UNKNOWN: self._has("tag", "unknown"),
            _SHOWS: is_read | (is_expected & is_ok),
            _ASKS: is_expected,
            _UNTOLD: self._has("kind", "fail"),
        }
        return np.select([*alternatives.values()], [*alternatives], default=_MAKES)

    def _has(self, column: str, text: str) -> Mask:
        return np.asarray(pc.equal(self.rows.column(column), text))

    def _count(self, says: int) -> Column:
        """How many rows of its value say this."""
        return np.bincount(self.value[self.says == says], minlength=len(self.value))[self.value]

    def findings(self, initial: str) -> list[Finding]:
        """Nil is left to the search, as in whole registers."""
        is_made = (self._count(_MAKES) > 0) | (self._count(_UNKNOWN) > 0)
        is_known = is_made | self._has("value", initial) | self._has("value", NIL_TEXT)
        never, failed = (self.says == _SHOWS) & ~is_known, self._count(_FAILED) > 0
        return [
            *self._report("phantom", never & ~failed, "nobody wrote it"),
            *self._report("G1a", never & failed, "its write failed"),
        ]

    def _report(self, rule: str, rows: Mask, why: str) -> list[Finding]:
        found = np.flatnonzero(rows)
        found = found[np.argsort(self.call[found])]
        place = places(numbers(self.rows, "invoked"), numbers(self.rows, "completed"))
        is_read = self._has("f", "read")

        def tell(at: int) -> Told:
            row = found[at]
            value = self._texts[int(self._code[row])].as_py()
            seen = "read" if is_read[row] else "replaced"
            return f"{value} was {seen}, and {why}", [int(place[row])]

        return report(rule, self.names, self.key[found], tell)

    def unknown(self, initial: str) -> Iterator[pa.Table]:
        shows = self.says == _SHOWS
        shown = np.full(len(self.value), NEVER)
        np.minimum.at(shown, self.value[shows], self.ret[shows])
        shown = shown[self.value]
        is_unknown = self.says == _UNKNOWN
        is_alone = (self._count(_MAKES) + self._count(_UNKNOWN) == 1) & ~self._has("value", initial)
        has_end = is_unknown & is_alone & (shown != NEVER) & (shown > self.call)
        is_asked = (self._count(_ASKS) > 0) | (self._count(_UNTOLD) > 0)
        is_wanted = (shown != NEVER) | is_asked
        ended = self._tagged("access", np.flatnonzero(has_end))
        at = SEARCHED.get_field_index("ret")
        yield ended.set_column(at, SEARCHED.field(at), pa.array(shown[has_end]))
        left = is_unknown & ~has_end
        yield from self.few("pending", np.flatnonzero(left & is_wanted))
        yield from self.few("unwanted", np.flatnonzero(left & ~is_wanted))

    def few(self, tag: str, rows: Column, most: int = UNKNOWN_MAX + 1) -> Iterator[pa.Table]:
        """One more of each register than there may be: that shows that there are too many."""
        for key in np.unique(self.key[rows]):
            yield self._tagged(tag, rows[self.key[rows] == key][:most])

    def _tagged(self, tag: str, rows: Column) -> pa.Table:
        mine = self.rows.take(pa.array(rows))
        return mine.set_column(0, SEARCHED.field(0), pa.repeat(pa.scalar(tag), len(mine)))
