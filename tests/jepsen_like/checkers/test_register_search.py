"""The frontier of registers: what is alike is told apart no more, and no answer changes."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.models import ILLEGAL, REGISTER
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.register_accesses import registers
from jepsen_like.checkers.register_search import _Register, register_frontier
from jepsen_like.checkers.search import Budget, search
from jepsen_like.checkers.search_depth import Search
from jepsen_like.checkers.verdict import Outcome
from tests.jepsen_like.checkers.oracle import is_linearizable
from tests.jepsen_like.play import Play

VALUES = 3


def answer_of(turns: Search) -> Outcome:
    while True:
        try:
            next(turns)
        except StopIteration as ended:
            outcome: Outcome = ended.value.outcome
            return outcome


def many_writes(writes: int, reads: int) -> Play:
    """All writes are open while the reads see one value after the other."""
    play = Play(workload="register")
    for process in range(writes):
        play.invoke(process, "write", ["k", process % 5])
    random = Random(1)
    for _ in range(reads):
        play.did(writes, "read", ["k", None], ["k", random.randrange(5)])
    for process in range(writes):
        play.ok(process)
    return play


def test_sixty_open_writes_of_five_values_are_too_few_for_a_hundred_reads() -> None:
    (register,) = registers(operations(many_writes(60, 100).ops))
    answer = search(register.accesses, REGISTER, Budget(steps=5_000))
    assert answer.outcome is Outcome.VIOLATED
    (enough,) = registers(operations(many_writes(60, 50).ops))
    assert search(enough.accesses, REGISTER, Budget(steps=5_000)).outcome is Outcome.VALID


def test_evidence_is_the_reads_that_need_too_many_writes() -> None:
    play = many_writes(20, 40)
    (finding,) = judge(play.history, Budget(steps=5_000)).findings
    assert finding.rule == "not-linearizable"
    assert sum(play.ops[index].f == "read" for index in finding.ops) > 8


def test_write_of_what_is_there_covers_another_one() -> None:
    play = Play(workload="register")
    play.did(0, "write", ["k", 1], None)
    play.invoke(1, "write", ["k", 2])
    play.invoke(2, "write", ["k", 1])
    play.ok(2)
    play.ok(1)
    play.did(0, "read", ["k", None], ["k", 1])
    (register,) = registers(operations(play.ops))
    assert answer_of(register_frontier(register.accesses)) is Outcome.VALID


def random_accesses(random: Random) -> Sequence[Operation]:
    """Any answers at all: half of the clients lie."""
    play = Play(workload="cas-register")
    unknown, lies = random.choice([0.0, 0.3]), random.choice([0.1, 0.5])
    value: Any = None
    names, pending = list(range(random.choice([2, 4, 6]))), dict[int, tuple[str, Any]]()
    for _ in range(random.randint(6, 15)):
        place = random.randrange(len(names))
        process = names[place]
        if process not in pending:
            old, new = random.choice([value, None, 0, 1]), random.randrange(VALUES)
            wishes = [("read", None), ("read", None), ("write", new), ("write", 0)]
            f, asked = random.choice([*wishes, ("cas", [old, new])])
            pending[process] = f, asked
            play.invoke(process, f, ["k", asked])
            continue
        f, asked = pending.pop(process)
        if random.random() < unknown:
            names[place] += len(names)
            play.info(process)
        elif f == "read":
            answer = random.choice([None, 0, 1]) if random.random() < lies else value
            play.ok(process, ["k", answer])
        elif f == "cas" and (value != asked[0]) is (random.random() > lies):
            play.fail(process, **random.choice([{"mismatch": True}, {"seen": value}]))
        else:
            value = asked[1] if f == "cas" else asked
            play.ok(process)
    found = registers(operations(play.ops))
    return found[0].accesses if found else []


def steps(state: Any, operation: Operation) -> Sequence[Any]:
    after = REGISTER.step(state, operation)
    return [] if after is ILLEGAL else [after]


@pytest.mark.parametrize("seed", range(20))
def test_narrow_frontier_is_never_wrong_and_a_wide_one_decides(seed: int) -> None:
    random = Random(f"registers {seed}")
    for _ in range(15):
        accesses = random_accesses(random)
        is_right = is_linearizable(accesses, None, steps)
        truth = Outcome.VALID if is_right else Outcome.VIOLATED
        assert answer_of(register_frontier(accesses)) is truth
        for width in (1, 2):
            for joins, proof in ((True, Outcome.VIOLATED), (False, Outcome.VALID)):
                found = answer_of(_Register(width, joins).run(accesses))
                assert found is truth or found is not proof
