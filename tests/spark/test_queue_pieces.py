"""A queue in pieces of one value, and of one moment, is judged as the whole of it."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, operations
from jepsen_like.checkers.queue_columns import QueueColumns
from jepsen_like.checkers.queues import check_queue_columns
from jepsen_like.checkers.verdict import Outcome, Verdict, compose
from jepsen_like.histories.history import History
from spark import queue_pieces, queue_spans
from spark.pieces import Mapped
from spark.queue_pieces import carried_back
from spark.queue_rows import ACCESSES, QUEUED
from spark.queue_spans import carried_spans
from spark.schema import NIL
from spark.verdicts import decoded
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.play import Play
from tests.spark.tables import table_of

MB = 1 << 20  # no limit
SEEDS = 2
MANY = 80
Rows = list[dict[str, Any]]


def judged_in_pieces(history: History, size: int) -> Verdict:
    """`size`: of a piece, in values or moments. Rows move as in `spark.distributed_queues`."""
    table = table_of(history, "")
    accesses = table.filter(pc.equal(table.column("what"), "access"))
    rows = accesses.select(ACCESSES).to_pylist()
    schema = accesses.select(ACCESSES).schema
    found: Rows = []

    def run(judge: Mapped, parts: Sequence[Rows], schema: pa.Schema = QUEUED) -> Rows:
        told: Rows = []
        for number, part in enumerate(parts):
            mine = [{**row, "piece": number} for row in part]
            batches = pa.Table.from_pylist(mine, schema).to_batches()
            told += [row for batch in judge(batches) for row in batch.to_pylist()]
        found.extend(told)
        return told

    def asked(tag: str, moment: str, dequeues: Rows) -> Rows:
        return run(queue_spans.asking(tag, moment, MB), [dequeues], schema)

    telling = [row for row in rows if row["f"] == "enqueue" or is_dequeue(row, "ok", nil=False)]
    by_value = cut(telling, size, lambda row: repr((row["object"], row["number"], row["value"])))
    told = run(queue_pieces.by_value(MB), by_value, schema)
    values = tagged(told, "value")
    events = [{**row, "moment": row[name]} for row in values for name in ("began", "came")]
    pieces = cut([row for row in events if row["moment"] < NEVER], size)
    told = run(queue_pieces.by_deadline(carried_back(earliest(pieces)), MB), pieces)
    unknown = asked("unknown", "call", [row for row in rows if is_dequeue(row, "info")])
    due = [*tagged(told, "due"), *unknown]
    matched = run(queue_pieces.matched(MB), cut(due, 1, lambda row: row["object"]))
    none = [row for row in rows if is_dequeue(row, "ok", nil=True)]
    empty = asked("empty", "ret", none)
    unsure = {row["object"] for row in unknown}

    def covered(spans: Rows) -> None:
        there = [{**row, "moment": row["came"]} for row in spans if row["came"] < row["left"]]
        pieces = cut([*there, *empty], size)
        carried = carried_spans(run(queue_spans.ends(MB), pieces), len(pieces))
        run(queue_spans.covered(carried, MB), pieces)

    covered([row for row in values if row["dequeue"] >= 0 or row["object"] not in unsure])
    verdicts = [decoded(row["verdict"]) for row in tagged(found, "verdict")]
    took = {(row["object"], row["enqueue"]): row["left"] for row in tagged(matched, "taken")}
    covered(
        [{**row, "left": took.get((row["object"], row["enqueue"]), row["left"])} for row in values]
    )
    doubts = {row["object"] for row in tagged(found, "wrong")} & unsure
    doubts |= {row["object"] for row in tagged(found, "twice")}
    verdict = compose(verdicts)
    names = {each.object.strip() for each in verdict.findings}
    return Verdict.of(verdict.findings, doubts=dict.fromkeys(sorted(doubts - names), "in doubt"))


def is_dequeue(row: dict[str, Any], kind: str, *, nil: bool | None = None) -> bool:
    is_nil = row["number"] is None and row["value"] in (None, NIL)
    return row["f"] == "dequeue" and row["kind"] == kind and nil in (None, is_nil)


def cut(rows: Rows, size: int, by: Callable[[dict[str, Any]], Any] | None = None) -> list[Rows]:
    """What is one by `by` stays together; without it, by object and moment."""
    key = by or (lambda row: (row["object"], row["moment"]))
    groups: dict[Any, Rows] = {}
    for row in sorted(rows, key=key):
        groups.setdefault(key(row), []).append(row)
    whole = list(groups.values())
    return [
        [row for group in whole[begin : begin + size] for row in group]
        for begin in range(0, len(whole), size)
    ]


def earliest(pieces: Sequence[Rows]) -> Rows:
    found = []
    for number, part in enumerate(pieces):
        for queue in {row["object"] for row in part}:
            begun = [r for r in part if r["object"] == queue and r["moment"] == r["began"]]
            first = min(begun, key=lambda row: int(row["gone"]), default=None)
            found.append({"piece": number, "run": "", "object": queue, "earliest": first})
    return found


def tagged(rows: Rows, tag: str) -> Rows:
    return [row for row in rows if row["tag"] == tag]


def agrees(history: History, size: int) -> Outcome:
    """With what columns say of the whole, without the search that decides what they leave open."""
    whole = check_queue_columns(QueueColumns.of(operations(history.ops)))
    found = judged_in_pieces(history, size)
    expected = {name: of for name, of in whole.objects.items() if of is not Outcome.VALID}
    told = {name.strip(): of for name, of in found.objects.items()}
    for name in {*expected, *told}:
        if told.get(name) is not expected.get(name):
            # Of other values, more may be known than where a value comes again at all.
            assert expected.get(name) is Outcome.UNDECIDED, (name, told, expected)
            assert judge(history).objects[name] is told.get(name) is Outcome.VIOLATED
    certain = {name for name in told if told[name] is expected.get(name)}
    assert rules(found, certain) == rules(whole, certain)
    return found.outcome


def rules(verdict: Verdict, names: set[str]) -> set[tuple[str, str]]:
    told = {(each.object.strip(), each.rule) for each in verdict.findings}
    return {(name, rule) for name, rule in told if name in names}


def hostile(random: Random) -> History:
    """Some processes at one queue or two, of which any answer may be anything."""
    play = Play(workload="queue")
    pending: dict[int, tuple[str, str, int | None]] = {}
    fresh = iter(range(1, 1000))
    names, process = list(range(random.choice([2, 3, 6]))), 0
    inside: dict[str, list[int]] = {"a": [], "b": []}
    lie, crash = random.choice([0.0, 0.05, 0.2]), random.choice([0.0, 0.1])
    for _ in range(random.randint(10, 50)):
        place = random.randrange(len(names))
        process = names[place]
        if process not in pending:
            key, f = random.choice("aab"), random.choice(["enqueue", "dequeue"])
            value = next(fresh) if f == "enqueue" else None
            pending[process] = key, f, value
            play.invoke(process, f, [key, value])
            continue
        key, f, value = pending.pop(process)
        if random.random() < crash:
            if random.random() < 0.5:
                inside[key] = [*inside[key], value] if value is not None else inside[key][1:]
            play.info(process)
            names[place] += 100
        elif value is not None:
            if random.random() < 0.1:
                play.fail(process)
                continue
            inside[key].append(value)
            play.ok(process, [key, value])
        else:
            there = inside[key]
            taken = (
                there.pop(random.choice([0, -1]) if random.random() < lie else 0) if there else None
            )
            taken = None if random.random() < lie else taken
            play.ok(process, [key, random.randrange(1, 9) if random.random() < lie / 4 else taken])
    return play.history


@pytest.mark.parametrize("name", ["queue", "queue, values come again"])
def test_random_queues_are_judged_as_they_are_whole(name: str) -> None:
    for seed in range(SEEDS):
        print(f"seed {seed}")
        agrees(history_of(name, MODELS[name], seed), 1 + seed % 3)


def test_hostile_queues_are_judged_as_they_are_whole() -> None:
    for seed in range(SEEDS):
        print(f"seed {seed}")
        agrees(hostile(Random(f"queue in pieces {seed}")), 1 + seed % 4)


@pytest.mark.extra
def test_many_hostile_queues_are_judged_as_they_are_whole() -> None:
    outcomes = set()
    for seed in range(MANY):
        print(f"seed {seed}")
        outcomes.add(agrees(hostile(Random(f"queue in pieces {seed}")), 1 + seed % 4))
    assert outcomes == {*Outcome}


def never_empty(play: Play) -> None:
    """Each value leaves when the next one is there; one dequeue is open all the time."""
    play.did(0, "enqueue", ["k", 1], ["k", 1])
    play.invoke(9, "dequeue", ["k", None])
    for value in range(2, 5):
        play.did(0, "enqueue", ["k", value], ["k", value])
        play.did(1, "dequeue", ["k", None], ["k", value - 1])
    play.ok(9, ["k", None])


def lost(play: Play) -> None:
    """Two values never leave, a dequeue of unknown end may have taken one, and a third leaves."""
    for value in (1, 2, 3):
        play.did(0, "enqueue", ["k", value], ["k", value])
    play.invoke(2, "dequeue", ["k", None])
    play.info(2)
    play.did(1, "dequeue", ["k", None], ["k", 3])


def out_of_order(play: Play) -> None:
    for value in (1, 2, 3):
        play.did(0, "enqueue", ["k", value], ["k", value])
    for value in (3, 2, 1):
        play.did(1, "dequeue", ["k", None], ["k", value])


@pytest.mark.parametrize(
    ("rule", "plant"),
    [("wrongly-empty", never_empty), ("lost-element", lost), ("out-of-order", out_of_order)],
)
def test_what_is_wrong_between_pieces_is_found(rule: str, plant: Callable[[Play], None]) -> None:
    for size in (1, 2):
        play = Play(workload="queue")
        plant(play)
        assert agrees(play.history, size) is Outcome.VIOLATED
        assert {each.rule for each in judged_in_pieces(play.history, size).findings} == {rule}


def test_queue_that_was_empty_once_is_right() -> None:
    play = Play(workload="queue")
    never_empty(play)
    play.invoke(9, "dequeue", ["k", None])
    play.did(1, "dequeue", ["k", None], ["k", 4])
    play.did(0, "enqueue", ["k", 5], ["k", 5])
    play.ok(9, ["k", None])
    found = judged_in_pieces(play.history, 1).findings
    assert len(found) == 1
    assert 2 in found[0].ops, "the first of them"
