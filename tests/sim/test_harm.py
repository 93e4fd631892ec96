"""What a broken rule costs clients: they see it in their own history.

Nothing is judged but that history (invariants look on and say nothing). On the shipped rules the
same schedule has nothing to show, and breaks no invariant.
"""

import pytest

from jepsen_like.checkers.judges import judge
from jepsen_like.history import Header, History
from jepsen_like.sim.planted.every import planted
from jepsen_like.sim.schedules.harm.every import HARM
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.simulated import simulated
from jepsen_like.verdict import Finding

CASES = [(name, plant) for name, entry in HARM.items() for plant in entry.finds]
SEEDS = range(2)
ON_REGISTERS = ("read", "write")  # what clients do with them; all else is done with logs


@pytest.mark.parametrize(("name", "plant"), CASES)
def test_clients_see_what_the_broken_rule_cost_them(name: str, plant: str) -> None:
    for seed in SEEDS:
        production = simulated(seed=seed, is_judged=False)
        with planted(plant):
            HARM[name].run(production)
        assert _seen(production), f"seed {seed}: {production.steps}"


@pytest.mark.parametrize("name", HARM)
def test_clients_see_nothing_under_the_shipped_rules(name: str) -> None:
    for seed in SEEDS:
        production = simulated(seed=seed)
        HARM[name].run(production)
        assert not _seen(production)


def test_every_schedule_says_what_happens() -> None:
    assert all(entry.story and entry.finds for entry in HARM.values())


def _seen(production: Production) -> list[Finding]:
    """What is wrong with the logs, and with the register that some schedules have.

    Nobody sends again what got no answer, so nothing may be there twice.
    """
    on_registers = tuple(op for op in production.ops if op.f in ON_REGISTERS)
    on_logs = tuple(op for op in production.ops if op.f not in ON_REGISTERS)
    findings: list[Finding] = []
    for workload, ops in (("register", on_registers), ("log", on_logs)):
        header = Header(workload=workload, seed=production.seed)
        findings += judge(History(header=header, ops=ops)).findings
    return findings
