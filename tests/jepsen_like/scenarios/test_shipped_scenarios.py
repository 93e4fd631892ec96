"""Every shipped scenario says what the simulator does, and shows the bug that it is about."""

import re
from pathlib import Path

import pytest

from jepsen_like.planted.every_bug import planted
from jepsen_like.scenarios.language.script import names, scenario
from jepsen_like.scenarios.performance import play
from jepsen_like.scenarios.stage.steady_streams import SteadyStreams
from quorum.raft import voters

FINDS = [(name, plants) for name in names() for plants in scenario(name).finds]


@pytest.mark.parametrize("name", names())
def test_a_scenario_says_what_comes(name: str) -> None:
    played = play(scenario(name))
    assert not played.failures
    assert "\n".join(played.differences()) == ""


def test_a_leader_that_is_content_with_less_than_a_majority_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(voters, "majority_offset", lambda ends: max(ends.values()))
    assert play(scenario("02-replication-and-commit"), is_judged=False).differences()


def test_each_is_about_a_bug() -> None:
    assert {*names()} - {name for name, _ in FINDS} == {"02-replication-and-commit"}, "see above"


@pytest.mark.parametrize(("name", "plants"), FINDS)
def test_a_planted_bug_shows(name: str, plants: str) -> None:
    with planted(plants):
        assert play(scenario(name), is_judged=False).differences()


def test_what_a_bug_does_is_told_as_a_difference() -> None:
    with planted("forgets_its_vote"):
        differences = play(scenario("13-a-vote-survives-a-crash"), is_judged=False).differences()
    assert "-2 does not vote for 3 in epoch 1" in differences
    assert "+2 votes for 3 in epoch 1" in differences
    assert "+3 leads epoch 1" in differences, "beside 1"


def test_a_broken_invariant_ends_a_scenario() -> None:
    with planted("forgets_its_vote"):
        played = play(scenario("13-a-vote-survives-a-crash"))
    assert [failure.split(":")[:2] for failure in played.failures] == [["broken", " R-VD"]]
    assert played.outputs[-1] == ()


def test_a_story_does_not_rest_on_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all streams, only that of a broker is random: it gives ids to sessions."""
    steady = SteadyStreams.__call__
    monkeypatch.setattr(SteadyStreams, "__call__", lambda self, name: steady(self, f"{name}/other"))
    for name in ("10-a-leader-of-an-earlier-epoch", "29-the-controller-dies", "33-an-unclean-stop"):
        assert not play(scenario(name)).differences()


def test_they_are_numbered_and_say_their_source() -> None:
    shipped = names()
    assert [int(name.partition("-")[0]) for name in shipped] == [*range(1, len(shipped) + 1)]
    for name in shipped:
        head = "\n".join(scenario(name).blocks[0].before)
        assert re.search(r"^# Source: .*(Raft|KIP|KAFKA|Kafka)", head, re.MULTILINE), name


LEARN = Path(__file__).parents[3] / "docs" / "learn.md"


@pytest.mark.parametrize("name", names())
def test_the_walk_quotes_the_files(name: str) -> None:
    """docs/learn.md names each file, and what it quotes below stands there, in that order."""
    _, found, section = LEARN.read_text(encoding="utf-8").partition(f"`{name}.txt`")
    assert found, name
    section = re.split(r"\n## |`\d\d-[a-z0-9-]+\.txt`", section)[0]
    quoted = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    assert quoted, name
    lines = iter(play(scenario(name)).text.splitlines())
    for line in "".join(quoted).splitlines():
        assert line == "..." or line in lines, f"{line!r} is not there, or not behind the others"
