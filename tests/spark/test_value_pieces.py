"""A set, and a total queue, judged value by value, is judged as the whole of it."""

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jepsen_like.checkers.operations import operations
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.sets import check_set
from jepsen_like.checkers.total_queues import check_total_queue
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import History, Value
from spark import value_pieces
from spark.distributed_values import told_together
from spark.judging import Batches
from spark.value_pieces import OPERATIONS
from tests.agreement.free import freely_played
from tests.agreement.free_objects import FREE_OBJECTS
from tests.jepsen_like.play import Play
from tests.spark.tables import table_of
from tests.spark.total_queues import total_queue

MB = 1 << 20  # no limit
RANDOM = 40
PIECES = 3
Mapped = Callable[[Batches], Batches]


def judged_in_pieces(history: History) -> Verdict:
    """Rows move as in `spark.distributed_values`."""
    table = table_of(history, "run").select(OPERATIONS)
    done = table.filter(pc.equal(table.column("what"), "operation"))
    apart = pa.Table.from_batches(value_pieces.cut(PIECES, done.to_batches()))
    pieces = apart.sort_by([("run", "ascending"), ("piece", "ascending")]).to_batches()
    if history.header.workload != "set":
        return together(pa.Table.from_batches(value_pieces.of_queue(MB)(pieces)))
    told = pa.Table.from_batches(value_pieces.of_set(Budget(), MB)(pieces))
    is_together = pc.is_in(told.column("tag"), pa.array(["list", "placed"]))
    handed_on = told.filter(is_together).to_batches()
    orders = pa.Table.from_batches(
        value_pieces.of_orders(Budget(), MB)(handed_on), value_pieces.TOLD_OF_PIECES
    )
    return together(pa.concat_tables([told.filter(pc.invert(is_together)), orders]))


def together(told: pa.Table) -> Verdict:
    return told_together([(row["tag"], row["told"]) for row in told.to_pylist()])


def agrees(history: History) -> Outcome:
    check = check_set if history.header.workload == "set" else check_total_queue
    expected, found = check(operations(history.ops)), judged_in_pieces(history)
    assert found.outcome is expected.outcome
    assert set(found.findings) == set(expected.findings)
    wrong = {name: of for name, of in expected.objects.items() if of is not Outcome.VALID}
    assert {name: of for name, of in found.objects.items() if of is not Outcome.VALID} == wrong
    if found.outcome is not Outcome.UNDECIDED:
        counted = {name: count for name, count in expected.counts.items() if count}
        assert {name: count for name, count in found.counts.items() if count} == counted
    return found.outcome


def two_orders(play: Play) -> None:
    """Each element fits, and the two lists have no order."""
    for process, element in ((1, "x"), (2, "y")):
        play.invoke(process, "add", element)
    for process in (3, 4):
        play.invoke(process, "read")
    play.ok(3, ["x"])
    play.ok(4, ["y"])


def of_one_text(play: Play) -> None:
    for element in (1, "1", "'1'", 2):
        play.did(0, "add", element, element)
    play.did(0, "read", None, [1, "'1'", 2])


@pytest.mark.parametrize("plant", [two_orders, of_one_text])
def test_what_is_wrong_across_pieces_is_found(plant: Callable[[Play], None]) -> None:
    play = Play(workload="set")
    plant(play)
    assert agrees(play.history) is Outcome.VIOLATED


@pytest.mark.parametrize(("read", "why"), [(3, "no list"), ([{("a", 1): 2}], "no element")])
def test_history_that_makes_no_sense_is_undecided(read: Value, why: str) -> None:
    play = Play(workload="set")
    play.did(0, "read", None, read)
    verdict = judged_in_pieces(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert why in verdict.reason


def test_set_is_undecided_where_the_piece_that_tells_its_lists_makes_no_sense() -> None:
    play = Play(workload="set")
    two_orders(play)
    for number in range(9):  # a mapping is no element, in the piece that they are in
        element = {"n": number}
        if value_pieces._piece(element, PIECES) == 0:
            play.did(0, "add", element, element)
    play.did(0, "read", None, ["x", "y"])
    verdict = judged_in_pieces(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "no element" in verdict.reason


def test_random_sets_and_queues_are_judged_as_they_are_whole() -> None:
    outcomes = {"set": set[Outcome](), "total-queue": set[Outcome]()}
    for seed in range(RANDOM):
        print(f"seed {seed}")
        random = Random(f"in pieces {seed}")
        for history in (freely_played(FREE_OBJECTS["sets"], random, 0.1), total_queue(seed)):
            outcomes[history.header.workload].add(agrees(history))
    assert {Outcome.VALID, Outcome.VIOLATED} <= outcomes["set"]
    assert outcomes["total-queue"] == {*Outcome}
