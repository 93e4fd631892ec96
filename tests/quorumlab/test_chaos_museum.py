"""`quorumlab chaos museum`: what it prints, and its exit codes."""

import json

import pytest

from jepsen_like.museum.item import ITEMS, Item
from quorumlab.cli import main
from tests.quorumlab.pasted import pasted


@pytest.fixture
def nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(item: Item) -> None:
        raise AssertionError(f"{item.id} was played")

    monkeypatch.setattr("quorumlab.verbs.chaos_museum.compare_item", played)


@pytest.mark.usefixtures("nothing_is_played")
def test_without_an_item_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "museum"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == list(ITEMS)
    assert [words[:3] for words in pasted(said)] == [["quorumlab", "chaos", "museum"]] * 2
    assert main(["chaos", "museum", "--format", "json"]) == 0
    assert [each["item"] for each in json.loads(capsys.readouterr().out)] == list(ITEMS)
    assert main(["chaos", "museum", "--real"]) == 2
    assert "name one, or `all`" in capsys.readouterr().err


def test_all_of_them_are_played_by_that_word(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []

    def play(item: Item) -> tuple[()]:
        played.append(item.id)
        return ()

    monkeypatch.setattr("quorumlab.verbs.chaos_museum.compare_item", play)
    assert main(["chaos", "museum", "all"]) == 0
    assert played == list(ITEMS)


def test_an_item_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "museum", "b5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("B5  A follower cuts off what was acknowledged")
    assert "lost-write in orders-0" in said


def test_an_item_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "museum", "R5", "--format", "json"]) == 0
    exhibits = json.loads(capsys.readouterr().out)
    assert [exhibit["violated"] for exhibit in exhibits] == ["R-PV", "R-PV"]
    assert all(exhibit["steps"] and not exhibit["problems"] for exhibit in exhibits)


def test_seeds_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "museum", "B6", "--seeds", "2", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["seeds"], row["red"], row["green"]) == (2, 2, 2)


@pytest.mark.parametrize(
    "arguments", [["--seeds", "0"], ["--real", "--seeds", "2"], ["R12", "--real"]]
)
def test_what_makes_no_sense_is_a_usage_error(arguments: list[str]) -> None:
    assert main(["chaos", "museum", *arguments]) == 2


def test_an_item_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "museum", "Z9"]) == 2
    assert "B5" in capsys.readouterr().err
