"""Transactions of clients on a store that may lie: compared with trying all their orders.

The store reads old states, writes into them without looking, lets what it aborts be read, and
answers with values of its own; in half of the histories it does nothing of this. The truth is found
by trying all orders, with and without each transaction of unknown end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count
from random import Random
from typing import Any

from jepsen_like.checkers import judge
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.operations import NEVER, Operation, operations
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind
from tests.agreement.rows import Tally
from tests.jepsen_like.play import Play

__all__ = ["LEVELS", "played", "transactions_compared"]

LEVELS = ("strict-serializable", "serializable")
DOUBTS = ("no order was found", "no operation that is judged was ok")
_State = dict[str, tuple[Any, ...]]  # all that was written to each key


@dataclass(slots=True)
class _Open:
    steps: list[list[Any]]
    answer: list[list[Any]] | None = None
    is_aborted: bool = False


@dataclass(slots=True)
class _Store:
    is_list: bool
    random: Random
    lies: float
    state: _State = field(default_factory=lambda: {"x": (), "y": ()})

    def apply(self, open_: _Open) -> None:
        seen = self._seen()
        open_.answer = []
        for f, key, value in open_.steps:
            if f != "r":
                seen[key] += (value,)
            told = value if f != "r" else self._read(seen[key])
            open_.answer.append([f, key, told])
        open_.is_aborted = self.random.random() < 0.1
        if not open_.is_aborted or self._lies():
            self.state = seen if not self._lies() else self._blindly(open_.steps)

    def _lies(self) -> bool:
        return self.random.random() < self.lies

    def _seen(self) -> _State:
        if not self._lies():
            return dict(self.state)
        return {key: of[: self.random.randint(0, len(of))] for key, of in self.state.items()}

    def _blindly(self, steps: Sequence[Sequence[Any]]) -> _State:
        written = [(key, value) for f, key, value in steps if f != "r"]
        added = {key: tuple(value for of, value in written if of == key) for key in self.state}
        return {key: of + added[key] for key, of in self.state.items()}

    def _read(self, written: tuple[Any, ...]) -> Any:
        if self._lies():
            written = (*written[:-1], *self.random.choices([1, 2, 3], k=self.random.randint(0, 1)))
        return list(written) if self.is_list else next(reversed(written), None)


def played(
    workload: str, random: Random, most: int = 6, lies: Sequence[float] = (0, 0, 0.1, 0.2)
) -> History:
    """`most`: transactions; `lies`: shares of what the store does wrong, of which one is chosen."""
    play = Play(workload=workload)
    store = _Store(WRITE_OF[workload] == "append", random, random.choice(lies))
    pending: dict[int, _Open] = {}
    names, values = list(range(random.choice([1, 2, 3]))), count(1)
    left = random.randint(1, most)
    while left or pending:
        place = random.randrange(len(names))
        process = names[place]
        if process not in pending:
            if left:
                left -= 1
                steps = _asked(random, WRITE_OF[workload], values)
                play.invoke(process, "txn", steps)
                pending[process] = _Open(steps)
            continue
        open_ = pending[process]
        if open_.answer is None and random.random() < 0.8:
            store.apply(open_)
        elif open_.answer is None or random.random() < 0.15:
            play.info(process, open_.steps)
            names[place] += len(names)
            del pending[process]
        else:
            end = play.fail if open_.is_aborted else play.ok
            end(process, open_.steps if open_.is_aborted else open_.answer)
            del pending[process]
    return play.history


def _asked(random: Random, write: str, values: Iterable[int]) -> list[list[Any]]:
    drawn = iter(values)
    reads = [random.random() < 0.5 for _ in range(random.randint(1, 3))]
    key = random.choice(["x", "xy", "xy"])
    return [
        ["r", random.choice(key), None] if is_read else [write, random.choice(key), next(drawn)]
        for is_read in reads
    ]


def is_possible(history: History, *, is_list: bool, is_strict: bool) -> bool:
    every = operations(history.ops)
    sure = [each for each in every if each.kind is Kind.OK]
    perhaps = [each for each in every if each.kind is Kind.INFO]
    return any(
        _fits([*sure, *some], {}, is_list, is_strict)
        for size in range(len(perhaps) + 1)
        for some in combinations(perhaps, size)
    )


def _fits(left: Sequence[Operation], state: _State, is_list: bool, is_strict: bool) -> bool:
    if not left:
        return True
    first_ret = min(each.ret for each in left)
    for each in left:
        if is_strict and each.call > first_ret:
            continue
        after = _after(each, state, is_list)
        others = [other for other in left if other is not each]
        if after is not None and _fits(others, after, is_list, is_strict):
            return True
    return False


def _after(operation: Operation, state: _State, is_list: bool) -> _State | None:
    """None if it cannot have read that."""
    is_ok = operation.kind is Kind.OK
    after = dict(state)
    for f, key, value in operation.result if is_ok else operation.argument:
        written = after.get(key, ())
        if f != "r":
            after[key] = (*written, value)
        elif is_ok and value != (list(written) if is_list else next(reversed(written), None)):
            return None
    return after


def transactions_compared(workload: str, level: str, numbers: Iterable[int]) -> Tally:
    tally = Tally()
    for number in numbers:
        history = played(workload, Random(f"{workload} {number}"))
        history.header.options["isolation"] = level  # type: ignore[index]
        is_list, is_strict = WRITE_OF[workload] == "append", level == LEVELS[0]
        is_right = is_possible(history, is_list=is_list, is_strict=is_strict)
        truth = Outcome.VALID if is_right else Outcome.VIOLATED
        verdict = judge(history)
        tally.truth[truth] += 1
        tally.unknown += any(each.ret == NEVER for each in operations(history.ops))
        if verdict.outcome is Outcome.UNDECIDED:
            tally.undecided += 1
            if not any(doubt in verdict.reason for doubt in DOUBTS):
                tally.wrong.append(f"{workload} {number}: undecided for {verdict.reason}")
        elif verdict.outcome is not truth:
            what = f"judge says {verdict.outcome}, truth is {truth}"
            tally.wrong.append(f"{workload}, {level}, {number}: {what}")
    return tally
