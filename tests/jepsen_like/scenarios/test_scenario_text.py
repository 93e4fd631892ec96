"""The text of a scenario: what is kept, and how what is wrong with it is said."""

import re
from pathlib import Path

import pytest

from jepsen_like.planted.every_bug import EVERY_PLANT
from jepsen_like.scenarios.language.script import ScriptError, names, parse, rewritten, scenario
from jepsen_like.scenarios.performance import Played, play
from jepsen_like.scenarios.schedules import ALL_SCHEDULES, HARM, VOCABULARIES, vocabulary
from jepsen_like.scenarios.stage import machines

HEAD = "# A title.\n\n"


def played(*lines: str) -> Played:
    return play(parse("x.txt", HEAD + "\n".join(lines) + "\n"))


def problem_of(*lines: str) -> str:
    with pytest.raises(ScriptError) as raised:
        played(*lines)
    return str(raised.value)


def test_every_line_but_the_output_is_kept() -> None:
    text = HEAD + "# why\nstart 1\nstate\n----\nold\n\n\n# more\nstate\n----\n\n# the end\n"
    script = parse("x.txt", text)
    assert script.title == "A title"
    assert [len(block.commands) for block in script.blocks] == [2, 1]
    assert script.blocks[0].output == ("old",)
    assert rewritten(script, [("old",), ()]) == text
    assert rewritten(script, [("new", "er"), ("two",)]) == text.replace("old", "new\ner").replace(
        "state\n----\n\n# the", "state\n----\ntwo\n\n# the"
    )


def test_playing_what_was_written_changes_nothing() -> None:
    once = played("start 3", "deliver until a leader", "----")
    again = play(parse("x.txt", once.text))
    assert once.differences()
    assert not again.differences()
    assert again.text == once.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.txt:1: a scenario begins with a comment"),
        ("start 3\n----\n", "x.txt:1: a scenario begins with a comment"),
        (HEAD, "x.txt:2: there is no command"),
        (HEAD + "start 3\n", "x.txt:3: a line `----` belongs below the commands"),
        (HEAD + "start 3\n\n----\n", "x.txt:3: a line `----` belongs below the commands"),
        (HEAD + "----\n", "x.txt:3: no command stands above `----`"),
    ],
)
def test_what_is_no_scenario(text: str, said: str) -> None:
    with pytest.raises(ScriptError) as raised:
        parse("x.txt", text)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("isolte 1", "there is no `isolte`: did you mean `isolate`?"),
        ("crash", "`crash` cannot be read: write `crash NODE` or `crash NODE losing unsynced`"),
        ("crash two", "`crash two` cannot be read: there is no node two: the nodes are 1, 2, 3"),
        ("crash two hard", "`crash two hard` cannot be read: write `crash NODE` or"),
        (
            "expect all before x is committed",
            "`all before x is committed` cannot be read: there is",
        ),
        ("crash 1234567890", "`crash 1234567890` cannot be read"),
        ("crash 9", "`crash 9` cannot be read: there is no node 9: the nodes are 1, 2, 3"),
        ("isolate 1, 7", "`isolate 1, 7` cannot be read: there is no node 7: the nodes are"),
        ("restart 2", "2 is up"),
        ("wipe 2", "2 is up"),
        ("propose", "nobody leads: `deliver until a leader` waits for one"),
        ("propose at 2", "2 does not take records"),
        ("timers 1, 2", "name each node once: 1, 2, 3"),
        ("hold fetsch from 1 to 2", "there is no request `fetsch`"),
        ("remove voter 9", "`remove voter 9` cannot be read: there is no node 9"),
        ("start 3", "there is no `start`"),
        ("deliver until somebody leads", "`somebody leads` cannot be read: there is no node some"),
        ("deliver until somebody led", "there is no `somebody`: write `NODE is down`"),
        ("expect 9 leads", "`9 leads` cannot be read: there is no node 9"),
        ("quietly jump", "there is no `jump`"),
        ("delver until a leader", "there is no `delver`: did you mean `deliver`?"),
        ("deliver a leader", "`deliver a leader` cannot be read: write `deliver until CONDITION`"),
    ],
)
def test_a_command_that_cannot_be_obeyed(command: str, said: str) -> None:
    problem = problem_of("start 3", "----", "", command, "----")
    assert problem.startswith(f"x.txt:6: {said}"), problem


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("produce orders-1 a", "there is no orders-1: `deliver until ready` waits for orders-0"),
        ("produce orders-0 a", "there is no orders-0"),
        ("produce orders-0", "`produce orders-0` cannot be read: write `produce PARTITION VALUE`"),
        ("prefer 2", "there is no active controller"),
        ("wipe 1", "1 is up"),
        ("p commits", "no producer is named p: `p = new producer of VALUE` is one"),
        ("p = new producer of shop", "there are no transactions here: start with transaction_ver"),
        ("expect 1 is fenced", "1 is no broker: 2, 3"),
        ("propose", "there is no `propose`"),
    ],
)
def test_a_command_that_a_cluster_cannot_obey(command: str, said: str) -> None:
    problem = problem_of("start 1 controllers, 2 brokers", command, "----")
    assert problem.startswith(f"x.txt:4: {said}"), problem


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("p writes a to bills-0", "there is no bills-0"),
        ("p writes a to orders-0", "p has no id yet: `deliver until p is done`"),
        ("p begins again", "p has no id yet"),
        ("p aborts", "p has no transaction: `p writes VALUE to PARTITION` begins one"),
    ],
)
def test_a_command_that_a_producer_cannot_obey(command: str, said: str) -> None:
    start = "start 1 controllers, 2 brokers with transaction_version=2"
    begun = (start, "deliver until ready", "p = new producer of shop")
    assert problem_of(*begun, command, "----").startswith(f"x.txt:6: {said}")


@pytest.mark.parametrize(
    "start",
    [
        "state",
        "start",
        "start 0",
        "start 10",
        "start many",
        "start 1 controllers",
        "start 0 controllers, 3 brokers",
        "start 1 controllers, 3 brokers with nothing",
        "start 1 controllers, 3 brokers with min_insync_replicas=two",
        "start 1 controllers, 3 brokers with session_timeout_ms=0",
        "start 1 controllers, 3 brokers with unclean=maybe",
    ],
)
def test_a_scenario_starts_something_first(start: str) -> None:
    assert problem_of(start, "----").startswith("x.txt:3: ")


def test_a_command_before_anything_is_started() -> None:
    said = "x.txt:3: a scenario begins with `start`: `start 3`, "
    assert problem_of("deliver until a leader", "----").startswith(said)


def test_what_is_expected_in_vain_is_a_failure() -> None:
    vain = played("start 3", "expect 1 leads", "deliver until 1 is down", "----")
    assert vain.failures == ("not so: 1 leads", "not within 5000 ms: 1 is down")
    assert {*vain.failures} <= {*vain.outputs[0]}


def test_what_a_voter_change_meets_is_told() -> None:
    refused = played(
        "quietly start 3", "quietly deliver until a leader", "add voter 2", "run 9 ms", "----"
    )
    assert "administrator: 1 refuses: DUPLICATE_VOTER" in refused.outputs[0]


def test_an_endless_scenario_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "EVENTS_MAX", 1_000)
    endless = played("quietly start 3", "quietly run 900000 ms", "----", "", "state", "----")
    assert endless.failures == ("broken: no end after 1000 events",)
    assert endless.outputs[-1] == ()


def test_quietly_tells_nothing_but_a_failure() -> None:
    assert played("quietly start 3", "quietly run 500 ms", "----").outputs == ((),)
    vain = played("quietly start 3", "quietly expect 1 leads", "----")
    assert vain.outputs == (("not so: 1 leads",),)


def test_a_follower_refuses_a_reader() -> None:
    begun = ("quietly start 1 controllers, 2 brokers", "quietly deliver until ready")
    told = played(*begun, "read all at 3", "----").outputs[0]
    assert "client: a read is refused by 3: NOT_LEADER_OR_FOLLOWER" in told


def test_every_command_and_condition_is_used_by_a_shipped_text_or_here() -> None:
    """A word that no schedule and no scenario needs is one word too many."""
    texts = [*shipped_lines(), *(command for each in HARM.values() for command in each.commands)]
    texts += [command for each in ALL_SCHEDULES.values() for command in each.commands]
    texts += Path(__file__).read_text(encoding="utf-8").replace('"', "\n").splitlines()
    around = r"^(quietly |deliver until |expect )+|, or [A-Z]+-.*"
    said = {re.sub(around, "", each) for each in texts}
    for of in (table for tables in VOCABULARIES.values() for table in tables):
        unused = [form.usage for form in of.all if not any(map(form.pattern.fullmatch, said))]
        assert unused == []


def test_every_schedule_says_what_happens_and_names_bugs_that_there_are() -> None:
    for name, schedule in {**ALL_SCHEDULES, **HARM}.items():
        assert schedule.story, name
        assert {each for plants in schedule.finds for each in plants.split(",")} <= {*EVERY_PLANT}
    assert all(schedule.finds for schedule in HARM.values())


def shipped_lines() -> list[str]:
    blocks = [block for name in names() for block in scenario(name).blocks]
    return [command.text for block in blocks for command in block.commands]


def test_every_command_says_in_a_line_what_it_does() -> None:
    told = list(vocabulary())
    assert len({(each["for"], each["write"]) for each in told}) == len(told)
    assert all(each["meaning"] and "\n" not in each["meaning"] for each in told)
