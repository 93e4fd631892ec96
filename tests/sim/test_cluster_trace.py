"""What a run of a cluster says of itself: a line for each thing that happened, and a command."""

import pytest

from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.runs.command import describe_failure
from jepsen_like.sim.world.tracing import HEADING, Tracer
from quorumlab.cli import main
from tests.sim.commands import sim


def test_full_trace_tells_of_brokers() -> None:
    lines: list[str] = []
    run_cluster(0, until_event=900, tracer=Tracer(lines.append, full=True))
    text = "\n".join(lines)
    assert lines[0] == HEADING
    assert "BrokerRegistrationRequest " in text
    assert "BrokerHeartbeatRequest " in text
    assert "ProduceRequest " in text


def test_tracing_does_not_change_the_run() -> None:
    traced = run_cluster(1, until_event=900, tracer=Tracer(lambda _line: None, full=True))
    assert traced == run_cluster(1, until_event=900)


def test_failure_names_the_command_that_shows_it_again() -> None:
    outcome = run_cluster(0, plant="shows_what_is_not_committed")
    text = describe_failure(outcome, "shows_what_is_not_committed", " --cluster")
    assert text.startswith("SAFETY M-UNC: ")
    assert f"chaos sim --cluster --seed {outcome.seed} --plant shows_what_is_not_committed" in text


def test_command_runs_one_seed_of_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("--cluster", "--seed", "0", "--until-event", "300") == 0
    assert capsys.readouterr().out.startswith("cut short seed=0 events=300")


def test_command_lists_what_can_be_planted_in_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim("--cluster", "--plants") == 0
    listed = capsys.readouterr().out
    assert "takes_in_the_fenced" in listed
    assert "votes_twice" not in listed


def test_help_says_what_is_run_and_what_is_taken_for_granted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["chaos", "sim", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Run the shipped cores on virtual time" in text
    assert text.count("(default: 0)") == 2  # --seed and --first


def test_command_knows_plants_that_are_joined(capsys: pytest.CaptureFixture[str]) -> None:
    plants = "tells_no_epoch,serves_any_epoch"
    assert sim("--cluster", "--plant", plants, "--until-event", "10") == 0
    assert sim("--cluster", "--plant", "tells_no_epoch,nonsense") == 2
    assert "--plant nonsense: there is no such bug" in capsys.readouterr().err
