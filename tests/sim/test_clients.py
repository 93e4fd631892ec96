"""A simulated quorum judged by what its clients see, at random. Broken rules: see test_harm.py."""

from argparse import ArgumentParser

import pytest

from jepsen_like.sim.command import add_sim_arguments, run_sim
from jepsen_like.sim.quorum.client_run import run_with_clients
from jepsen_like.sim.quorum.simulation import run


@pytest.mark.parametrize("seed", range(6))
def test_clients_see_nothing_wrong_under_the_shipped_rules(seed: int) -> None:
    outcome = run_with_clients(seed)
    assert outcome.kind == "ok", f"quorumlab chaos sim --clients --seed {seed}: {outcome.detail}"
    assert outcome.committed > 0


def test_who_looks_on_does_not_change_the_run() -> None:
    seen = run_with_clients(3, until_event=3000)
    assert seen == run(3, until_event=3000)
    assert seen.kind == "cut short"


def test_what_clients_see_has_no_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    add_sim_arguments(parser)
    assert run_sim(parser.parse_args(["--clients", "--catches"])) == 2
    assert "--clients --catches: " in capsys.readouterr().err
