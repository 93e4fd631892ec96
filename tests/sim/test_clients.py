"""A simulated quorum judged by what its clients see, at random. Broken rules: see test_harm.py."""

from argparse import ArgumentParser

import pytest

from jepsen_like.histories.history import Kind
from jepsen_like.sim.command import add_sim_arguments, run_sim
from jepsen_like.sim.quorum.appending_clients import Clients
from jepsen_like.sim.quorum.client_run import run_with_clients
from jepsen_like.sim.quorum.simulation import run
from jepsen_like.sim.schedules.harm.harm_steps import comes_to_rest, gets_to_work, others, write
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.simulated import simulated


@pytest.mark.parametrize("seed", range(6))
def test_clients_see_nothing_wrong_under_the_shipped_rules(seed: int) -> None:
    outcome = run_with_clients(seed)
    assert outcome.kind == "ok", f"quorumlab chaos sim --clients --seed {seed}: {outcome.detail}"
    assert outcome.committed > 0


def test_who_looks_on_does_not_change_the_run() -> None:
    seen = run_with_clients(3, until_event=3000)
    assert seen == run(3, until_event=3000)
    assert seen.kind == "cut short"


def test_quorum_that_answers_nobody_in_the_end_is_not_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Clients, "ask_leaders", lambda _self: None)
    outcome = run_with_clients(1)
    assert (outcome.kind, outcome.rule) == ("liveness", "not-readable")


def test_what_was_lost_in_an_earlier_epoch_holds_up_no_answer() -> None:
    """The same process leads again, and writes where its lost records were."""
    production = simulated(seed=0)
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    gets_to_work(scenario, first)
    comes_to_rest(scenario)
    scenario.cut([first])
    write(scenario, first, 200)
    scenario.leader(others(scenario, first))
    scenario.heal()
    while (leader := scenario.leader()) != first:
        scenario.host(leader).command(scenario.quorum.replicas[leader].resign)
        scenario.run(200)
    gets_to_work(scenario, first)
    before = acknowledged(production)
    write(scenario, first, 20)
    scenario.run(100)
    assert acknowledged(production) == before + 20


def test_who_follows_acknowledges_nothing() -> None:
    """It took records before it was at work, and lost its office with them."""
    production = simulated(seed=0)
    scenario = Scenario(production, voters=3)
    first = scenario.leader()
    gets_to_work(scenario, first)
    comes_to_rest(scenario)
    scenario.cut([first])
    second = scenario.first_leader(others(scenario, first))
    assert scenario.quorum.replicas[second].application.leads_epoch is None
    before = acknowledged(production)
    write(scenario, second, 3)
    scenario.heal()
    scenario.cut([second])
    third = scenario.leader(others(scenario, second))
    gets_to_work(scenario, third)
    write(scenario, third, 10)
    scenario.run(100)
    scenario.heal()
    scenario.run(500)
    assert acknowledged(production) == before + 10


def acknowledged(production: Production) -> int:
    return sum(op.f == "send" and op.kind is Kind.OK for op in production.ops)


def test_what_clients_see_has_no_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    add_sim_arguments(parser)
    assert run_sim(parser.parse_args(["--clients", "--catches"])) == 2
    assert "--clients --catches: " in capsys.readouterr().err
