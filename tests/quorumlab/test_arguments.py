"""How the table of a verb's options becomes the options of a parser."""

from pathlib import Path

import click
import pytest

from quorumlab.arguments import declare, parse, refusal

TABLE = """
    About
    it.

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
    verb = declare(run, TABLE, even=lambda text: int(text) * 2)
    assert verb.help == "About it."
    given = vars(parse(verb, words))
    assert given.pop("run") is run
    return given


def run(_args: object) -> int:
    return 0


def refused(*words: str) -> str:
    with pytest.raises(click.UsageError) as caught:
        parsed(*words)
    return refusal(caught.value)


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


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--count x", "--count: 'x' is no whole number"),
        ("--form xml", "--form: no 'xml': there are table, json"),
        ("--form tabel", "--form: no 'tabel': did you mean 'table'? there are table, json"),
        ("--pace 0", "--pace: '0' is no number above 0"),
        ("--this x --that", "give --this or --that, not both"),
        ("--count", "Option '--count' requires an argument"),
        ("--out --that", "--out: a value is missing before --that"),
        ("--that=1", "Option '--that' does not take a value"),
        ("--cuont 3", "unknown --cuont: did you mean '--count'?"),
        ("-x", "unknown -x"),
        ("a b", "unknown b"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(line: str, told: str) -> None:
    assert refused(*line.split()).startswith(told)


def test_one_of_several_options_may_be_needed() -> None:
    verb = declare(run, "--quiet  says nothing\n|! --edn FILE\n|! --jsonl FILE")
    with pytest.raises(click.UsageError, match="give one of --edn, --jsonl"):
        parse(verb, [])
    assert parse(verb, ["--edn", "x"]).edn == Path("x")


def test_options_may_stand_between_words_of_which_some_are_missing() -> None:
    verb = declare(run, "things THING [+]\ntarget TARGET\npath PATH [?]\n--deep")
    args = parse(verb, ["a", "--deep", "b", "c", "d"])
    assert (args.things, args.target, args.path, args.deep) == (["a", "b"], "c", "d", True)


def test_a_type_that_is_misspelt_is_found_at_once() -> None:
    with pytest.raises(AssertionError):
        declare(run, "--pace SECONDS [postive 60]")
