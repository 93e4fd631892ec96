"""Transactions of reads and writes: each rule is planted, named, and forbidden where it must be."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from jepsen_like.checkers import judge, rw_register
from jepsen_like.checkers.isolation import Dependencies
from jepsen_like.checkers.isolation_levels import LEVELS
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import Kind, MalformedHistory, Value
from tests.agreement.transactions import LEVELS as COMPARED
from tests.agreement.transactions import played, transactions_compared
from tests.jepsen_like.play import Play

HISTORIES = 150
Steps = list[list[Value]]


def both(play: Play, *done: Steps) -> None:
    """All of them at once, each by a process of its own."""
    asked = [[[f, key, None if f == "r" else value] for f, key, value in steps] for steps in done]
    for process, steps in enumerate(asked):
        play.invoke(process, "txn", steps)
    for process, answer in enumerate(done):
        play.ok(process, answer)


def after(play: Play, *done: Steps, process: int | None = None) -> None:
    """One after the other, each by a process of its own or all by this one."""
    for number, answer in enumerate(done):
        asked = [[f, key, None if f == "r" else value] for f, key, value in answer]
        play.did(number if process is None else process, "txn", asked, answer)


def failed(play: Play, steps: Steps) -> None:
    play.invoke(9, "txn", steps)
    play.fail(9, steps)


def aborted_read(play: Play) -> None:
    failed(play, [["append", "x", 1]])
    after(play, [["r", "x", [1]]])


def intermediate_read(play: Play) -> None:
    both(play, [["append", "x", 1], ["append", "x", 2]], [["r", "x", [1]]], [["r", "x", [1, 2]]])


def writes_in_a_cycle(play: Play) -> None:
    both(play, [["append", "x", 1], ["append", "y", 1]], [["append", "x", 2], ["append", "y", 2]])
    both(play, [["r", "x", [1, 2]]], [["r", "y", [2, 1]]])


def reads_in_a_cycle(play: Play) -> None:
    both(play, [["append", "x", 1], ["r", "y", [1]]], [["append", "y", 1], ["r", "x", [1]]])


def read_skew(play: Play) -> None:
    both(play, [["append", "x", 1], ["append", "y", 1]], [["r", "x", [1]], ["r", "y", []]])
    after(play, [["r", "y", [1]]])


def write_skew(play: Play) -> None:
    both(play, [["r", "x", []], ["append", "y", 1]], [["r", "y", []], ["append", "x", 1]])
    after(play, [["r", "x", [1]], ["r", "y", [1]]])


def long_fork(play: Play) -> None:
    both(
        play,
        [["append", "x", 1]],
        [["append", "y", 1]],
        [["r", "x", [1]], ["r", "y", []]],
        [["r", "x", []], ["r", "y", [1]]],
    )
    after(play, [["r", "x", [1]], ["r", "y", [1]]])


def stale_read(play: Play) -> None:
    after(play, [["append", "x", 1]], [["r", "x", []]])


def stale_read_of_ones_own(play: Play) -> None:
    after(play, [["append", "x", 1]], [["r", "x", []]], process=0)


def lost_update(play: Play) -> None:
    both(play, [["r", "x", []], ["append", "x", 1]], [["r", "x", []], ["append", "x", 2]])


def unlike_itself(play: Play) -> None:
    after(play, [["append", "x", 1], ["r", "x", []]])


def two_orders(play: Play) -> None:
    both(play, [["append", "x", 1]], [["append", "x", 2]], [["r", "x", [1]]], [["r", "x", [2]]])


def one_twice(play: Play) -> None:
    both(play, [["append", "x", 1]], [["r", "x", [1, 1]]])


def out_of_nowhere(play: Play) -> None:
    after(play, [["r", "x", [7]]])


PLANTED: Sequence[tuple[str, Callable[[Play], None]]] = [
    ("phantom", out_of_nowhere),
    ("G1a", aborted_read),
    ("G1b", intermediate_read),
    ("G0", writes_in_a_cycle),
    ("G1c", reads_in_a_cycle),
    ("G-single", read_skew),
    ("G-single-process", stale_read_of_ones_own),
    ("G-single-realtime", stale_read),
    ("G2-item", write_skew),
    ("G-nonadjacent", long_fork),
    ("lost-update", lost_update),
    ("internal", unlike_itself),
    ("incompatible-order", two_orders),
    ("duplicate-elements", one_twice),
]


def judged(plant: Callable[[Play], None], level: str) -> Verdict:
    play = Play(workload="append", options={"isolation": level})
    plant(play)
    return judge(play.history)


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_each_level_forbids_what_its_definition_names(
    rule: str, plant: Callable[[Play], None]
) -> None:
    name = rule.removesuffix("-realtime").removesuffix("-process")
    always = name in ("phantom", "incompatible-order", "duplicate-elements")
    for level, forbidden in LEVELS.items():
        verdict = judged(plant, level)
        is_order = rule != name
        if always or (name in forbidden and (not is_order or level == "strict-serializable")):
            assert rule in {each.rule for each in verdict.findings}, level
            assert all(each.ops for each in verdict.findings)
        else:
            assert rule not in {each.rule for each in verdict.findings}, level


def test_each_step_of_a_cycle_is_told() -> None:
    (finding,) = judged(read_skew, "serializable").findings
    assert finding.detail == (
        "1 read 'y' without 1, which 0 appended; 0 appended 1 to 'x', which 1 read"
    )
    assert finding.ops == (0, 1, 2, 3)


@pytest.mark.parametrize("level", COMPARED)
@pytest.mark.parametrize("workload", WRITE_OF)
def test_judges_agree_with_trying_all_orders(workload: str, level: str) -> None:
    tally = transactions_compared(workload, level, range(HISTORIES))
    assert not tally.wrong
    assert min(tally.truth[each] for each in (Outcome.VALID, Outcome.VIOLATED)) > HISTORIES // 20


def test_registers_of_transactions_are_read_stale() -> None:
    play = Play(workload="rw-register")
    after(play, [["w", "x", 1]], [["w", "x", 2]], [["r", "x", 1]])
    (finding,) = judge(play.history).findings
    assert finding.rule == "G-single-realtime"
    assert finding.ops == (2, 3, 4, 5)


def read_and_written_over(play: Play, count: int) -> None:
    for value in range(count):
        after(play, [["r", "x", value - 1 if value else None], ["w", "x", value]])


def read_before_it_is_written(play: Play, count: int) -> None:
    after(play, *[[["r", "x", None]]] * count)
    after(play, *[[["w", "x", value]] for value in range(count)])


@pytest.mark.parametrize("plant", [read_and_written_over, read_before_it_is_written])
def test_registers_have_few_edges(
    plant: Callable[[Play, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    edges: list[int] = []
    add = Dependencies.add

    def counted(depends: Dependencies, source: int, target: int, *what: Any) -> None:
        edges.append(source)
        add(depends, source, target, *what)

    monkeypatch.setattr(Dependencies, "add", counted)
    play = Play(workload="rw-register")
    plant(play, 100)
    assert judge(play.history).outcome is Outcome.VALID
    assert len(edges) < 1_000


def test_nodes_that_stand_for_writers_change_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Counter[Outcome]()
    for seed in range(60):
        history = played("rw-register", Random(f"few {seed}"), 20, (0, 0.1, 0.3))
        history.header.options["isolation"] = COMPARED[seed % 2]  # type: ignore[index]
        outcomes = []
        for few in (0, 1_000):
            monkeypatch.setattr(rw_register, "FEW", few)
            outcomes.append(judge(history).outcome)
        assert outcomes[0] is outcomes[1], f"seed {seed}"
        told[outcomes[0]] += 1
    assert min(told[each] for each in (Outcome.VALID, Outcome.VIOLATED)) > 10


def test_what_nobody_can_tell_apart_is_undecided() -> None:
    for workload, write in WRITE_OF.items():
        play = Play(workload=workload)
        after(play, [[write, "x", 1]], [[write, "x", 1]])
        verdict = judge(play.history)
        assert verdict.outcome is Outcome.UNDECIDED
        assert "twice" in verdict.reason


def test_a_level_that_is_none_is_named_with_those_that_are() -> None:
    with pytest.raises(MalformedHistory, match="'snapshot': known are read-committed, "):
        judged(read_skew, "snapshot")
    play = Play(workload="append", options={"isolation": ["x"]})
    with pytest.raises(MalformedHistory, match="known are read-committed, "):
        judge(play.history)


@pytest.mark.parametrize(
    "value", [5, [["r", "x"]], [["cas", "x", 1]], ["r"], [["append", {"a": 1}, 1]]]
)
def test_what_is_no_transaction_is_refused(value: Value) -> None:
    play = Play(workload="append")
    play.did(0, "txn", value, value)
    with pytest.raises(MalformedHistory, match="not what a transaction looks like"):
        judge(play.history)


def test_what_a_level_allows_may_hide_what_it_forbids() -> None:
    """A write skew through which a G-single runs, and a read that must not be looked past."""
    skewed: list[Steps] = [
        [["append", "x", 1], ["append", "z", 1], ["r", "y", []]],
        [["r", "x", []], ["r", "z", [1]], ["append", "y", 1]],
    ]
    for done in (skewed, skewed[::-1]):
        play = Play(workload="append", options={"isolation": "snapshot-isolation"})
        both(play, *done)
        after(play, [["r", "y", [1]]])
        assert judge(play.history).outcome is not Outcome.VALID
    play = Play(workload="append", options={"isolation": "read-committed"})
    failed(play, [["append", "x", 1]])
    after(play, [["r", "x", []], ["r", "x", [1]]])
    assert judge(play.history).outcome is Outcome.UNDECIDED


def test_an_answer_without_a_value_has_read_nothing_that_is_known() -> None:
    play = Play(workload="append")
    after(play, [["append", "x", 1]])
    play.invoke(1, "txn", [["r", "x", None]])
    play.line(Kind.OK, 1, "txn", None)
    assert judge(play.history).outcome is Outcome.VALID
