"""What groups commit: each kind of violation is found, and what is none passes."""

from collections.abc import Callable

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import MalformedHistory, Value
from tests.jepsen_like.play import Play

KEY = "chaos-0"
GROUP = "readers"


class Group(Play):
    """A log of six records; some of it was read, and 3 is committed."""

    def __init__(self) -> None:
        super().__init__(workload="kafka")
        for at in range(6):
            self.send(0, KEY, at, at)
        self.read_all(99, {KEY: [[at, at] for at in range(6)]})
        self.commit(3)

    def commit(self, offset: int, generation: int = 1, process: int = 1) -> None:
        self.invoke(process, "commit", {KEY: offset}, group=GROUP, generation=generation)
        self.ok(process)

    def committed(self, offset: int | None) -> None:
        self.invoke(2, "committed", [KEY], group=GROUP)
        self.ok(2, {KEY: offset})

    def perhaps_commit(self, offset: int, process: int) -> None:
        self.invoke(process, "commit", {KEY: offset}, group=GROUP, generation=1)
        self.info(process)

    def resume(self, offset: int, process: int = 3) -> None:
        self.invoke(process, "assign", [KEY], group=GROUP, seek="committed")
        self.ok(process)
        self.poll(process, {KEY: [[offset, offset]]})


def backwards(play: Group) -> None:
    play.commit(2)


def backwards_behind_a_slow_one(play: Group) -> None:
    play.invoke(5, "commit", {KEY: 4}, group=GROUP, generation=1)
    play.invoke(6, "commit", {KEY: 2}, group=GROUP, generation=1)
    play.ok(5)
    play.ok(6)


def stale(play: Group) -> None:
    play.commit(4, generation=2)
    play.commit(5, generation=1)


def forgotten(play: Group) -> None:
    play.committed(None)


def never_committed(play: Group) -> None:
    play.committed(5)


def resumed_too_early(play: Group) -> None:
    play.resume(2)


def resumed_too_late(play: Group) -> None:
    play.resume(4)


# --- of two values only the second one matters --------------------------------------------------


def backwards_from_the_second_commit(play: Group) -> None:
    play.commit(5)
    play.commit(4)


def backwards_in_the_second_generation(play: Group) -> None:
    play.commit(5, generation=2)
    play.commit(4, generation=2)


def backwards_for_the_second_key(play: Group) -> None:
    play.did(1, "commit", {"other": 9, KEY: 4}, None, group=GROUP, generation=1)
    play.did(1, "commit", {"other": 9, KEY: 2}, None, group=GROUP, generation=1)


def stale_behind_the_second_generation(play: Group) -> None:
    play.commit(4, generation=3)
    play.commit(5, generation=2)


def forgotten_for_the_one_before(play: Group) -> None:
    play.commit(5)
    play.committed(3)


def never_committed_between_two_that_were(play: Group) -> None:
    play.commit(5)
    play.committed(4)


def resumed_from_the_commit_before_the_last(play: Group) -> None:
    play.commit(5)
    play.resume(3)


def resumed_between_two_commits(play: Group) -> None:
    play.commit(5)
    play.resume(4)


def resumed_by_one_process_for_the_second_time(play: Group) -> None:
    play.resume(3)
    play.commit(5)
    play.resume(3)


def resumed_in_the_second_poll(play: Group) -> None:
    """The first one is empty."""
    play.commit(5)
    play.invoke(3, "assign", [KEY], group=GROUP, seek="committed")
    play.ok(3)
    play.poll(3, {KEY: []})
    play.poll(3, {KEY: [[3, 3], [4, 4], [5, 5]]})


def resumed_for_the_second_key(play: Group) -> None:
    for at in range(6):
        play.send(0, "other", at, at)
    play.read_all(98, {"other": [[at, at] for at in range(6)]})
    play.did(1, "commit", {"other": 1, KEY: 5}, None, group=GROUP, generation=1)
    play.invoke(3, "assign", ["other", KEY], group=GROUP, seek="committed")
    play.ok(3)
    play.poll(3, {"other": [[1, 1]], KEY: [[3, 3]]})


def resumed_from_what_another_group_committed(play: Group) -> None:
    play.did(1, "commit", {KEY: 5}, None, group="others", generation=1)
    play.resume(5)


def resumed_while_a_commit_was_open_from_one_before_the_last(play: Group) -> None:
    """Of 3, 4 and 5 only the last two can have been committed then."""
    play.commit(4)
    play.invoke(7, "commit", {KEY: 5}, group=GROUP, generation=1)
    play.resume(3)
    play.ok(7)


PLANTED: list[tuple[str, Callable[[Group], None]]] = [
    ("commit-backwards", backwards),
    ("commit-backwards", backwards_behind_a_slow_one),
    ("stale-commit", stale),
    ("not-linearizable", forgotten),
    ("phantom", never_committed),
    ("resumed-elsewhere", resumed_too_early),
    ("resumed-elsewhere", resumed_too_late),
    ("commit-backwards", backwards_from_the_second_commit),
    ("commit-backwards", backwards_in_the_second_generation),
    ("commit-backwards", backwards_for_the_second_key),
    ("stale-commit", stale_behind_the_second_generation),
    ("not-linearizable", forgotten_for_the_one_before),
    ("phantom", never_committed_between_two_that_were),
    ("resumed-elsewhere", resumed_from_the_commit_before_the_last),
    ("resumed-elsewhere", resumed_between_two_commits),
    ("resumed-elsewhere", resumed_by_one_process_for_the_second_time),
    ("resumed-elsewhere", resumed_in_the_second_poll),
    ("resumed-elsewhere", resumed_for_the_second_key),
    ("resumed-elsewhere", resumed_from_what_another_group_committed),
    ("resumed-elsewhere", resumed_while_a_commit_was_open_from_one_before_the_last),
]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_planted_violation_is_found_with_its_operations(
    rule: str, plant: Callable[[Group], None]
) -> None:
    play = Group()
    plant(play)
    verdict = judge(play.history)
    (finding,) = verdict.findings
    assert finding.rule == rule
    assert finding.ops
    assert verdict.objects[f"{GROUP} {KEY}"] is Outcome.VIOLATED


def test_what_is_committed_is_read_and_resumed_from() -> None:
    play = Group()
    play.committed(3)
    play.resume(3)
    play.commit(4)
    play.commit(4)
    play.resume(4)
    play.commit(4, generation=2, process=3)
    play.committed(4)
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.VALID
    assert verdict.counts["commits"] == 4


def test_process_that_seeks_another_place_before_it_polls_resumes_nothing() -> None:
    play = Group()
    for seek in ("committed", "beginning"):
        play.invoke(3, "assign", [KEY], group=GROUP, seek=seek)
        play.ok(3)
    play.poll(3, {KEY: [[0, 0]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_only_the_first_record_of_a_reading_resumes() -> None:
    play = Group()
    play.resume(3)
    play.poll(3, {KEY: [[4, 4]]})
    play.invoke(3, "assign", [KEY])  # without a seek it goes on
    play.ok(3)
    play.poll(3, {KEY: [[5, 5]]})
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize("offset", [3, 5])
def test_commit_of_unknown_end_may_count_late_or_never(offset: int) -> None:
    play = Group()
    play.perhaps_commit(5, process=7)
    play.resume(3)
    play.resume(offset)
    play.committed(offset)
    assert judge(play.history).outcome is Outcome.VALID


def test_what_may_be_old_was_committed_once() -> None:
    play = Group()
    play.commit(5)
    for offset in (None, 3, 5):
        play.did(4, "committed-stale", [KEY], {KEY: offset}, group=GROUP, node=1)
    for process, offset in ((5, 3), (6, 5)):
        play.invoke(process, "assign", [KEY], group=GROUP, seek="committed-stale")
        play.ok(process)
        play.poll(process, {KEY: [[offset, offset]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_what_may_be_old_lies_at_a_commit_and_not_between_two() -> None:
    play = Group()
    play.commit(5)
    play.invoke(5, "assign", [KEY], group=GROUP, seek="committed-stale")
    play.ok(5)
    play.poll(5, {KEY: [[4, 4]]})
    (finding,) = judge(play.history).findings
    assert finding.rule == "resumed-elsewhere"


@pytest.mark.parametrize("witness", ["send", "poll", "txn"])
def test_record_that_anybody_saw_may_not_be_skipped_when_resuming(witness: str) -> None:
    """Of two records behind the commit the second is the first that this reader has."""
    play = Play(workload="kafka")
    play.did(1, "commit", {KEY: 1}, None, group=GROUP, generation=1)
    if witness == "poll":
        play.poll(4, {KEY: [[2, 7]]})
    else:
        asked, told = [["send", KEY, 7]], [["send", KEY, [2, 7]]]
        play.did(4, witness, asked, told)
    play.invoke(3, "assign", [KEY], group=GROUP, seek="committed")
    play.ok(3)
    play.poll(3, {KEY: [[5, 8]]})
    rules = {each.rule for each in judge(play.history).findings}
    assert "resumed-elsewhere" in rules


def test_what_may_be_old_may_not_be_wrong() -> None:
    play = Group()
    play.did(4, "committed-stale", [KEY], {KEY: 5}, group=GROUP)
    play.invoke(5, "assign", [KEY], group=GROUP, seek="committed-stale")
    play.ok(5)
    play.poll(5, {KEY: [[4, 4]]})
    rules = [each.rule for each in judge(play.history).findings]
    assert sorted(rules) == ["phantom", "resumed-elsewhere"]


def test_commit_that_failed_does_not_count() -> None:
    play = Group()
    play.invoke(5, "commit", {KEY: 5}, group=GROUP, generation=1)
    play.fail(5)
    play.resume(3)
    assert judge(play.history).outcome is Outcome.VALID


def test_reading_without_any_commit_may_begin_anywhere() -> None:
    play = Group()
    play.invoke(3, "assign", [KEY], group="others", seek="committed")
    play.ok(3)
    play.poll(3, {KEY: [[5, 5]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_resuming_skips_offsets_that_hold_no_record() -> None:
    play = Play(workload="kafka")
    play.send(0, KEY, 1, 0)
    play.send(0, KEY, 2, 5)
    play.did(1, "commit", {KEY: 1}, None, group=GROUP, generation=1)
    play.invoke(3, "assign", [KEY], group=GROUP, seek="committed")
    play.ok(3)
    play.poll(3, {KEY: [[5, 2]]})
    play.read_all(9, {KEY: [[0, 1], [5, 2]]})
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize(
    ("f", "value", "extra"),
    [
        ("commit", {KEY: "x"}, {"group": GROUP}),
        ("commit", [KEY], {"group": GROUP}),
        ("commit", {KEY: 1}, {}),
        ("committed", [KEY], {"group": GROUP}),
    ],
)
def test_operation_that_is_none_says_where_it_is(
    f: str, value: Value, extra: dict[str, Value]
) -> None:
    play = Play(workload="kafka")
    play.did(0, f, value, value, **extra)
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)
