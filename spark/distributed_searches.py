"""Registers that only a search decides, and that are too large for one worker: how the rows move.

    changes of unknown end, and a few rows of each value --by value--> ends; those that have none
    all that has an end
        --by time--> quiescent moments, at which segments begin
            --by segment--> what each makes of any state
                            states, from the first segment to the last: where there is none, why

What comes to the driver: changes of unknown end that may matter, two moments of each piece, and
the relation of each segment. A segment that has no relation is undecided. It hides no violation
that lies in others: what is possible from no state at all is wrong.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import msgspec
import pyarrow as pa

from jepsen_like.checkers.operations import AsWritten, Operation
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Finding, Verdict
from spark.moves import Frame, Moves
from spark.pieces import Mapped, whole
from spark.searched_relations import Relation, Segment, States, Undecided
from spark.searched_rows import (
    NIL_TEXT,
    SEARCHED,
    access_of,
    as_accesses,
    table_of,
    verdict_row,
)
from spark.searched_segments import (
    Segments,
    find_cuts,
    find_ends,
    reached_before,
    select_segments,
)
from spark.searched_values import UNKNOWN_MAX, by_searched_value, sufficient
from spark.verdicts import decoded, named, run_and_name

__all__ = ["IN_SEGMENT", "Searches", "Unknown", "relations", "witnesses"]

IN_SEGMENT = 4_000_000  # rows, that one worker judges at once
_STATES_MAX = 1_000
_NO_VALUE = "a value that nobody saw"  # no value has this text
_LARGE = "too large for one worker, and among {:,} accesses no moment finds nothing open"
_UNKNOWN = f"too large for one worker, and more than {UNKNOWN_MAX:,} changes of unknown end matter"
_STATES = f"too large for one worker, and it may be in more than {_STATES_MAX:,} states"
Unknown = Mapping[str, Sequence[Operation]]  # of each register, the changes of unknown end
_Place = tuple[str, int]  # a register, and the number of a segment


def relations(unknown: Unknown, budget: Budget, mb: int) -> Mapped:
    """Pieces have all rows of their segments."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        for (name, number), mine in _segments(rows):
            run, of = run_and_name(name)
            told = {"tag": "relation", "run": run, "object": of, "segment": number}
            try:
                relation = Segment(mine, unknown.get(name, ()), budget).relation()
            except Undecided as why:
                told |= {"tag": "doubt", "body": str(why).encode()}
            else:
                told |= {"body": msgspec.msgpack.encode(relation)}
            yield table_of([told])

    return whole(judge, mb)


def witnesses(
    broken: Mapping[_Place, States | None], unknown: Unknown, budget: Budget, mb: int
) -> Mapped:
    """The same pieces; what shows that a segment is possible from none of these states, or from
    none at all."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        for place, mine in _segments(rows):
            if place in broken:
                segment = Segment(mine, unknown.get(place[0], ()), budget)
                yield verdict_row(Verdict.of([segment.witness(place[0], broken[place])]))

    return whole(judge, mb)


def _segments(rows: pa.Table) -> Iterator[tuple[_Place, pa.Table]]:
    order = ("run", "object", "segment", "call")
    rows = rows.select(SEARCHED.names).sort_by([(each, "ascending") for each in order])
    keys = [*zip(*(rows.column(each).to_pylist() for each in order[:3]), strict=True)]
    begins = [at for at, key in enumerate(keys) if not at or key != keys[at - 1]]
    for begin, end in zip(begins, [*begins[1:], len(keys)], strict=True):
        run, of, number = keys[begin]
        yield (named(run, of), number), rows.slice(begin, end - begin)


@dataclass(slots=True)
class _Chain:
    """What is known of one register, segment after segment. `states` are those before `broken`;
    None: any may be."""

    states: States | None
    broken: int | None = None
    doubt: str | None = None

    def follow(self, number: int, relation: Relation | str) -> None:
        if self.broken is not None:
            return
        if isinstance(relation, str):
            self._lose(relation)
            return
        after = relation.anywhere if self.states is None else relation.after(self.states)
        if after is not None and not after:
            self.broken = number
        elif after is not None and len(after) > _STATES_MAX:
            self._lose(_STATES)
        else:
            self.states = after

    def _lose(self, why: str) -> None:
        self.doubt, self.states = self.doubt or why, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches(Generic[Frame]):
    moves: Moves[Frame]
    budget: Budget
    mb: int
    in_segment: int = IN_SEGMENT
    initial: str = NIL_TEXT  # of what registers begin with

    def judged(self, rows: Frame) -> tuple[Verdict, dict[str, str]]:
        """What is wrong, and of which registers nothing is known; `rows` are all of these."""
        move = self.moves
        accesses = move.kept(move.mapped(rows, as_accesses(self.mb), SEARCHED))
        few = move.mapped(
            move.tagged(accesses, "access", "unknown", "expected", "failed"),
            sufficient(self.mb),
            SEARCHED,
        )
        judge = by_searched_value(self.initial, self.mb)
        of_values = move.together(few, "run", "object", "value")
        values = move.kept(move.mapped(of_values, judge, SEARCHED))
        known = _Known()
        known.add(move.collected(move.tagged(accesses, "doubt")))
        known.add(move.collected(move.tagged(values, "verdict", "pending", "unwanted", "untold")))
        known.decide()
        ended = move.both(move.tagged(accesses, "access"), move.tagged(values, "access"))
        ordered = move.kept(move.in_order(ended, "run", "object", "call"))
        self._search(ordered, known)
        return Verdict.of(known.findings), known.doubts

    def _search(self, ordered: Frame, known: "_Known") -> None:
        move, mb = self.moves, self.mb
        ends = move.collected(move.mapped(ordered, find_ends(mb), SEARCHED)).to_pylist()
        judge = find_cuts(reached_before(ends), mb)
        cuts = move.collected(move.mapped(ordered, judge, SEARCHED)).to_pylist()
        segments = Segments.of(cuts).without(known.settled)
        judge = select_segments(segments, self.in_segment, mb)
        chosen = move.mapped(ordered, judge, SEARCHED)
        chosen = move.kept(move.together(chosen, "run", "object", "segment"))
        judge = relations(known.unknown, self.budget, mb)
        told = move.collected(move.mapped(chosen, judge, SEARCHED)).to_pylist()
        broken = dict(self._broken(segments, told, known))
        if broken:
            judge = witnesses(broken, known.unknown, self.budget, mb)
            known.add(move.collected(move.mapped(chosen, judge, SEARCHED)))

    def _broken(
        self, segments: Segments, told: Sequence[Mapping[str, Any]], known: "_Known"
    ) -> Iterator[tuple[_Place, States | None]]:
        """The first segment of each register that cannot have been, and the states before it."""
        found = {(named(row["run"], row["object"]), row["segment"]): row for row in told}
        for name, sizes in segments.sizes.items():
            chain = _Chain(frozenset([(self.initial, frozenset[int]())]))
            for number, size in enumerate(sizes):
                row = found.get((name, number))
                chain.follow(
                    number, _LARGE.format(size) if row is None else _relation_or_doubt(row)
                )
            if chain.broken is not None:
                yield (name, chain.broken), chain.states
            elif chain.doubt is not None:
                known.doubts[name] = chain.doubt


def _relation_or_doubt(row: Mapping[str, Any]) -> Relation | str:
    if row["tag"] == "doubt":
        return f"too large for one worker, and undecided in pieces: {row['body'].decode()}"
    return msgspec.msgpack.decode(row["body"], type=Relation)


def _to_no_value(change: Operation) -> Operation:
    """One value that nobody saw or expected is as good as another. If all are the same, the
    search need not tell them apart."""
    made = AsWritten(_NO_VALUE)
    return replace(change, argument=(change.argument[0], made) if change.f == "cas" else made)


@dataclass(slots=True)
class _Known:
    findings: list[Finding] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    pending: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    unwanted: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    untold: set[str] = field(default_factory=set)

    def add(self, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            name = named(row["run"] or "", row["object"] or "")
            match row["tag"]:
                case "doubt":
                    self.doubts[name] = row["body"].decode()
                case "verdict":
                    self.findings += decoded(row["body"].decode()).findings
                case "pending":
                    self.pending[name].append(access_of(row))
                case "unwanted":
                    self.unwanted[name].append(access_of(row))
                case "untold":
                    self.untold.add(name)

    def decide(self) -> None:
        """A register with something that is not understood accuses nobody. Where a compare-and-set
        may have failed for any value, all changes may matter."""
        self.findings = [each for each in self.findings if each.object not in self.doubts]
        for name in self.untold:
            self.pending[name] += map(_to_no_value, self.unwanted[name])
        for name, changes in self.pending.items():
            if len(changes) > UNKNOWN_MAX:
                self.doubts.setdefault(name, _UNKNOWN)

    @property
    def unknown(self) -> Unknown:
        settled = self.settled
        return {name: each for name, each in self.pending.items() if name not in settled}

    @property
    def settled(self) -> set[str]:
        """The registers about which nothing more is asked."""
        return {*self.doubts, *(each.object for each in self.findings)}
