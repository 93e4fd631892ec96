"""What a broken rule costs clients: they see it in their own history.

Nothing is judged but that history (invariants look on and say nothing). On the shipped rules the
same schedule has nothing to show and breaks no invariant, and its clients are told enough to know.
"""

import pytest

from jepsen_like.checkers.judges import judge
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import Header, History, Kind
from jepsen_like.planted.every_bug import planted
from jepsen_like.scenarios.schedules import HARM
from jepsen_like.scenarios.stage.story import Production

CASES = [(name, plant) for name, entry in HARM.items() for plant in entry.finds]
OTHER_SEEDS = range(1, 6)  # messages take other times
ON_REGISTERS = ("read", "write")  # what clients do with them; all else is done with logs


@pytest.mark.parametrize(("name", "plant"), CASES)
def test_clients_see_what_the_broken_rule_cost_them(name: str, plant: str) -> None:
    see_the_harm(name, plant, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("seed", OTHER_SEEDS)
@pytest.mark.parametrize(("name", "plant"), CASES)
def test_clients_see_it_at_other_times(name: str, plant: str, seed: int) -> None:
    see_the_harm(name, plant, seed)


def see_the_harm(name: str, plant: str, seed: int) -> None:
    production = Production(seed=seed, is_judged=False)
    with planted(plant):
        HARM[name].run(production)
    assert Outcome.VIOLATED in [verdict.outcome for verdict in _verdicts(production)], (
        production.steps
    )


@pytest.mark.parametrize("name", HARM)
@pytest.mark.parametrize(
    "is_judged",
    # Invariants change nothing that clients see: that they do not is for the long runs.
    [True, pytest.param(False, marks=pytest.mark.long)],
)
def test_clients_see_nothing_under_the_shipped_rules(name: str, is_judged: bool) -> None:
    production = Production(seed=int(is_judged), is_judged=is_judged)
    HARM[name].run(production)
    verdicts = _verdicts(production)
    assert verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.VALID}
    answers = [op for op in production.ops if op.kind is Kind.OK]
    assert any(op.f in ("send", "write") for op in answers)
    assert any(op.f == "read" or op.extra.get("caught_up") for op in answers)


def _verdicts(production: Production) -> list[Verdict]:
    """On the logs, and on the register that some schedules have.

    Nobody sends again what got no answer, so nothing may be there twice.
    """
    on_registers = tuple(op for op in production.ops if op.f in ON_REGISTERS)
    on_logs = tuple(op for op in production.ops if op.f not in ON_REGISTERS)
    return [
        judge(History(header=Header(workload=workload, seed=production.seed), ops=ops))
        for workload, ops in (("register", on_registers), ("log", on_logs))
        if ops
    ]
