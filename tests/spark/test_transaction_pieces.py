"""Transactions in pieces of a key, and of a moment, are judged as the whole of them.

`python -m tests.spark.test_transaction_pieces FIRST LAST` compares the histories of these seeds.
"""

import sys
from collections import Counter
from random import Random

import pytest

from jepsen_like.checkers import judge, rw_register
from jepsen_like.checkers.isolation_levels import LEVELS
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Value
from tests.agreement.transactions import played
from tests.jepsen_like.play import Play
from tests.spark.transactions_here import in_pieces

RANDOM = 16
RANDOM_LATE = 8
LONG = 30  # transactions
LIES = (0, 0.01, 0.03, 0.1)  # of long histories
Row = tuple[Outcome, Outcome]


def agrees(history: History, size: int) -> Row:
    """An order of a register that explains all is looked for in another way."""
    expected, found = judge(history), in_pieces(history, size)
    is_sure = history.header.workload == "append" or expected.outcome is Outcome.VIOLATED
    if is_sure or found.outcome is Outcome.VIOLATED:
        shown = any(op.kind.value == "ok" for op in history.ops)
        assert found.outcome is expected.outcome or not shown
        assert set(found.findings) == set(expected.findings)
    if found.outcome is expected.outcome is not Outcome.UNDECIDED:
        assert {**found.counts, "observations": 0} == expected.counts
    return expected.outcome, found.outcome


def drawn(workload: str, seed: int) -> History:
    random = Random(f"transactions in pieces {workload} {seed}")
    long = random.random() < 0.5
    history = played(workload, random, LONG, LIES) if long else played(workload, random)
    if random.random() < 0.3:
        history.header.options["isolation"] = random.choice(list(LEVELS))  # type: ignore[index]
    return history


def compared(first: int, last: int) -> Counter[tuple[str, Outcome, Outcome]]:
    told = Counter[tuple[str, Outcome, Outcome]]()
    for seed in range(first, last):
        for workload in WRITE_OF:
            try:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(rw_register, "FEW", seed % 2 * 16)
                    told[workload, *agrees(drawn(workload, seed), 1 + seed % 4)] += 1
            except BaseException:
                print(f"{workload}, seed {seed}")
                raise
    return told


def test_random_transactions_are_judged_as_they_are_whole() -> None:
    told = compared(0, RANDOM)
    for workload in WRITE_OF:
        assert told[workload, Outcome.VALID, Outcome.VALID]
        assert told[workload, Outcome.VIOLATED, Outcome.VIOLATED]


def read_late(random: Random) -> History:
    """Some lists are read before the appends to them have ended, and others, as they are or were,
    long after."""
    play = Play(workload="append")
    writers = range(random.randint(1, 3))
    steps: list[list[Value]] = [[["append", f"{key}{by}", 1] for key in "xy"] for by in writers]
    for by in writers:
        play.invoke(by, "txn", steps[by])
    ends = [(by, key) for by in writers for key in ("y", None)]
    random.shuffle(ends)
    for by, key in ends:
        if key is None:
            play.ok(by, steps[by])
        else:
            read(play, f"{key}{by}", [1])
        others(play, random.choice([0, 0, 3]))
    others(play, random.randint(0, 10))
    for by in random.sample(writers, random.randint(0, len(writers))):
        read(play, f"x{by}", random.choice([[], [1]]))
    return play.history


def read(play: Play, key: str, elements: list[Value]) -> None:
    play.did(10, "txn", [["r", key, None]], [["r", key, elements]])


def others(play: Play, count: int) -> None:
    for _ in range(count):
        play.did(11, "txn", [["r", "z", None]], [["r", "z", []]])


def test_spans_that_are_too_large_hide_nothing() -> None:
    told = Counter[Row]()
    for seed in range(RANDOM_LATE):
        random = Random(f"read late {seed}")
        history, in_span = read_late(random), random.randint(3, 15)
        expected, found = judge(history), in_pieces(history, 1 + seed % 4, in_span)
        told[expected.outcome, found.outcome] += 1
        is_shown = found.outcome is expected.outcome or "there is a cycle among" in found.reason
        assert is_shown, f"seed {seed}"
    assert told[Outcome.VALID, Outcome.VALID]
    assert told[Outcome.VIOLATED, Outcome.VIOLATED]


def stale(distance: int) -> History:
    """A list is read as it was so many transactions ago."""
    play = Play(workload="append")
    append_and_read_late(play, "x", distance)
    return play.history


def append_and_read_late(play: Play, key: str, distance: int) -> None:
    for number in range(distance):
        play.did(0, "txn", [["append", key, number]], [["append", key, number]])
    play.did(1, "txn", [["r", key, None]], [["r", key, [0]]])
    play.did(1, "txn", [["r", key, None]], [["r", key, list(range(distance))]])


@pytest.mark.parametrize("size", [1, 5])
def test_cycle_that_spans_many_pieces_is_found(size: int) -> None:
    assert agrees(stale(12), size) == (Outcome.VIOLATED, Outcome.VIOLATED)


def test_cycle_of_too_large_a_span_is_found_in_a_part_of_it() -> None:
    found = in_pieces(stale(12), 3, in_span=10)
    assert [each.rule for each in found.findings] == ["G-single-realtime"]
    assert found.findings[0] in judge(stale(12)).findings


def test_cycle_of_too_large_a_span_is_found_behind_one_that_is_less_late() -> None:
    """1 reads what is written long after it; 2 reads from 1 and ends just before it."""
    play = Play(workload="append")
    play.invoke(1, "txn", [["append", "y", 1], ["r", "x", None]])
    play.invoke(2, "txn", [["r", "y", None]])
    play.ok(2, [["r", "y", [1]]])
    play.ok(1, [["append", "y", 1], ["r", "x", [7]]])
    for number in range(20):
        play.did(0, "txn", [["append", "z", number]], [["append", "z", number]])
    play.did(0, "txn", [["append", "x", 7]], [["append", "x", 7]])
    play.did(0, "txn", [["r", "z", None]], [["r", "z", list(range(20))]])
    found = in_pieces(play.history, 3, in_span=10)
    assert [each.rule for each in found.findings] == ["G1c-realtime"]
    assert found.findings == judge(play.history).findings


def test_cycles_of_several_spans_that_are_too_large_are_found() -> None:
    play = Play(workload="append")
    for key in "xyz":
        append_and_read_late(play, key, 12)
    found = in_pieces(play.history, 1, in_span=10)
    assert {each.ops[0] for each in found.findings} == {
        each.ops[0] for each in in_pieces(play.history, 1).findings
    }


def test_cycle_that_no_worker_can_hold_is_undecided() -> None:
    found = in_pieces(stale(12), 3, in_span=1)
    assert found.outcome is Outcome.UNDECIDED
    assert "more than 1 transactions" in found.reason


def test_transaction_of_unknown_end_is_there_in_all_keys_if_it_was_read_in_one() -> None:
    play = Play(workload="append")
    play.invoke(1, "txn", [["append", "x", 1], ["append", "y", 2]])
    play.info(1)
    play.did(0, "txn", [["r", "x", None], ["r", "y", None]], [["r", "x", [1]], ["r", "y", []]])
    assert agrees(play.history, 1) == (Outcome.VIOLATED, Outcome.VIOLATED)


def test_cycles_that_overlap_in_time_are_of_one_span() -> None:
    play = Play(workload="append")
    for number in range(4):
        play.did(0, "txn", [["append", "x", number]], [["append", "x", number]])
    for elements in ([0], [0, 1, 2], [0, 1], [0, 1, 2, 3]):
        play.did(1, "txn", [["r", "x", None]], [["r", "x", elements]])
    assert agrees(play.history, 1) == (Outcome.VIOLATED, Outcome.VIOLATED)


def test_register_without_a_cycle_is_not_valid_if_no_order_explains_it() -> None:
    """Both keys were written by 1 and by 2 at once, and somebody saw one value of each."""
    play = Play(workload="rw-register")
    for value in (1, 2):
        play.invoke(value, "txn", [["w", "x", value], ["w", "y", value]])
    for value in (1, 2):
        play.ok(value, [["w", "x", value], ["w", "y", value]])
    play.did(3, "txn", [["r", "x", None], ["r", "y", None]], [["r", "x", 1], ["r", "y", 2]])
    assert agrees(play.history, 2) == (Outcome.UNDECIDED, Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("step", "why"),
    [(["append", {"a": 1}, 1], "makes no sense"), (["append", "x", 1], "appended to 'x' twice")],
)
def test_what_nobody_can_judge_is_undecided(step: list[Value], why: str) -> None:
    play = Play(workload="append")
    for _ in range(2):
        play.did(0, "txn", [step], [step])
    play.did(0, "txn", [["r", "y", None]], [["r", "y", [7]]])
    found = in_pieces(play.history, 2)
    assert found.outcome is Outcome.UNDECIDED
    assert why in found.reason


if __name__ == "__main__":
    for outcomes, number in sorted(compared(*map(int, sys.argv[1:])).items(), key=str):
        print(number, *outcomes)
