"""The fast checkers, the search and trying everything agree, on small histories of each model.

`make agreement` does the same with thousands of them, and on Spark.
"""

import pytest

from jepsen_like.checkers.verdict import Outcome
from tests.agreement.agreeing import compared
from tests.agreement.free import FREE
from tests.agreement.models import MODELS
from tests.agreement.rows import tallied
from tests.agreement.ruled import RULED

HISTORIES = 300
FREE_HISTORIES = 25


@pytest.mark.parametrize("name", MODELS)
def test_all_ways_to_judge_agree(name: str) -> None:
    tally = compared(name, MODELS[name], range(HISTORIES))
    assert not tally.wrong
    assert min(tally.truth[each] for each in (Outcome.VALID, Outcome.VIOLATED)) > HISTORIES // 10
    assert tally.unknown > HISTORIES // 10
    assert tally.undecided < HISTORIES // 20


@pytest.mark.parametrize("name", [*FREE, *RULED])
def test_nobody_is_accused_falsely_whatever_clients_do(name: str) -> None:
    tally = tallied(name, (FREE | RULED)[name], range(FREE_HISTORIES))
    assert not tally.wrong
    assert tally.planted == tally.found > 0
    assert min(tally.truth[each] for each in (Outcome.VALID, Outcome.VIOLATED)) > 0
