"""A simulated quorum judged by what its clients see, at random. Broken rules: see test_harm.py."""

import pytest

from jepsen_like.histories.history import Kind
from jepsen_like.scenarios.quorum.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.sim.assemblies.quorum.appending_clients import Clients, run_with_clients
from jepsen_like.sim.assemblies.quorum.simulation import run
from tests.sim.commands import sim


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
    production = Production(seed=0)
    quorum = DirectedQuorum(production, voters=3)
    first = quorum.leader()
    quorum.until(lambda: quorum.takes_records(first), "it is at work")
    quorum.rest()
    quorum.cut([first])
    quorum.write(first, 200)
    quorum.leader(quorum.others(first))
    quorum.heal()
    while (leader := quorum.leader()) != first:
        quorum.host(leader).command(quorum.quorum.nodes[leader].resign)
        quorum.run(200)
    quorum.until(lambda: quorum.takes_records(first), "it is at work")
    before = acknowledged(production)
    quorum.write(first, 20)
    quorum.run(100)
    assert acknowledged(production) == before + 20


def test_who_follows_acknowledges_nothing() -> None:
    """It took records before it was at work, and lost its leadership with them."""
    production = Production(seed=0)
    quorum = DirectedQuorum(production, voters=3)
    first = quorum.leader()
    quorum.until(lambda: quorum.takes_records(first), "it is at work")
    quorum.rest()
    quorum.cut([first])
    second = quorum.first_leader(quorum.others(first))
    assert quorum.quorum.nodes[second].application.leads_epoch is None
    before = acknowledged(production)
    quorum.write(second, 3)
    quorum.heal()
    quorum.cut([second])
    third = quorum.leader(quorum.others(second))
    quorum.until(lambda: quorum.takes_records(third), "it is at work")
    quorum.write(third, 10)
    quorum.run(100)
    quorum.heal()
    quorum.run(500)
    assert acknowledged(production) == before + 10


def acknowledged(production: Production) -> int:
    return sum(op.f == "send" and op.kind is Kind.OK for op in production.ops)


def test_what_clients_see_has_no_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("--clients", "--catches") == 2
    assert "--clients --catches: " in capsys.readouterr().err
