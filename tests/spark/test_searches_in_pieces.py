"""Registers that only a search decides are judged in pieces as they are whole.

`python -m tests.spark.test_searches_in_pieces FIRST LAST` compares the histories of these seeds.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import INITIAL, History, Kind, Value
from spark import searched_relations, searched_segments
from spark.distributed_searches import Searches
from spark.searched_relations import Segment
from spark.searched_rows import text_of
from tests.jepsen_like.play import Play
from tests.spark.moved_here import Here
from tests.spark.tables import table_of

MB = 1 << 20  # no limit
RANDOM = 40
ALIKE: list[Value] = [1, "1", True, 1.0, None]
Told = tuple[Outcome, Outcome]


def in_pieces(history: History, size: int, *, in_segment: int = 1_000_000) -> Verdict:
    table = table_of(history, "")
    initial = history.header.options.get(INITIAL, [None])
    judged = Searches(
        moves=Here(size=size),
        budget=Budget(),
        mb=MB,
        in_segment=in_segment,
        initial=text_of(initial[0]),
    )
    verdict, doubts = judged.judged([table.slice(0, 5), table.slice(5)])
    broken = {each.object for each in verdict.findings}
    return Verdict.of(
        verdict.findings, doubts={name: why for name, why in doubts.items() if name not in broken}
    )


@dataclass
class Clients:
    """Registers, and clients that may lie, crash, or all pause at once."""

    random: Random
    play: Play = field(default_factory=lambda: Play(workload="cas-register"))
    now: dict[str, Value] = field(default_factory=dict)
    open: dict[int, tuple[str, str, Any]] = field(default_factory=dict)
    late: list[tuple[str, str, Any]] = field(default_factory=list)
    asked: list[Value] = field(default_factory=lambda: [None])
    fresh: int = 10

    def __post_init__(self) -> None:
        draw = self.random
        self.keys = draw.choice(["k", "k", "ab"])
        self.values = draw.choice([[1, 2], [1, 2, 3], ALIKE, []])
        self.lying = draw.choice([0, 0, 0.05, 0.3])
        self.crashing = draw.choice([0, 0.05, 0.2])
        self.pausing = draw.choice([0, 0.2, 0.7])
        self.untold = draw.choice([0, 0.3])
        self.clients = [*range(draw.randint(1, 5))]
        if draw.random() < 0.3:
            begins = draw.choice([1, "1", None])
            self.play.options[INITIAL] = [begins]
            self.now = dict.fromkeys(self.keys, begins)

    def value(self) -> Value:
        if not self.values or self.random.random() < 0.1:
            self.fresh += 1
            return self.fresh
        return self.random.choice(self.values)

    def run(self) -> History:
        for _ in range(self.random.randint(4, 40)):
            if self.late and self.random.random() < 0.3:
                self.act(*self.late.pop())
            place = self.random.randrange(len(self.clients))
            if self.clients[place] not in self.open:
                self.ask(self.clients[place])
            else:
                self.end(place)
            while self.open and self.random.random() < self.pausing:
                self.end(next(at for at, each in enumerate(self.clients) if each in self.open))
        return self.play.history

    def ask(self, client: int) -> None:
        key = self.random.choice(self.keys)
        f = self.random.choice(["read", "read", "write", "cas", "cas"])
        expected = self.now.get(key) if self.random.random() < 0.6 else self.value()
        asked = {"read": None, "write": self.value(), "cas": [expected, self.value()]}[f]
        if f == "write" and self.random.random() < 0.1:
            asked = None
        self.asked.append(asked[1] if isinstance(asked, list) else asked)
        self.open[client] = f, key, asked
        self.play.invoke(client, f, [key, asked])

    def act(self, f: str, key: str, asked: Any) -> bool:
        if f == "write":
            self.now[key] = asked
        elif f == "cas":
            if repr(self.now.get(key)) != repr(asked[0]):
                return False
            self.now[key] = asked[1]
        return True

    def end(self, place: int) -> None:
        client = self.clients[place]
        f, key, asked = self.open.pop(client)
        lies = self.random.random() < self.lying
        seen = self.random.choice([*self.asked[-4:], 7]) if lies else self.now.get(key)
        if self.random.random() < self.crashing:
            if self.random.random() < 0.4:
                self.act(f, key, asked)
            elif self.random.random() < 0.5:
                self.late.append((f, key, asked))
            if self.random.random() < 0.7:
                self.play.info(client)
            else:
                self.play._open.pop(client)
            self.clients[place] += 10
        elif f != "read" and self.random.random() < 0.05:
            self.play.fail(client)
        elif f == "read":
            self.play.ok(client, [key, seen])
        elif self.act(f, key, asked) or lies:
            self.play.ok(client)
        elif self.random.random() < self.untold:
            self.play.fail(client, mismatch=True)
        else:
            self.play.fail(client, **self.random.choice([{"seen": seen}, {"seen": seen}, {}]))


def drawn(seed: int) -> History:
    return Clients(Random(f"searches in pieces {seed}")).run()


def agrees(history: History, size: int, *, in_segment: int = 1_000_000) -> Told:
    """A change to what was there already may have made a phantom for the whole judge alone."""
    expected, found = judge(history), in_pieces(history, size, in_segment=in_segment)
    shown = any(op.kind.value == "ok" for op in history.ops)
    if found.outcome is not Outcome.UNDECIDED and shown:
        assert found.outcome is expected.outcome, (found, expected)
    for name, outcome in found.objects.items():
        if outcome is Outcome.VIOLATED:
            assert expected.objects[name.strip()] is Outcome.VIOLATED
    for each in found.findings:
        assert each.ops
        assert each.rule in {"phantom", "G1a", *(one.rule for one in expected.findings)}
    return (expected.outcome if shown else found.outcome), found.outcome


def compared(first: int, last: int) -> Counter[Told]:
    told = Counter[Told]()
    for seed in range(first, last):
        size = 1 + seed % 4
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(searched_relations, "_BLOCK", 1 + seed % 7)
                told[agrees(drawn(seed), size, in_segment=(1_000_000, 6)[seed % 5 == 4])] += 1
        except BaseException:
            print(f"seed {seed}: python -m {__spec__.name} {seed} {seed + 1}")
            raise
    return told


def test_random_registers_are_judged_as_they_are_whole() -> None:
    told = compared(0, RANDOM)
    assert told[Outcome.VALID, Outcome.VALID]
    assert told[Outcome.VIOLATED, Outcome.VIOLATED]


def used_twice(play: Play) -> None:
    """The write of unknown end explains one read of 1, and no second one."""
    wrote(play, 1)
    play.invoke(7, "write", ["k", 1])
    play.info(7)
    for value in (2, 3):
        wrote(play, value)
        read(play, 1)


def taken_from_the_past(play: Play) -> None:
    """1 was there once, and 2 since then, whatever was read meanwhile."""
    for value in (1, 2, 1, 2):
        wrote(play, value)
    for value in (2, 2, 1):
        read(play, value)


def failed_for_the_value_that_was_there(play: Play) -> None:
    for value in (1, 2, 1):
        wrote(play, value)
    read(play, 1)
    play.invoke(0, "cas", ["k", [1, 2]])
    play.fail(0, mismatch=True)


def made_of_a_text(play: Play) -> None:
    for value in (1, "1", 1):
        wrote(play, value)
    play.did(0, "cas", ["k", ["1", 2]], ["k", ["1", 2]])


def wrote(play: Play, value: Value) -> None:
    play.did(0, "write", ["k", value], ["k", value])


def read(play: Play, value: Value) -> None:
    play.did(1, "read", ["k", None], ["k", value])


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "plant",
    [used_twice, taken_from_the_past, failed_for_the_value_that_was_there, made_of_a_text],
)
def test_planted_violation_is_found_however_the_register_is_cut(plant: Any, size: int) -> None:
    play = Play(workload="cas-register")
    plant(play)
    assert agrees(play.history, size) == (Outcome.VIOLATED, Outcome.VIOLATED)


def overlapping(play: Play, clients: int) -> None:
    """While the first write is open others follow one another."""
    play.invoke(9, "write", ["k", 1])
    for _ in range(clients):
        wrote(play, 1)
    play.ok(9)


def test_stretch_that_is_too_large_is_undecided() -> None:
    play = Play(workload="cas-register")
    overlapping(play, 8)
    read(play, 1)
    found = in_pieces(play.history, 2, in_segment=6)
    assert found.outcome is Outcome.UNDECIDED
    assert "among 9 accesses no moment finds nothing open" in found.reason


def test_stretch_that_is_too_large_hides_no_violation_elsewhere() -> None:
    play = Play(workload="cas-register")
    overlapping(play, 8)
    for value in (2, 3):
        wrote(play, value)
    assert in_pieces(play.history, 2, in_segment=6).outcome is Outcome.UNDECIDED
    read(play, 2)
    assert in_pieces(play.history, 2, in_segment=6).outcome is Outcome.VIOLATED


def test_many_changes_of_unknown_end_are_undecided_only_where_they_are_needed() -> None:
    """Each of 9 values was written twice, at last by nobody knows whom; then each is read."""
    play = Play(workload="cas-register")
    values = range(1, 10)
    for value in values:
        wrote(play, value)
        play.invoke(20 + value, "write", ["k", value])
        play.info(20 + value)
    assert in_pieces(play.history, 100).outcome is Outcome.VALID
    wrote(play, 0)
    for value in values:
        read(play, value)
    assert in_pieces(play.history, 100).outcome is Outcome.VALID
    found = in_pieces(play.history, 10)
    assert found.outcome is Outcome.UNDECIDED
    assert "9 changes of unknown end may have taken effect" in found.reason


def test_changes_that_matter_are_found_without_comparing_each_to_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1,000 crashes at 5 values: a million comparisons in each block of 200 operations."""
    changes = [unknown_write(call, call % 5) for call in range(1000)]
    monkeypatch.setattr(Operation, "__eq__", lambda one, other: pytest.fail("compared"))
    found = searched_relations.mattering(changes, {"1", "3"}, has_untold=False)
    assert [each.call % 5 for each in found].count(1) == 200
    assert len(found) == 400


def test_failed_compare_and_set_does_not_tell_unseen_values_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody saw what the crashed writes made. Their values are not told apart, so that a failed
    compare-and-set leaves one state, not 40."""
    play = Play(workload="cas-register")
    wrote(play, 1)
    for crashed in range(100, 140):
        play.invoke(crashed, "write", ["k", crashed])
        play.info(crashed)
    fail_untold(play, 1)
    wrote(play, 1)
    fail_untold(play, 1)
    counts = states_counted(monkeypatch)
    assert in_pieces(play.history, 1_000).outcome is Outcome.VALID
    assert max(counts) == 1


def states_counted(patch: pytest.MonkeyPatch) -> list[int]:
    """How many states each block leaves."""
    counts, undominated = list[int](), searched_relations.undominated

    def counted(states: Any) -> Any:
        found = undominated(states)
        counts.append(len(found))
        return found

    patch.setattr(searched_relations, "undominated", counted)
    return counts


def test_value_that_a_failed_compare_and_set_expected_is_no_unseen_one() -> None:
    """The crashed write of 9 explains that a compare-and-set failed for 1, and not that
    another one failed for 9 after that."""
    play = Play(workload="cas-register")
    wrote(play, 1)
    wrote(play, 1)
    play.invoke(7, "write", ["k", 9])
    play.info(7)
    fail_untold(play, 1)
    assert agrees(play.history, 3) == (Outcome.VALID, Outcome.VALID)
    fail_untold(play, 9)
    assert agrees(play.history, 3) == (Outcome.VIOLATED, Outcome.VIOLATED)


def fail_untold(play: Play, expected: Value) -> None:
    play.invoke(0, "cas", ["k", [expected, 5]])
    play.fail(0, mismatch=True)


def unknown_write(call: int, value: Value) -> Operation:
    return Operation(
        process=0, f="write", kind=Kind.INFO, argument=value, call=call, ret=NEVER, index=call
    )


def test_reads_that_may_be_old_and_versions_are_undecided() -> None:
    for f, extra in (("read-stale", {}), ("read", {"version": 1})):
        play = Play(workload="cas-register")
        play.did(0, "write", ["k", 1], ["k", 1])
        play.did(1, f, ["k", None], ["k", 1], **extra)
        assert in_pieces(play.history, 1).outcome is Outcome.UNDECIDED


def test_what_makes_no_sense_accuses_nobody() -> None:
    play = Play(workload="cas-register")
    play.did(0, "write", ["k", {"a": 1}], ["k", {"a": 1}])
    read(play, 7)
    found = in_pieces(play.history, 1)
    assert found.outcome is Outcome.UNDECIDED
    assert "makes no sense" in found.reason


def all_are_cuts(call: Any, ret: Any, before: int = 0) -> Any:
    return np.arange(len(call))


def nothing_matters(unknown: Any, seen: Any, *, has_untold: bool) -> list[Any]:
    return []


def only_what_returned_first(segment: Segment) -> set[str]:
    return segment._seen(segment._call < segment._ret.min())


BUGS: dict[str, tuple[Any, str, Any]] = {
    "open operations are cut": (searched_segments, "quiescent", all_are_cuts),
    "unknown changes are left out": (searched_relations, "mattering", nothing_matters),
    "few values are told apart": (Segment, "_values", only_what_returned_first),
}


@pytest.mark.parametrize("bug", BUGS)
def test_bug_that_is_planted_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BUGS[bug])
    with pytest.raises((AssertionError, IndexError)):
        compared(0, 2 * RANDOM)


if __name__ == "__main__":
    for outcomes, number in sorted(compared(*map(int, sys.argv[1:])).items(), key=str):
        print(number, *outcomes)
