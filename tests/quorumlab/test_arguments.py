"""How the table of a verb's options becomes the options of a parser."""

import argparse
from pathlib import Path

import pytest

from quorumlab.arguments import declare

TABLE = """
    word WORD [?]  what
    --count N [3]  how many (default: \
      3)
    --out DIR
    --pace SECONDS [positive 1.5]
    --form table|json [table]
    --name KEY=VALUE [*]
    --even N [even]
    -r/--recursive  everything below
    | --this ID  one of
    | --that  these two"""


def parsed(*words: str) -> dict[str, object]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    declare(parser, lambda _: 0, TABLE, "About it.", even=lambda text: int(text) * 2)
    assert parser.description == "About it."
    given = vars(parser.parse_args(words))
    assert given.pop("run")(argparse.Namespace()) == 0
    return given


def test_defaults_have_the_type_of_what_is_given() -> None:
    assert parsed() == {
        "word": None,
        "count": 3,
        "out": None,
        "pace": 1.5,
        "form": "table",
        "name": [],
        "even": None,
        "recursive": False,
        "this": None,
        "that": False,
    }


def test_each_kind_of_option_is_read() -> None:
    given = parsed(
        *[
            "a",
            "--count",
            "4",
            "--out",
            "x",
            "--pace",
            "2",
            "--name",
            "a=1",
            "--name",
            "b",
            "--even",
            "4",
            "-r",
            "--that",
        ]
    )
    assert given == {
        "word": "a",
        "count": 4,
        "out": Path("x"),
        "pace": 2.0,
        "form": "table",
        "name": ["a=1", "b"],
        "even": 8,
        "recursive": True,
        "this": None,
        "that": True,
    }


@pytest.mark.parametrize("line", ["--count x", "--form xml", "--pace 0"])
def test_what_has_another_type_or_is_no_choice_is_refused(line: str) -> None:
    with pytest.raises(argparse.ArgumentError):
        parsed(*line.split())


def test_options_that_exclude_each_other_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parsed("--this", "x", "--that")


def test_a_type_that_is_misspelt_is_found_at_once() -> None:
    with pytest.raises(AssertionError):
        declare(argparse.ArgumentParser(), lambda _: 0, "--pace SECONDS [postive 60]")
