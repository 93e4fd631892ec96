"""`quorumlab chaos museum`: what it prints, and its exit codes."""

import json

import pytest

from quorumlab.cli import main


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
