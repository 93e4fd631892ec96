"""Cycles of transactions: each kind is found under its name, and what is none passes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.dependency_graph import Graph
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Value
from jepsen_like.histories.interchange import read_as
from tests.jepsen_like.play import Play

A, B = "a-0", "b-0"


class Transactions(Play):
    """Each is named by its process; `begin` and `end` let them overlap."""

    def __init__(self, *, isolated: bool = False) -> None:
        super().__init__(workload="kafka", options={"isolated_writes": isolated})

    def begin(self, process: int) -> None:
        """What it asks for is known when it ends."""
        self.invoke(process, "txn", [])

    def end(self, process: int, sends: Sequence[Value] = (), polled: Value = None) -> None:
        """Sends are (key, offset, value)."""
        begun = self._open[process].index
        asked = [*(["send", key, value] for key, _, value in sends), ["poll"]]
        self.ops[begun] = replace(self.ops[begun], value=asked)
        steps: list[Value] = [["send", key, [offset, value]] for key, offset, value in sends]
        self.ok(process, [*steps, ["poll", polled or {}]])

    def all_read(self, **logs: Sequence[int]) -> History:
        polled = {f"{key}-0": [list(each) for each in enumerate(log)] for key, log in logs.items()}
        self.read_all(99, polled)
        return self.history


def read_of_each_other(play: Transactions) -> History:
    play.begin(1)
    play.begin(2)
    play.end(1, [(A, 0, 1)], {B: [[0, 2]]})
    play.end(2, [(B, 0, 2)], {A: [[0, 1]]})
    return play.all_read(a=[1], b=[2])


def read_of_what_came_later(play: Transactions, second: int) -> History:
    """What 3 sent was read by 1, before what 3 read was sent."""
    play.begin(3)
    play.begin(1)
    play.end(1, polled={B: [[0, 3]]})
    play.begin(second)
    play.end(second, [(A, 0, 2)])
    play.end(3, [(B, 0, 3)], {A: [[0, 2]]})
    return play.all_read(a=[2], b=[3])


def in_one_process(play: Transactions) -> History:
    return read_of_what_came_later(play, second=1)


def in_real_time(play: Transactions) -> History:
    return read_of_what_came_later(play, second=2)


def writes_in_both_orders(play: Transactions) -> History:
    play.begin(1)
    play.begin(2)
    play.end(1, [(A, 0, 1), (B, 1, 2)])
    play.end(2, [(A, 1, 3), (B, 0, 4)])
    return play.all_read(a=[1, 3], b=[4, 2])


def writes_before_what_came_later(play: Transactions, second: int) -> History:
    play.begin(3)
    play.begin(1)
    play.end(1, [(B, 1, 1)])
    play.begin(second)
    play.end(second, [(A, 0, 2)])
    play.end(3, [(A, 1, 3), (B, 0, 4)])
    return play.all_read(a=[2, 3], b=[4, 1])


def writes_in_one_process(play: Transactions) -> History:
    return writes_before_what_came_later(play, second=1)


def writes_in_real_time(play: Transactions) -> History:
    return writes_before_what_came_later(play, second=2)


def write_before_what_was_read(play: Transactions) -> History:
    play.begin(1)
    play.begin(2)
    play.end(1, [(A, 0, 1)], {B: [[0, 4]]})
    play.end(2, [(A, 1, 3), (B, 0, 4)])
    play.begin(1)
    return play.all_read(a=[1, 3], b=[4])


# Whether writes must be isolated for it to be wrong.
CYCLES: list[tuple[str, bool, Callable[[Transactions], History]]] = [
    ("G1c", False, read_of_each_other),
    ("G1c-process", False, in_one_process),
    ("G1c-realtime", False, in_real_time),
    ("G1c", True, write_before_what_was_read),
    ("G0", True, writes_in_both_orders),
    ("G0-process", True, writes_in_one_process),
    ("G0-realtime", True, writes_in_real_time),
]


@pytest.mark.parametrize(("rule", "through_writes", "plant"), CYCLES)
def test_planted_cycle_is_found_with_its_operations(
    rule: str, through_writes: bool, plant: Callable[[Transactions], History]
) -> None:
    verdict = judge(plant(Transactions(isolated=through_writes)))
    (finding,) = verdict.findings
    assert finding.rule == rule
    assert len(finding.ops) in (4, 6)
    assert "; " in finding.detail
    allowed = judge(plant(Transactions()))
    assert (allowed.outcome is Outcome.VALID) is through_writes
    assert bool(allowed.counts["cycles through writes, allowed"]) is through_writes


def test_cycle_of_writes_that_nobody_read_is_found() -> None:
    play = Transactions(isolated=True)
    play.begin(1)
    play.begin(2)
    play.end(1, [(A, 0, 1), (B, 1, 2)])
    play.end(2, [(A, 1, 3), (B, 0, 4)])
    assert [finding.rule for finding in judge(play.history).findings] == ["G0"]


def test_transactions_one_after_the_other_pass() -> None:
    play = Transactions(isolated=True)
    for number in range(5):
        play.begin(number)
        polled = {A: [[number - 1, number - 1]]} if number else {}
        play.end(number, [(A, number, number), (B, number, 10 + number)], polled)
    history = play.all_read(a=range(5), b=range(10, 15))
    assert judge(history).outcome is Outcome.VALID


def test_what_a_reader_of_unknown_end_saw_makes_no_cycle() -> None:
    play = Transactions()
    play.begin(1)
    play.invoke(2, "txn", [["send", B, 2], ["poll"]])
    play.end(1, [(A, 0, 1)], {B: [[0, 2]]})
    play.info(2)
    assert judge(play.all_read(a=[1], b=[2])).outcome is Outcome.VALID


def test_sends_of_one_transaction_that_others_came_between_are_counted() -> None:
    play = Transactions()
    play.begin(1)
    play.begin(2)
    play.end(1, [(A, 0, 1), (A, 2, 2)])
    play.end(2, [(A, 1, 3)])
    verdict = judge(play.all_read(a=[1, 3, 2]))
    assert verdict.outcome is Outcome.VALID
    assert verdict.counts["int-send-skip, allowed"] == 1


def test_sends_that_go_back_are_not_counted_as_skipping() -> None:
    play = Transactions()
    play.begin(1)
    play.end(1, [(A, 1, 1), (A, 0, 2)])
    verdict = judge(play.all_read(a=[2, 1]))
    assert {each.rule for each in verdict.findings} == {"int-nonmonotonic-send"}
    assert verdict.counts["int-send-skip, allowed"] == 0


def test_history_of_others_with_transactions_is_judged_as_such() -> None:
    line = '{:type :invoke, :process 0, :f :txn, :value [[:send "a-0" 1]]}'
    assert read_as(line.encode(), ".edn").header.workload == "kafka"


@pytest.mark.parametrize("seed", range(100))
def test_components_are_where_there_are_paths_back(seed: int) -> None:
    random = Random(seed)
    size = random.randint(1, 9)
    pairs = [
        (random.randrange(size), random.randrange(size)) for _ in range(random.randrange(2 * size))
    ]
    reach = {pair for pair in pairs if pair[0] != pair[1]}
    for middle, one, other in product(range(size), repeat=3):
        if (one, middle) in reach and (middle, other) in reach:
            reach.add((one, other))
    edges = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)
    graph = Graph(source=edges[:, 0], target=edges[:, 1])
    found = graph.components()
    expected = {
        at for at, (one, other) in enumerate(pairs) if one != other and (other, one) in reach
    }
    assert {edge for part in found for edge in part.tolist()} == expected
    for part in found:
        for edge in part.tolist():
            cycle = graph.cycle(part, edge)
            assert cycle[0] == edge
            ends = [pairs[each] for each in [*cycle, cycle[0]]]
            assert all(one[1] == other[0] for one, other in pairwise(ends))


def test_cycles_that_one_edge_joins_are_two_components() -> None:
    pairs = np.array([(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)], dtype=np.int64)
    graph = Graph(source=pairs[:, 0], target=pairs[:, 1])
    assert sorted(part.tolist() for part in graph.components()) == [[0, 1], [3, 4]]


def test_cycle_that_two_orders_explain_has_both_names() -> None:
    """2 came right behind what 1 wrote, and after 1 had ended; 1 read what 2 wrote."""
    play = Transactions(isolated=True)
    play.begin(1)
    play.end(1, [(B, 0, 1)], {A: [[0, 2]]})
    play.begin(2)
    play.end(2, [(B, 1, 3), (A, 0, 2)])
    rules = {finding.rule for finding in judge(play.all_read(a=[2], b=[1, 3])).findings}
    assert {"G1c", "G1c-realtime"} <= rules
