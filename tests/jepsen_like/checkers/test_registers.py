"""Registers: each kind of violation is found, and each algorithm agrees with the truth."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, operations
from jepsen_like.checkers.register_accesses import registers
from jepsen_like.checkers.registers import check_registers
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Kind, MalformedHistory
from tests.jepsen_like.play import Play

KEY = "register-0"
HISTORIES = 200


class Registers(Play):
    """Operations on one register, with versions or without."""

    def __init__(self, *, versioned: bool = False) -> None:
        super().__init__(workload="register")
        self.versioned = versioned

    def write(self, process: int, value: int, version: int = 0) -> None:
        self.did(process, "write", [KEY, value], None, **self._told(version))

    def read(self, process: int, value: int | None, version: int = 0) -> None:
        self.did(process, "read", [KEY, None], [KEY, value], **self._told(version))

    def stale(self, process: int, value: int | None, version: int = 0, node: int = 1) -> None:
        told = self._told(version)
        self.did(process, "read-stale", [KEY, None], [KEY, value], node=node, **told)

    def _told(self, version: int) -> dict[str, int]:
        return {"version": version} if self.versioned else {}


def stale_read(play: Registers) -> None:
    play.write(0, 3, 3)
    play.read(1, 2, 2)


def lost_update(play: Registers) -> None:
    play.write(0, 3, 3)
    play.read(1, 2, 2)
    play.read(1, 3, 3)


def read_early(play: Registers) -> None:
    play.read(1, 9, 3)
    play.write(0, 9, 3)


def back_to_nothing(play: Registers) -> None:
    play.read(1, None, 0)


def phantom(play: Registers) -> None:
    play.read(1, 77, 3)


def failed_write(play: Registers) -> None:
    play.invoke(0, "write", [KEY, 9])
    play.fail(0)
    play.read(1, 9, 3)


def went_back(play: Registers) -> None:
    play.stale(1, 2, 2)
    play.stale(1, 1, 1)


def uncommitted(play: Registers) -> None:
    """A stale read saw a write of unknown end, and after it everybody sees what was before."""
    play.invoke(0, "write", [KEY, 9])
    play.info(0)
    play.stale(1, 9, 3)
    play.read(2, 2, 2)


def two_values_of_one_version(play: Registers) -> None:
    play.invoke(0, "write", [KEY, 3])
    play.info(0)
    play.read(1, 3, 2)


def two_versions_of_one_value(play: Registers) -> None:
    play.read(1, 1, 3)


def initial_value_after_another(play: Registers) -> None:
    play.read(1, None, 3)


def two_writes_that_expected_one_version(play: Registers) -> None:
    """As AlterPartition would leave it if nobody compared the partition epoch."""
    play.did(0, "write", [KEY, 3], None, version=3, expected=2)
    play.did(1, "write", [KEY, 4], None, version=4, expected=2)


PLANTED: list[tuple[str, Callable[[Registers], None]]] = [
    ("not-linearizable", stale_read),
    ("not-linearizable", lost_update),
    ("not-linearizable", read_early),
    ("not-linearizable", back_to_nothing),
    ("not-linearizable", uncommitted),
    ("phantom", phantom),
    ("G1a", failed_write),
    ("nonmonotonic-read", went_back),
]
PLANTED_IN_VERSIONS: list[tuple[str, Callable[[Registers], None]]] = [
    ("inconsistent-version", two_values_of_one_version),
    ("inconsistent-version", two_versions_of_one_value),
    ("inconsistent-version", initial_value_after_another),
    ("lost-update", two_writes_that_expected_one_version),
]


@pytest.mark.parametrize(
    ("rule", "plant", "versioned"),
    [
        *((rule, plant, versioned) for rule, plant in PLANTED for versioned in (False, True)),
        *((rule, plant, True) for rule, plant in PLANTED_IN_VERSIONS),
    ],
)
def test_planted_violation_is_found_with_its_operations(
    rule: str, plant: Callable[[Registers], None], versioned: bool
) -> None:
    play = Registers(versioned=versioned)
    play.write(0, 1, 1)
    play.write(0, 2, 2)
    plant(play)
    verdict = judge(play.history)
    found = [finding for finding in verdict.findings if finding.rule == rule]
    assert found, verdict
    assert all(finding.object == KEY and finding.ops for finding in found)
    assert verdict.counts["by versions" if versioned else "by zones"] == 1


@pytest.mark.parametrize("expected", [6, 7])
def test_version_that_is_no_later_than_the_expected_one_is_found(expected: int) -> None:
    play = Registers(versioned=True)
    play.did(0, "write", [KEY, 1], None, version=6, expected=expected)
    assert {each.rule for each in judge(play.history).findings} == {"lost-update"}


def test_versions_that_others_made_meanwhile_are_no_lost_update() -> None:
    play = Registers(versioned=True)
    play.did(0, "write", [KEY, 1], None, version=6, expected=5)
    play.did(1, "write", [KEY, 2], None, version=9, expected=8)
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize("version", ["x", None, 1.5, True, 1 << 70, -7])
def test_version_that_is_none_says_where_it_is(version: Any) -> None:
    play = Registers(versioned=True)
    play.did(0, "write", [KEY, 1], None, version=version)
    with pytest.raises(MalformedHistory, match="operation 0: no version"):
        judge(play.history)


@pytest.mark.parametrize(
    ("value", "extra"), [({"a": 1}, {}), ([1, {"a": 1}], {}), (1, {"seen": {}})]
)
def test_value_that_cannot_be_compared_says_where_it_is(value: Any, extra: Any) -> None:
    play = Registers()
    play.invoke(0, "cas", [KEY, [0, value]])
    play.fail(0, **extra) if extra else play.ok(0)
    with pytest.raises(MalformedHistory, match="operation 0: "):
        judge(play.history)


def test_write_of_unknown_end_has_the_version_that_a_reader_saw() -> None:
    play = Registers(versioned=True)
    play.read(1, 9, 3)
    play.invoke(0, "write", [KEY, 9])
    play.info(0)
    assert [each.rule for each in judge(play.history).findings] == ["not-linearizable"]


def test_versions_may_have_gaps() -> None:
    play = Registers(versioned=True)
    play.read(1, None, 0)
    play.write(0, 1, 7)
    play.write(0, 2, 19)
    play.read(1, 2, 19)
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize("versioned", [False, True], ids=["zones", "versions"])
def test_stale_reads_may_be_old_and_go_forward(versioned: bool) -> None:
    play = Registers(versioned=versioned)
    play.write(0, 1, 1)
    play.write(0, 2, 2)
    play.stale(1, None, 0)
    play.stale(1, 1, 1)
    play.stale(1, 2, 2)
    play.stale(1, 1, 1, node=2)
    play.read(3, 2, 2)
    assert judge(play.history).outcome is Outcome.VALID


def test_value_that_came_back_is_told_once_however_often_it_is_read() -> None:
    """Nobody knows which of the two was written first."""
    play = Registers()
    for value in (1, 2):
        play.invoke(value, "write", [KEY, value])
    for value in (1, 2):
        play.ok(value)
    for value in (1, 2, 1, 1):
        play.stale(1, value)
    assert [each.rule for each in judge(play.history).findings] == ["nonmonotonic-read"]


@pytest.mark.parametrize("versioned", [False, True])
def test_stale_reads_may_go_back_where_nobody_told_whom_they_asked(versioned: bool) -> None:
    play = Registers(versioned=versioned)
    for value in (3, 4):
        play.write(0, value, value)
    for value in (4, 3):
        told = {"version": value} if versioned else {}
        play.did(1, "read-stale", [KEY, None], [KEY, value], **told)
    assert judge(play.history).outcome is Outcome.VALID


def test_stale_reads_called_reads_are_caught() -> None:
    play = Registers()
    play.write(0, 1)
    play.write(0, 2)
    play.read(1, 1)
    assert judge(play.history).outcome is Outcome.VIOLATED


def test_value_that_was_left_does_not_come_back_even_where_nothing_else_orders_it() -> None:
    play = Registers()
    for process, value in enumerate((1, 2)):
        play.invoke(process, "write", [KEY, value])
    for value in (1, 2, 1):
        play.stale(5, value)
    for process in range(2):
        play.ok(process)
    assert [each.rule for each in judge(play.history).findings] == ["nonmonotonic-read"]


def cas(play: Play, process: int, old: int | None, new: int) -> None:
    play.did(process, "cas", [KEY, [old, new]], [KEY, [old, new]])


def test_chain_of_compare_and_sets_passes() -> None:
    play = Play(workload="cas-register")
    cas(play, 0, None, 1)
    cas(play, 1, 1, 2)
    play.invoke(0, "cas", [KEY, [1, 3]])
    play.fail(0, seen=2)
    play.did(0, "read", [KEY, None], [KEY, 2])
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.VALID
    assert verdict.counts["by zones"] == 1
    assert verdict.counts["by search"] == 0


def test_two_compare_and_sets_of_one_value_are_found_where_values_come_back() -> None:
    play = Play(workload="cas-register")
    cas(play, 0, None, 1)
    for _ in range(20):
        play.did(2, "read", [KEY, None], [KEY, 1])
    cas(play, 0, 1, 2)
    cas(play, 1, 1, 2)
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.counts["by search"] == 1
    # A cas and what made its old value impossible: not the twenty reads before.
    assert len(verdict.findings[0].ops) <= 6, verdict


def fork(play: Play) -> None:
    cas(play, 0, None, 1)
    cas(play, 0, 1, 2)
    cas(play, 1, 1, 3)


def cycle(play: Play) -> None:
    cas(play, 0, 1, 2)
    cas(play, 1, 2, 1)


def backwards(play: Play) -> None:
    cas(play, 0, 1, 2)
    cas(play, 0, None, 1)


def between(play: Play) -> None:
    """Nothing comes between the two values of a compare-and-set."""
    play.did(0, "write", [KEY, 1], None)
    play.invoke(1, "cas", [KEY, [1, 2]])
    play.did(2, "read", [KEY, None], [KEY, 1])
    play.did(0, "write", [KEY, 9], None)
    play.did(2, "read", [KEY, None], [KEY, 9])
    play.ok(1, [KEY, [1, 2]])
    play.did(2, "read", [KEY, None], [KEY, 2])


def read_of_what_was_replaced(play: Play) -> None:
    for value in range(4):
        cas(play, 0, value - 1 if value else None, value)
    play.did(1, "read", [KEY, None], [KEY, 1])


def unknown_of_a_value_that_never_was(play: Play) -> None:
    play.invoke(0, "cas", [KEY, [77, 1]])
    play.info(0)
    play.did(1, "read", [KEY, None], [KEY, 1])


@pytest.mark.parametrize(
    ("plant", "ops"),
    [
        (fork, (2, 3, 4, 5)),
        (cycle, (0, 1)),
        (backwards, (0, 1, 2, 3)),
        (between, (0, 1, 2, 5, 6, 7, 8, 9, 10, 11)),
        (read_of_what_was_replaced, (4, 5, 8, 9)),
        (unknown_of_a_value_that_never_was, (0, 1, 2, 3)),
    ],
)
def test_compare_and_sets_that_make_no_chain_are_found(
    plant: Callable[[Play], None], ops: tuple[int, ...]
) -> None:
    play = Play(workload="cas-register")
    plant(play)
    verdict = judge(play.history)
    assert {each.rule for each in verdict.findings} == {"not-linearizable"}
    assert ops in {each.ops for each in verdict.findings}, verdict.findings
    assert verdict.counts["by search"] == 0


def test_replaced_value_that_nobody_wrote_is_found() -> None:
    play = Play(workload="cas-register")
    cas(play, 0, 77, 1)
    assert [each.rule for each in judge(play.history).findings] == ["phantom"]


def test_unknown_compare_and_set_that_nobody_saw_need_not_have_happened() -> None:
    play = Play(workload="cas-register")
    play.invoke(0, "cas", [KEY, [1, 2]])
    play.info(0)
    cas(play, 1, None, 1)
    cas(play, 1, 1, 3)
    assert judge(play.history).outcome is Outcome.VALID


def test_failed_compare_and_set_that_tells_nothing_else_is_left_to_the_search() -> None:
    play = Play(workload="cas-register")
    cas(play, 0, None, 1)
    play.invoke(0, "cas", [KEY, [1, 2]])
    play.fail(0, mismatch=True)
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.counts["by search"] == 1


def test_failed_compare_and_set_is_a_read_of_what_it_saw() -> None:
    play = Play(workload="cas-register")
    play.did(0, "write", [KEY, 1], None)
    play.did(0, "write", [KEY, 2], None)
    play.invoke(1, "cas", [KEY, [9, 3]])
    play.fail(1, seen=1)
    assert judge(play.history).outcome is Outcome.VIOLATED


def test_failed_compare_and_set_that_tells_nothing_proves_nothing() -> None:
    play = Play(workload="cas-register")
    play.did(0, "write", [KEY, 1], None)
    play.invoke(1, "cas", [KEY, [1, 3]])
    play.fail(1)
    assert judge(play.history).outcome is Outcome.VALID


def test_search_without_budget_is_undecided_and_names_the_register() -> None:
    play = Play(workload="cas-register")
    for process in range(16):
        play.invoke(process, "cas", [KEY, [process, process + 1]])
    for process in range(16):
        play.info(process)
    play.did(99, "read", [KEY, None], [KEY, 16])
    verdict = judge(play.history, Budget(steps=0, is_late=lambda: True))
    if verdict.outcome is Outcome.UNDECIDED:
        assert KEY in verdict.reason
    else:
        assert verdict.outcome is Outcome.VIOLATED


def test_access_that_is_none_says_where_it_is() -> None:
    play = Play(workload="register")
    index = play.invoke(0, "write", 7)
    play.ok(0)
    with pytest.raises(MalformedHistory, match=f"operation {index}"):
        judge(play.history)


def random_register(random: Random, *, versioned: bool) -> Registers:
    """Effects at the return; each value is written once; some answers are old, or wrong."""
    play = Registers(versioned=versioned)
    values: list[int | None] = [None]
    free, pending, late = list(range(3)), dict[int, int | None](), list[int]()
    for number in range(random.randint(8, 22)):
        if late and random.random() < 0.2:
            values.append(late.pop())
        if free and random.random() < 0.55:
            process = free.pop(random.randrange(len(free)))
            written = number if random.random() < 0.5 else None
            play.invoke(process, "read" if written is None else "write", [KEY, written])
            pending[process] = written
        elif pending:
            process = random.choice(sorted(pending))
            written = pending.pop(process)
            free.append(process)
            if written is None:
                back = random.choice([1, 2, 2, 3]) if random.random() < 0.6 else 1
                version = max(0, len(values) - back)
                told = {"version": version} if versioned else {}
                play.ok(process, [KEY, values[version]], **told)
            elif random.random() < 0.25:
                play.info(process)
                free[-1] = 100 + number
                (late if random.random() < 0.5 else values).append(written)
            else:
                values.append(written)
                told = {"version": len(values) - 1} if versioned else {}
                play.ok(process, **told)
    return play


def test_zones_agree_with_the_search_on_the_same_histories() -> None:
    for number in range(HISTORIES):
        play = random_register(Random(f"registers-{number}"), versioned=False)
        by_zones = check_registers(operations(play.ops))
        assert by_zones.counts["by search"] == 0
        play.did(77, "write", [KEY, 5000], None)
        play.did(77, "write", [KEY, 5000], None)
        by_search = check_registers(operations(play.ops))
        assert by_search.counts["by search"] == 1
        assert by_search.outcome is by_zones.outcome, (number, play.ops)


def test_evidence_of_a_search_has_no_order_by_itself() -> None:
    shown = 0
    for number in range(HISTORIES):
        play = random_register(Random(f"evidence-{number}"), versioned=False)
        play.did(77, "write", [KEY, 5000], None)
        play.did(77, "write", [KEY, 5000], None)
        verdict = check_registers(operations(play.ops))
        for finding in verdict.findings:
            if finding.rule == "not-linearizable":
                ended = {each.index: each for each in operations(play.ops)}
                blamed = [each for index, each in ended.items() if index in finding.ops]
                assert all(each.ret != NEVER for each in blamed)
                assert len(blamed) <= 10, (number, finding)
                shown += 1
    assert shown > HISTORIES // 10


@pytest.mark.parametrize("unknown", [0, 30])
def test_evidence_among_many_overlapping_operations_is_small(unknown: int) -> None:
    play, random = Play(workload="cas-register"), Random(7)
    for number in range(unknown):
        play.invoke(1000 + number, "write", [KEY, random.randrange(5)])
        play.info(1000 + number)
    for _ in range(40):
        for process in range(8):
            play.invoke(process, "write", [KEY, random.randrange(5)])
        for process in random.sample(range(8), 8):
            play.ok(process)
    play.did(9, "read", [KEY, None], [KEY, None])
    (finding,) = judge(play.history).findings
    assert len(finding.ops) == 4
    assert "None" in finding.detail


def test_evidence_of_a_single_operation_is_that_one() -> None:
    play = Play(workload="cas-register")
    play.did(0, "cas", [KEY, [1, 1]], [KEY, [1, 1]])
    play.did(0, "cas", [KEY, [1, 1]], [KEY, [1, 1]])
    assert judge(play.history).outcome is Outcome.VIOLATED


def test_kinds_of_accesses_that_prove_nothing_are_left_out() -> None:
    play = Play(workload="register")
    play.invoke(0, "read", [KEY, None])
    play.info(0)
    play.invoke(1, "read", [KEY, None])
    play.fail(1)
    play.invoke(2, "write", [KEY, 1])
    play.fail(2)
    (register,) = registers(operations(play.ops))
    assert register.accesses == []
    assert [each.kind for each in register.failed] == [Kind.FAIL]
