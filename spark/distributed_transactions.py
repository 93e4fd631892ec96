"""Transactions too large for one worker, judged in pieces on all of them: how the rows move.

    operations --by key--> what is wrong with a key; edges between transactions
        --by time--> labels, until none rises any more; ties, and spans of what was late
            ties --by label--> spans of cycles
            edges in spans --by span--> cycles, and their names

Of a valid history no edge is in a span. A register has an order that is only likely: where nothing
is wrong, its edges are put to the others, and if there is still no cycle, that order explains all
that was read. If there is one, there may be another order, and it is undecided.

What comes to the driver: transactions that are not acknowledged, but were read; labels that rise
across the border of two pieces; spans; and what was found.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Generic

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.isolation_levels import STRICT, Found, verdict_of
from jepsen_like.checkers.verdict import Outcome, Verdict
from spark import transaction_labels
from spark.distributed import Pieces
from spark.kept import keeping
from spark.moves import Frame, Moves, OnSpark
from spark.transaction_cycles import cycles
from spark.transaction_keys import OPERATIONS, KeyJudge, nodes_and_counts, split_by_key
from spark.transaction_labels import Round
from spark.transaction_rows import ROWS, KeyFindings, table_of, unpacked
from spark.transaction_spans import Span, merged
from spark.transaction_ties import TIES_MAX, find_tied_cycles

__all__ = ["Transactions", "transactions_in_pieces"]

_ROUNDS = 200
_CARRIED = 2_000_000  # labels of a run
_SPANS = 10_000  # of a run
_IN_SPAN = 500_000  # rows, that one worker judges at once
_UNSETTLED = "dependencies lead back in time too far to be followed in pieces"
_CROWDED = "more transactions share one moment than a worker can hold"
_UNNAMED = "there must be a cycle of transactions, and none was found"
_NO_ORDER = "no order was found that explains all reads, nor a rule that is broken"
Doubts = dict[str, str]  # by run


def transactions_in_pieces(
    table: DataFrame, workload: str, level: str, cut: Pieces
) -> dict[str, Verdict]:
    """By runs. `table` has all rows of these histories, which promise that level."""
    operations = table.filter(F.col("what") == "operation").select(*OPERATIONS)
    keys = KeyJudge(workload=workload, level=level, mb=cut.mb)
    with keeping() as keep:
        moves = OnSpark(pieces=cut.count, keep=keep)
        return Transactions(keys=keys, moves=moves, in_span=_IN_SPAN).verdicts(operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions(Generic[Frame]):
    keys: KeyJudge
    moves: Moves[Frame]
    in_span: int
    ties: int = TIES_MAX

    @property
    def is_strict(self) -> bool:
        return self.keys.level == STRICT

    def verdicts(self, operations: Frame) -> dict[str, Verdict]:
        """By runs."""
        move = self.moves
        split = move.mapped(operations, split_by_key(self.keys.workload), ROWS)
        by_key = move.kept(move.together(split, "run", "key"))
        findings = _by_run(move.collected(move.mapped(by_key, self.keys.judged, ROWS)))
        judged = {run: each for run, each in findings.items() if not each.doubts}
        confirmed = {run: frozenset(each.confirmed) for run, each in judged.items()}
        nodes = move.mapped(operations, nodes_and_counts(confirmed), ROWS)
        edges = move.mapped(by_key, self.keys.edges(confirmed), ROWS)
        graph = move.kept(move.in_order(move.both(nodes, edges), "run", "source_call"))
        counts = _counted(move.collected(move.tagged(graph, "count")))
        told = self.moves.collected(move.tagged(graph, "doubt")).to_pylist()
        doubts: Doubts = {row["run"]: row["body"].decode() for row in told}
        broken = self._cycles(move.tagged(graph, "node", "edge"), doubts)
        verdicts = {}
        for run, count in counts.items():
            each = findings.get(run, KeyFindings())
            each.found.merge(broken.get(run, Found()))
            verdicts[run] = self._verdict(each, count, doubts.get(run))
        if self.keys.workload == "rw-register":
            self._doubt_registers(graph, verdicts)
        return verdicts

    def _verdict(self, findings: KeyFindings, count: int, doubt: str | None) -> Verdict:
        if findings.doubts:
            return Verdict.undecided(min(findings.doubts))
        counts = {"transactions": count}
        if self.keys.workload == "append":
            counts["lists read"] = findings.reads
        verdict = verdict_of(findings.found, self.keys.level, counts)
        if doubt is not None and verdict.outcome is Outcome.VALID:
            return replace(Verdict.undecided(doubt), counts=verdict.counts)
        return verdict

    def _doubt_registers(self, graph: Frame, told: dict[str, Verdict]) -> None:
        """A run in which nothing is wrong becomes undecided if its likely order contradicts what is
        certain."""
        valid = {run for run, each in told.items() if each.outcome is Outcome.VALID}
        if not valid:
            return
        guessed = self.moves.tagged(graph, "node", "edge", "guess")
        for run, doubt in self._contradicted(guessed).items():
            if run in valid:
                told[run] = replace(Verdict.undecided(doubt), counts=told[run].counts)

    def _cycles(self, graph: Frame, doubts: Doubts) -> dict[str, Found]:
        """What breaks a rule of cycles, by runs."""
        carried = self._settled(graph, doubts)
        found: dict[str, Found] = defaultdict(Found)
        spans = _few(self._spans(graph, carried, doubts), doubts)
        while spans:
            judge = transaction_labels.select_spans(self._round(carried), spans)
            rows = self.moves.together(self.moves.mapped(graph, judge, ROWS), "run", "span")
            judge = cycles(self.keys.mb, self.in_span, is_strict=self.is_strict)
            told = self.moves.collected(self.moves.mapped(rows, judge, ROWS)).to_pylist()
            for row in told:
                if row["tag"] == "cycles":
                    named = unpacked(row["body"], Found)
                    found[row["run"]].merge(named)
                    if not named.counts:
                        doubts[row["run"]] = _UNNAMED
            large = sorted(spans[row["span"]] for row in told if row["tag"] == "large")
            spans = list(_smaller(large, self.in_span, doubts))
        return found

    def _contradicted(self, graph: Frame) -> Doubts:
        """The runs whose edges lead around a cycle, or may, each with its reason."""
        doubts: Doubts = {}
        spans = self._spans(graph, self._settled(graph, doubts), doubts)
        return {**doubts, **dict.fromkeys((each.run for each in spans), _NO_ORDER)}

    def _settled(self, graph: Frame, doubts: Doubts) -> pa.Table:
        """The labels that are carried from piece to piece."""
        carried = _Carried()
        unsettled: set[str] = set()
        for _ in range(_ROUNDS):
            judge = transaction_labels.labels_to_carry(self._round(carried.table()))
            rows = self.moves.collected(self.moves.mapped(graph, judge, ROWS)).to_pylist()
            rising = carried.update(row for row in rows if row["run"] not in unsettled)
            unsettled |= {row["run"] for row in rows if row["tag"] == "deep"}
            unsettled |= {run for run in rising if len(carried.labels[run]) > _CARRIED}
            if not rising - unsettled:
                break
        doubts.update(dict.fromkeys(unsettled | rising, _UNSETTLED))
        return carried.table()

    def _round(self, carried: pa.Table) -> Round:
        return Round(carried=carried, is_strict=self.is_strict, mb=self.keys.mb)

    def _spans(self, graph: Frame, carried: pa.Table, doubts: Doubts) -> list[Span]:
        move = self.moves
        judge = transaction_labels.find_ties_and_late(self._round(carried))
        found = move.kept(move.mapped(graph, judge, ROWS))
        ties = move.together(move.tagged(found, "tie"), "run", "label")
        tied = move.mapped(ties, find_tied_cycles(self.keys.mb, self.ties), ROWS)
        rows = move.collected(move.both(move.tagged(found, "span"), tied)).to_pylist()
        doubts.update({row["run"]: _CROWDED for row in rows if row["tag"] == "crowded"})
        spans = [row for row in rows if row["tag"] == "span"]
        return merged([Span(*(row[each] for each in Span._fields)) for row in spans])


def _by_run(rows: pa.Table) -> dict[str, KeyFindings]:
    """Those of all pieces together."""
    of_runs: dict[str, KeyFindings] = defaultdict(KeyFindings)
    for row in rows.to_pylist():
        of_runs[row["run"]].merge(unpacked(row["body"], KeyFindings))
    for each in of_runs.values():
        if not each.found.counts:
            each.found.merge(each.lost_updates)
    return of_runs


def _counted(rows: pa.Table) -> Mapping[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for row in rows.to_pylist():
        counts[row["run"]] += row["count"]
    return counts


@dataclass(frozen=True, slots=True)
class _Carried:
    """The highest labels that pieces have told, by run and then by node."""

    labels: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def update(self, rows: Iterable[Mapping[str, Any]]) -> set[str]:
        """Returns the runs in which a label rose: none, when all have come to rest."""
        rising = set()
        for row in rows:
            of_run, node, label = self.labels[row["run"]], row["target"], row["label"]
            if row["tag"] == "label" and (node not in of_run or label > of_run[node]):
                of_run[node] = label
                rising.add(row["run"])
        return rising

    def table(self) -> pa.Table:
        return table_of(
            {"tag": "label", "run": run, "target": target, "label": label}
            for run, of_run in self.labels.items()
            for target, label in of_run.items()
        )


def _few(spans: Sequence[Span], doubts: Doubts) -> list[Span]:
    """Keep the first 10,000 of each run. One that has more is undecided, unless these show a
    violation."""
    kept: list[Span] = []
    for run, of_run in groupby(spans, lambda each: each.run):
        mine = list(of_run)
        kept += mine[:_SPANS]
        if len(mine) > _SPANS:
            doubts[run] = f"more than {_SPANS:,} stretches of time may have a cycle"
    return kept


def _smaller(large: Sequence[Span], most: int, doubts: Doubts) -> Iterator[Span]:
    """Replace a span that is too large by its end, at which a whole cycle has its one label."""
    for each in large:
        if each.begin < each.end:
            yield each._replace(begin=each.end)
        else:
            doubts[each.run] = f"there is a cycle among more than {most:,} transactions and edges"
