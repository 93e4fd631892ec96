"""Limits of transactions in pieces: a run that meets one is undecided, and no other is."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.isolation import Dependencies, Edges
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Value
from spark import distributed_transactions, one_key, transaction_cycles, transaction_labels
from spark.one_key import JUDGES, Key, NodeOf
from spark.transaction_rows import Projection, Rows, table_of
from tests.jepsen_like.play import Play
from tests.spark.test_transaction_pieces import append_and_read_late, stale
from tests.spark.transactions_here import in_pieces, runs_in_pieces

LARGE = 8  # projections
READS: list[Value] = [["r", "x", None]] * one_key.STEPS_MAX


def appended(key: str, count: int, level: str | None = None) -> Play:
    """By one after the other, each of which had read the list."""
    play = Play(workload="append")
    if level is not None:
        play.options["isolation"] = level
    for number in range(count):
        asked = [["r", key, None], ["append", key, number]]
        play.did(0, "txn", asked, [["r", key, list(range(number))], asked[1]])
    return play


@pytest.mark.parametrize("fails_at", ["begin", "edges"])
def test_key_that_no_worker_can_hold_is_a_doubt_of_its_run(
    monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    def limited(projections: Sequence[Projection]) -> Key:
        key = whole(projections)
        if len(projections) <= LARGE:
            return key
        if fails_at == "begin":
            raise MemoryError
        monkeypatch.setattr(type(key), "enter", enter)
        return key

    def enter(self: Key, edges: Edges, node_of: NodeOf, *, is_strict: bool) -> None:
        if len(self.transactions) > LARGE:
            raise MemoryError
        entered(self, edges, node_of, is_strict=is_strict)

    whole = JUDGES["append"]
    entered = whole.enter  # type: ignore[attr-defined]
    monkeypatch.setitem(JUDGES, "append", limited)
    runs = {"large": appended("x", LARGE + 1).history, "other": stale(4)}
    found = runs_in_pieces(runs, 10)
    assert found["large"].outcome is Outcome.UNDECIDED
    assert "key 'x' alone needs more than" in found["large"].reason
    assert found["other"].findings == judge(runs["other"]).findings


def test_what_is_found_of_other_keys_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def enter(self: Key, edges: Edges, node_of: NodeOf, *, is_strict: bool) -> None:
        if len(self.transactions) > LARGE:
            raise MemoryError
        entered(self, edges, node_of, is_strict=is_strict)

    entered = JUDGES["append"].enter  # type: ignore[attr-defined]
    monkeypatch.setattr(JUDGES["append"], "enter", enter)
    play = appended("x", LARGE + 1)
    append_and_read_late(play, "y", 4)
    assert in_pieces(play.history, 3).findings == judge(play.history).findings


class Scarce:
    """A batch for which there is no memory at first."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.failures = 1

    def to_pylist(self) -> list[dict[str, Value]]:
        if self.failures:
            self.failures -= 1
            raise MemoryError
        return [{"number": self.number}]


def test_rows_go_on_after_memory_was_short() -> None:
    rows = Rows([Scarce(1), Scarce(2)])
    told = []
    for _ in range(4):
        try:
            told.append(next(rows)["number"])
        except MemoryError:
            told.append(None)
    assert told == [None, 1, None, 2]
    assert list(rows) == []


def test_rows_that_cannot_be_had_any_more_do_not_seem_to_end() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table_of([{"tag": "node"}]).to_batches()
        raise MemoryError

    rows = Rows(batches())
    assert next(rows)["tag"] == "node"
    for _ in range(2):
        with pytest.raises(MemoryError):
            next(rows)


def test_run_with_too_many_ties_is_undecided_alone() -> None:
    """A read of nothing at the end gives its label to all that was appended before."""
    play = appended("x", 8, "serializable")
    play.did(1, "txn", [["r", "x", None]], [["r", "x", []]])
    other = appended("x", 1, "serializable")
    for process, key, value in ((1, "y", 1), (2, "z", 1)):
        other.invoke(process, "txn", [["append", key, value], ["r", "zy"["yz".index(key)], None]])
    for process, key in ((1, "y"), (2, "z")):
        other.ok(process, [["append", key, 1], ["r", "zy"["yz".index(key)], [1]]])
    runs = {"crowded": play.history, "other": other.history}
    assert runs_in_pieces(runs, 100)["crowded"].outcome is Outcome.VALID
    found = runs_in_pieces(runs, 100, ties=7)
    assert found["crowded"].outcome is Outcome.UNDECIDED
    assert "more transactions share one moment" in found["crowded"].reason
    assert [each.rule for each in found["other"].findings] == ["G1c"]


def test_span_that_no_worker_can_hold_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(rows: list[dict[str, Any]]) -> Dependencies:
        if len(rows) > 10:
            raise MemoryError
        return graph(rows)

    graph = transaction_cycles._graph
    monkeypatch.setattr(transaction_cycles, "_graph", limited)
    runs = {"large": stale(12), "other": stale(2)}
    found = runs_in_pieces(runs, 100)
    assert [each.rule for each in found["large"].findings] == ["G-single-realtime"]
    assert found["other"].findings == judge(runs["other"]).findings


def test_span_without_a_cycle_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_cycles, "cycle_findings", lambda *_, is_strict: iter(()))
    found = in_pieces(stale(3), 3)
    assert found.outcome is Outcome.UNDECIDED
    assert "none was found" in found.reason


def test_each_run_has_its_own_number_of_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed_transactions, "_SPANS", 1)
    play = Play(workload="append")
    for key in "xyz":
        append_and_read_late(play, key, 3)
    found = runs_in_pieces({"a": play.history, "b": stale(3)}, 3)
    assert {run: each.outcome for run, each in found.items()} == dict.fromkeys(
        "ab", Outcome.VIOLATED
    )


def handed_on(count: int) -> History:
    """All are open at once, and each reads what the next one appends."""
    play = Play(workload="append")
    steps: list[list[Value]] = [
        [["append", f"x{by}", 1], ["r", f"x{by + 1}", [1] if by + 1 < count else []]]
        for by in range(count)
    ]
    for by in range(count):
        play.invoke(by, "txn", steps[by])
    for by in range(count):
        play.ok(by, steps[by])
    return play.history


def test_each_run_has_its_own_number_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"many": handed_on(6), "few": handed_on(2)}
    assert {each.outcome for each in runs_in_pieces(runs, 1).values()} == {Outcome.VALID}
    monkeypatch.setattr(distributed_transactions, "_CARRIED", 2)
    found = runs_in_pieces(runs, 1)
    assert found["few"].outcome is Outcome.VALID
    assert "lead back in time too far" in found["many"].reason


def test_register_whose_likely_order_cannot_be_followed_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who began to write last was done first, and so on; each value is read at once."""
    play = Play(workload="rw-register")
    for value in range(5):
        play.invoke(value, "txn", [["w", "x", value]])
    for value in reversed(range(5)):
        play.ok(value, [["w", "x", value]])
        play.did(10 + value, "txn", [["r", "x", None]], [["r", "x", value]])
    assert in_pieces(play.history, 100).outcome is Outcome.VALID
    monkeypatch.setattr(transaction_labels, "_PASSES_MAX", 1)
    found = in_pieces(play.history, 100)
    assert found.outcome is Outcome.UNDECIDED
    assert "lead back in time too far" in found.reason


@pytest.mark.parametrize("workload", WRITE_OF)
def test_run_in_which_nothing_was_done_is_told(workload: str) -> None:
    play = Play(workload=workload)
    for _ in range(2):
        play.did(0, "txn", [], [])
    found, expected = in_pieces(play.history, 2), judge(play.history)
    assert {**found.counts, "observations": 0} == expected.counts
    assert not found.findings


def test_run_that_is_undecided_leaves_others_what_was_found() -> None:
    play = Play(workload="append")
    play.did(0, "txn", [*READS, ["append", "y", 1]], [*READS, ["append", "y", 1]])
    runs = {"deep": play.history, "other": stale(4)}
    found = runs_in_pieces(runs, 2)
    assert "by step 1,025 of a transaction" in found["deep"].reason
    assert found["other"].findings == judge(runs["other"]).findings


@pytest.mark.parametrize("workload", WRITE_OF)
def test_write_too_far_behind_in_its_transaction_is_undecided(workload: str) -> None:
    for steps in (READS[1:], READS):
        play = Play(workload=workload)
        written: list[Value] = [*steps, [WRITE_OF[workload], "y", 1]]
        play.did(0, "txn", written, written)
        found = in_pieces(play.history, 2)
        assert found.outcome is (Outcome.UNDECIDED if steps is READS else Outcome.VALID)
    assert "'y' was first written by step 1,025 of a transaction" in found.reason


def test_register_that_is_written_too_often_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_key, "NODES_MAX", 4)
    play = Play(workload="rw-register")
    for value in range(4):
        play.did(0, "txn", [["w", "x", value]], [["w", "x", value]])
        outcome = Outcome.VALID if value < 3 else Outcome.UNDECIDED
        found = in_pieces(play.history, 2)
        assert found.outcome is outcome
    assert "'x' was written by 4 transactions or more" in found.reason
