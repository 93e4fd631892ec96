"""EDN: what Jepsen writes is read, what is written reads back, and mistakes have a place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen_like.histories.edn import EdnError, Keyword, Symbol, Tagged, read_edn, write_edn

names = st.from_regex(r"[a-z][a-z0-9.*/-]{0,6}", fullmatch=True)
atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.builds(Keyword, names)
)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(atoms, max_size=3)
        | st.dictionaries(atoms, inner, max_size=3)
        | st.builds(Tagged, names, inner)
    ),
    max_leaves=8,
)


@given(values)
def test_value_reads_back_as_it_was_written(value: Any) -> None:
    assert list(read_edn(write_edn(value))) == [value]


@given(st.text(alphabet='()[]{}"\\#:;_ ,a1.-N\n', max_size=30))
def test_any_text_is_read_or_said_to_be_wrong(text: str) -> None:
    try:
        list(read_edn(text))
    except EdnError as error:
        assert str(error).startswith("line ")  # noqa: PT017 # most texts are wrong, not all


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("[true, false]", [True, False]),
        ("-12 ", -12),
        ("12N", 12),
        ("1.5M", 1.5),
        ("-2e3", -2000.0),
        ("##-Inf", float("-inf")),
        (r'"a\"b\n\u0041"', 'a"b\nA'),
        (r"[\a \newline \u0041]", ["a", "\n", "A"]),
        ("{:f :read, :value nil}", {Keyword("f"): Keyword("read"), Keyword("value"): None}),
        ("#{1 2}", frozenset({1, 2})),
        ("(1 (2))", (1, (2,))),
        ("{[1 2] 3}", {(1, 2): 3}),
        ("; a comment\n [1 #_ 2 #_[3 4] 5] ; more", [1, 5]),
        ("#jepsen.history.Op{:index 0}", Tagged("jepsen.history.Op", {Keyword("index"): 0})),
        ('#inst "2020"', Tagged("inst", "2020")),
        ("jepsen.util", Symbol("jepsen.util")),
        ("-", Symbol("-")),
    ],
)
def test_notation_is_read(text: str, value: Any) -> None:
    assert list(read_edn(text)) == [value]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[1 2", r"line 1, column 1: '\]' is missing"),
        ("\n\n  )", "line 3, column 3: .* closes nothing"),
        ("{:a}", "line 1, column 1: a map has a key without"),
        ('"abc', "line 1, column 1: a string has no end"),
        (r'"a\qb"', "no escape"),
        ("1/2", "neither a number nor a name"),
        ("#_", "takes nothing out"),
        ("#tag", "has no value"),
        ("##Nix", "no number"),
        (":", "neither a number nor a name"),
        ("[" * 500, "nested deeper"),
        ("#_" * 500, "nested deeper"),
        ("9" * 5000, "more than 1000 digits"),
    ],
)
def test_mistake_is_named_with_its_place(text: str, what: str) -> None:
    with pytest.raises(EdnError, match=what):
        list(read_edn(text))


@pytest.mark.parametrize("value", [b"bytes", object(), Keyword("a b"), Symbol("")])
def test_what_edn_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(EdnError, match="EDN cannot say"):
        write_edn(value)
