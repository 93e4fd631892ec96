"""Each kind of violation of a log is found, under its name; and what is no violation passes."""

from collections.abc import Callable
from random import Random

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import MalformedHistory, Value
from tests.jepsen_like.play import Play

KEY = "chaos-0"


def three_sent() -> Play:
    play = Play()
    for value in range(3):
        play.send(0, KEY, value, value)
    return play


def rules(play: Play) -> set[str]:
    return {finding.rule for finding in judge(play.history).findings}


def lost_write(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [2, 2]]})


def sought(play: Play, process: int, seek: Value = "end", f: str = "assign") -> None:
    play.invoke(process, f, [KEY], seek=seek)
    play.ok(process, [KEY])


def lost_behind_the_first_record_of_a_reader_from_the_end(play: Play) -> None:
    """Of two readers only the later one passed it, and only in its second poll."""
    sought(play, 8)
    play.poll(8, {KEY: [[2, 2]]})
    sought(play, 9)
    play.poll(9, {KEY: [[0, 0]]})
    play.poll(9, {KEY: [[2, 2]]})


def unseen(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [1, 1]]})


def vanished(play: Play) -> None:
    play.read_all(8, {KEY: [[0, 0], [1, 1], [2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1]]})


def vanished_for_one_of_two(play: Play) -> None:
    """Who reads beside another one that finds it must find it, too: it was acknowledged before."""
    for reader in (8, 9):
        play.invoke(reader, "assign", [KEY], seek="beginning")
        play.ok(reader)
    play.poll(8, {KEY: [[0, 0], [1, 1], [2, 2]]}, caught_up=True)
    play.poll(9, {KEY: [[0, 0], [1, 1]]}, caught_up=True)


def vanished_until_its_reader_had_come_to_the_end(play: Play) -> None:
    """It went on, and found what it had missed."""
    play.read_all(8, {KEY: [[0, 0], [1, 1], [2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1]]})
    play.poll(9, {KEY: [[2, 2]]})


def inconsistent_offsets(play: Play) -> None:
    play.invoke(1, "send", [["send", KEY, 7]])
    play.info(1)
    play.read_all(8, {KEY: [[0, 0], [1, 1], [2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 7], [2, 2]]})


def duplicate(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 1]]})


def acknowledged_elsewhere(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [1, 1], [3, 2]]})


def aborted_read(play: Play) -> None:
    play.invoke(1, "send", [["send", KEY, 7]])
    play.fail(1)
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 7]]})


def phantom(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 77]]})


def precommitted_read(play: Play) -> None:
    asked = [["send", KEY, 7], ["poll"]]
    play.did(1, "txn", asked, [["send", KEY, [3, 7]], ["poll", {KEY: [[3, 7]]}]])
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 7]]})


def precommitted_read_that_another_reader_had_too(play: Play) -> None:
    play.invoke(1, "txn", [["send", KEY, 7], ["poll"]])
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 7]]})
    play.ok(1, [["send", KEY, [3, 7]], ["poll", {KEY: [[3, 7]]}]])


def poll_skip(play: Play) -> None:
    play.poll(1, {KEY: [[0, 0]]})
    play.poll(1, {KEY: [[2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})


def nonmonotonic_poll(play: Play) -> None:
    play.poll(1, {KEY: [[0, 0], [1, 1]]})
    play.poll(1, {KEY: [[1, 1], [2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})


def internal_poll_skip(play: Play) -> None:
    play.poll(1, {KEY: [[0, 0], [2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})


def internal_nonmonotonic_poll(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [2, 2], [1, 1]]})


def nonmonotonic_send(play: Play) -> None:
    play.send(1, KEY, 10, 4)
    play.send(1, KEY, 11, 3)
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 11], [4, 10]]})


def internal_nonmonotonic_send(play: Play) -> None:
    asked = [["send", KEY, 10], ["send", KEY, 11]]
    play.did(1, "txn", asked, [["send", KEY, [4, 10]], ["send", KEY, [3, 11]]])
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 11], [4, 10]]})


def acknowledged_before_an_earlier_offset_was_sent(play: Play) -> None:
    play.send(1, KEY, 10, 4)
    play.send(2, KEY, 11, 3)
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 11], [4, 10]]})


def stale_end(play: Play) -> None:
    play.poll(1, {}, ends={KEY: 2})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})


def read_before_it_was_sent(play: Play) -> None:
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], [3, 7]]})
    play.send(1, KEY, 7, 3)


# Every rule of the log workload, and histories that break it.
PLANTED: list[tuple[str, Callable[[Play], None]]] = [
    ("lost-write", lost_write),
    ("lost-write", lost_behind_the_first_record_of_a_reader_from_the_end),
    ("unseen", unseen),
    ("vanished", vanished),
    ("vanished", vanished_for_one_of_two),
    ("vanished", vanished_until_its_reader_had_come_to_the_end),
    ("inconsistent-offsets", inconsistent_offsets),
    ("duplicate", duplicate),
    ("acknowledged-elsewhere", acknowledged_elsewhere),
    ("G1a", aborted_read),
    ("phantom", phantom),
    ("precommitted-read", precommitted_read),
    ("precommitted-read", precommitted_read_that_another_reader_had_too),
    ("poll-skip", poll_skip),
    ("nonmonotonic-poll", nonmonotonic_poll),
    ("int-poll-skip", internal_poll_skip),
    ("int-nonmonotonic-poll", internal_nonmonotonic_poll),
    ("nonmonotonic-send", nonmonotonic_send),
    ("int-nonmonotonic-send", internal_nonmonotonic_send),
    ("not-linearizable", acknowledged_before_an_earlier_offset_was_sent),
    ("not-linearizable", stale_end),
    ("not-linearizable", read_before_it_was_sent),
]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_planted_violation_is_found_with_its_operations(
    rule: str, plant: Callable[[Play], None]
) -> None:
    play = three_sent()
    plant(play)
    verdict = judge(play.history)
    found = [finding for finding in verdict.findings if finding.rule == rule]
    assert found, verdict
    assert all(finding.object == KEY and finding.ops for finding in found)
    assert verdict.objects == {KEY: Outcome.VIOLATED}


def judged(play: Play) -> Verdict:
    return judge(play.history)


def test_everything_read_passes() -> None:
    play = three_sent()
    play.poll(1, {KEY: [[0, 0], [1, 1]]})
    play.poll(1, {KEY: [[2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert judged(play).outcome is Outcome.VALID
    assert judged(play).counts["readings to the end"] == 1


def test_indeterminate_send_may_be_there_or_not() -> None:
    for read in ([], [[3, 7]]):
        play = three_sent()
        play.invoke(1, "send", [["send", KEY, 7]])
        play.info(1)
        play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2], *read]})
        assert judged(play).outcome is Outcome.VALID


def test_failed_send_that_is_not_read_passes() -> None:
    play = three_sent()
    play.invoke(1, "send", [["send", KEY, 7]])
    play.fail(1)
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert judged(play).outcome is Outcome.VALID


def test_gaps_are_legal() -> None:
    play = Play()
    play.send(0, KEY, 1, 0)
    play.send(0, KEY, 2, 5)
    play.poll(1, {KEY: [[0, 1], [5, 2]]})
    play.read_all(9, {KEY: [[0, 1], [5, 2]]})
    assert judged(play).outcome is Outcome.VALID


def test_value_twice_is_allowed_to_a_producer_that_is_not_idempotent() -> None:
    play = three_sent()
    play.options["idempotent"] = False
    duplicate(play)
    assert judged(play).outcome is Outcome.VALID
    assert judged(play).counts["duplicates, allowed"] == 1


def test_all_values_twice_are_counted_though_the_first_few_would_be_told() -> None:
    play = Play()
    play.options["idempotent"] = False
    for value in range(5):
        play.send(0, KEY, value, value)
    play.read_all(9, {KEY: [[offset, offset % 5] for offset in range(10)]})
    assert judged(play).counts["duplicates, allowed"] == 5


def test_acknowledged_and_unread_is_undecided_when_no_reader_came_to_the_end() -> None:
    play = three_sent()
    play.poll(1, {KEY: [[0, 0], [1, 1]]})
    verdict = judged(play)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "1 acknowledged" in verdict.reason


def test_reader_that_began_before_the_acknowledgement_owes_nothing() -> None:
    play = three_sent()
    play.invoke(1, "send", [["send", KEY, 7]])
    play.invoke(9, "assign", [KEY], seek="beginning")
    play.ok(9)
    play.ok(1, [["send", KEY, [3, 7]]])
    play.poll(9, {KEY: [[0, 0], [1, 1], [2, 2]]}, caught_up=True)
    assert judged(play).outcome is Outcome.UNDECIDED


def test_position_starts_again_with_a_reading_from_the_beginning() -> None:
    play = three_sent()
    play.read_all(1, {KEY: [[0, 0], [1, 1], [2, 2]]})
    play.read_all(1, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert judged(play).outcome is Outcome.VALID


def test_position_goes_on_for_a_key_that_stays_assigned() -> None:
    play = three_sent()
    play.poll(1, {KEY: [[0, 0]]})
    play.did(1, "assign", [KEY, "chaos-1"], [KEY, "chaos-1"])
    play.poll(1, {KEY: [[2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert rules(play) == {"poll-skip"}


@pytest.mark.parametrize("end", [Play.fail, Play.info])
def test_position_stays_where_a_poll_ended_that_is_not_ok(end: Callable[..., int]) -> None:
    play = three_sent()
    play.poll(1, {KEY: [[0, 0]]})
    play.invoke(1, "poll", [["poll"]])
    end(play, 1)
    play.poll(1, {KEY: [[1, 1]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert not rules(play) & {"poll-skip", "nonmonotonic-poll"}


@pytest.mark.parametrize(("offset", "where"), [(2, " at offset 2"), (None, "")])
def test_unseen_value_is_told_with_the_offset_that_it_was_given(
    offset: int | None, where: str
) -> None:
    play = Play()
    play.send(0, KEY, 7, offset)
    play.read_all(9, {KEY: []})
    (finding,) = judge(play.history).findings
    assert finding.rule == "unseen"
    assert finding.detail.startswith(f"7 was acknowledged{where} and never read")


def test_gaps_and_other_keys_are_no_skip() -> None:
    play = Play()
    for value, offset in ((0, 0), (1, 5), (2, 9)):
        play.send(0, KEY, value, offset)
    play.poll(1, {KEY: [[0, 0]]})
    play.poll(1, {"chaos-1": []})
    play.poll(1, {KEY: [[5, 1]]})
    play.poll(1, {KEY: [[9, 2]]})
    play.read_all(9, {KEY: [[0, 0], [5, 1], [9, 2]]})
    assert rules(play) == set()


def test_position_is_forgotten_for_a_key_that_was_not_assigned_for_a_while() -> None:
    play = three_sent()
    play.poll(1, {KEY: [[0, 0]]})
    play.did(1, "assign", ["chaos-1"], ["chaos-1"])
    play.did(1, "assign", [KEY], [KEY])
    play.poll(1, {KEY: [[2, 2]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert rules(play) == set()


def test_subscriber_may_skip_and_repeat() -> None:
    play = three_sent()
    play.did(1, "subscribe", ["chaos"], ["chaos"])
    play.poll(1, {KEY: [[0, 0]]})
    play.poll(1, {KEY: [[2, 2]]})
    play.poll(1, {KEY: [[0, 0]]})
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert rules(play) == set()


def test_many_violations_of_one_kind_are_counted_not_listed() -> None:
    play = Play()
    for value in range(100):
        play.send(0, KEY, value, value)
    play.read_all(9, {KEY: [[99, 99]]})
    lost = [finding for finding in judged(play).findings if finding.rule == "lost-write"]
    assert len(lost) == 3
    assert "96 more" in lost[-1].detail


def test_keys_are_judged_apart() -> None:
    play = three_sent()
    play.send(0, "chaos-1", 100, 0)
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]], "chaos-1": []})
    verdict = judged(play)
    assert verdict.objects == {KEY: Outcome.VALID, "chaos-1": Outcome.VIOLATED}


def test_operation_that_is_no_send_says_where_it_is() -> None:
    play = three_sent()
    index = play.invoke(1, "send", [["sned", KEY, 1]])
    with pytest.raises(MalformedHistory, match=f"operation {index}"):
        judge(play.history)


def test_key_is_its_text() -> None:
    """In JSON, the keys of what a poll returns are texts."""
    play = Play()
    play.did(0, "send", [["send", 1, 7]], [["send", 1, [0, 7]]])
    play.did(1, "assign", [1], [1])
    play.poll(1, {"1": [[0, 7]]}, caught_up=True)
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize(
    ("polled", "rule"),
    [([[0, 1], [2, 3]], "int-poll-skip"), ([[1, 2], [0, 1]], "int-nonmonotonic-poll")],
)
def test_who_subscribes_sees_each_poll_in_order_unless_it_is_moved_meanwhile(
    polled: Value, rule: str
) -> None:
    for log, expected in (([], [rule]), ([{"keys": ["k-0"]}], [])):
        play = Play()
        for offset, value in enumerate((1, 2, 3)):
            play.send(0, "k-0", value, offset)
        play.did(1, "subscribe", ["k-0"], ["k-0"])
        play.poll(1, {"k-0": polled}, **{"rebalance-log": log})
        play.poll(1, {"k-0": polled[:1]})
        play.read_all(2, {"k-0": [[0, 1], [1, 2], [2, 3]]})
        assert [finding.rule for finding in judge(play.history).findings] == expected


def test_who_may_write_twice_may_be_acknowledged_where_nobody_has_read_yet() -> None:
    for is_idempotent, expected in ((False, []), (True, ["acknowledged-elsewhere"])):
        play = Play(options={"idempotent": is_idempotent})
        play.send(0, "k-0", 7, 5)
        play.poll(1, {"k-0": [[3, 7]]})
        assert [finding.rule for finding in judge(play.history).findings] == expected


@pytest.mark.parametrize("seek", ["end", "latest", "committed", 2])
@pytest.mark.parametrize("f", ["assign", "subscribe"])
def test_reader_says_nothing_of_what_lies_before_the_place_that_it_sought(
    seek: Value, f: str
) -> None:
    play = three_sent()
    sought(play, 9, seek, f)
    play.poll(9, {KEY: [[2, 2]]})
    verdict = judged(play)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "2 acknowledged values were not read" in verdict.reason
    sought(play, 9, "beginning")
    play.poll(9, {KEY: [[2, 2]]})
    assert rules(play) == {"lost-write"}


def test_reader_that_sought_stays_where_it_is_when_it_is_assigned_again() -> None:
    play = three_sent()
    sought(play, 9)
    play.did(9, "assign", [KEY], [KEY])
    play.poll(9, {KEY: [[2, 2]]})
    assert not rules(play)
    play.did(9, "crash", None, None)
    play.poll(9, {KEY: [[2, 2]]})  # where it begins now nobody says: at zero, as for Jepsen
    assert rules(play) == {"lost-write"}


def test_write_is_lost_whose_offset_is_the_last_one_read_and_holds_another_value() -> None:
    play = three_sent()
    play.send(0, KEY, 7, 2)
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 7]]})
    assert "lost-write" in rules(play)


READERS = 200


def test_what_is_lost_is_what_some_reader_passed() -> None:
    """Against the definition, for random readings of two keys by readers that sought and others."""
    random = Random(15)
    lost = 0
    for _ in range(READERS):
        play = Play()
        for value in range(12):
            play.send(0, f"k{value % 2}", value, value // 2)
        spans: list[tuple[str, int, int]] = []
        read: set[tuple[str, int]] = set()
        for reader in range(1, random.randint(2, 5)):
            key, is_sought = f"k{random.randrange(2)}", random.random() < 0.7
            play.did(reader, "assign", [key], [key], **({"seek": "end"} if is_sought else {}))
            offsets = sorted(random.sample(range(6), random.randint(1, 3)))
            for offset in offsets:
                play.poll(reader, {key: [[offset, 2 * offset + int(key[1])]]})
            spans.append((key, offsets[0] if is_sought else 0, offsets[-1]))
            read |= {(key, offset) for offset in offsets}
        expected = {
            key
            for key in ("k0", "k1")
            for offset in range(6)
            if (key, offset) not in read
            and any(key == of and low <= offset <= high for of, low, high in spans)
        }
        findings = [each for each in judged(play).findings if each.rule == "lost-write"]
        assert {each.object for each in findings} == expected
        lost += len(expected)
    assert READERS // 4 < lost < 2 * READERS


@pytest.mark.parametrize(
    ("is_idempotent", "expected"), [(True, {"not-linearizable"}), (False, set())]
)
def test_acknowledged_value_was_there_though_not_told_where_unless_it_may_stand_twice(
    is_idempotent: bool, expected: set[str]
) -> None:
    play = Play(options={"idempotent": is_idempotent})
    play.send(0, KEY, 7, None)
    play.poll(1, {}, ends={KEY: 0})
    play.read_all(9, {KEY: [[0, 7]]})
    assert rules(play) == expected


@pytest.mark.parametrize("f", ["crash", "subscribe"])
def test_what_failed_leaves_a_reader_where_it_is(f: str) -> None:
    play = three_sent()
    sought(play, 9)
    play.invoke(9, f, [KEY])
    play.fail(9)
    play.poll(9, {KEY: [[2, 2]]})
    assert not rules(play)
    play.poll(9, {KEY: [[2, 2]]})
    assert rules(play) == {"nonmonotonic-poll"}
