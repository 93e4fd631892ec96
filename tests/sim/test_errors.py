"""An exception is an outcome like any other: with its seed, its kind and the line that replays it.

Planted in an invariant, a core, a client and a judge, in every assembly; in a sweep also as the
death of a worker process. What the other seeds came to is kept.
"""

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from broker.replicas import Replicas
from jepsen_like.museum import playing
from jepsen_like.museum.comparison import count_seeds
from jepsen_like.museum.item import ITEMS
from jepsen_like.museum.playing import End, play
from jepsen_like.sim.assemblies.cluster.clients.client import Client
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.quorum import appending_clients
from jepsen_like.sim.assemblies.quorum.appending_clients import Clients
from jepsen_like.sim.assemblies.quorum.invariants.election_invariants import ElectionInvariants
from jepsen_like.sim.assemblies.quorum.invariants.log_invariants import LogInvariants
from jepsen_like.sim.assemblies.quorum.quorum_view import QuorumView
from jepsen_like.sim.assemblies.quorum.simulation import Outcome
from jepsen_like.sim.chaos import workload_run as chaos_run
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.shrinking import rules_of
from jepsen_like.sim.chaos.workload_core import Workers
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.logs.logtree import Entry, Tolerance
from jepsen_like.sim.runs import command
from jepsen_like.sim.runs.sweep import SweepResult, error_outcome, sweep
from jepsen_like.sim.time.ending import Ending
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.raft.raft_node import RaftNode
from tests.sim.commands import sim


def raises(error: Exception) -> Any:
    def fails(*_args: object, **_named: object) -> None:
        raise error

    return fails


# --- one seed -------------------------------------------------------------------------------------

UNFORESEEN = OSError("planted")
ONE_SEED = [
    ("", LogInvariants, "appends", "ERROR OSError: planted", 1),
    ("", VirtualTime, "after", "ERROR OSError: planted", 1),
    ("", RaftNode, "receive", "CRASH raised: node", 4),
    ("--clients", ElectionInvariants, "hears_majority", "ERROR OSError: planted", 1),
    ("--clients", Clients, "proposes", "CRASH raised: node", 4),
    ("--clients", appending_clients, "judge", "ERROR OSError: planted", 1),
    ("--cluster", PartitionInvariants, "has_read", "CRASH raised: node", 4),
    ("--cluster", MetadataInvariants, "says_state", "CRASH raised: node", 4),
    ("--cluster", Client, "_produce", "CRASH raised: node", 4),
    ("--cluster", Replicas, "_open", "CRASH raised: node", 4),
]


@pytest.mark.parametrize(("assembly", "holder", "name", "told", "code"), ONE_SEED)
def test_exception_is_told_with_its_seed_and_its_replay_line(
    assembly: str,
    holder: object,
    name: str,
    told: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(holder, name, raises(UNFORESEEN))
    flags = assembly.split()
    assert sim(*flags, "--seed", "7", "--until-event", "4000") == code
    text = capsys.readouterr().out
    assert text.startswith(told)
    assert "(tests.sim.test_errors:" in text.splitlines()[0]
    assert "seed=7 " in text
    assert f"repro:   quorumlab chaos sim {' '.join([*flags, '--seed', '7'])}" in text


def test_what_invariants_stumble_over_is_dropped_only_after_one_was_violated() -> None:
    tolerance = Tolerance()
    with pytest.raises(LookupError), tolerance:
        raise LookupError
    with tolerance:
        raise Violation("R-UE", "planted")
    with tolerance:
        raise LookupError


# --- a workload, a design -------------------------------------------------------------------------

WORKLOADS = [
    ("quorum", chaos_run, "judge"),
    ("quorum", chaos_run, "client_opener"),
    ("quorum", Workers, "settle"),
    ("zk-v3", chaos_run, "judge"),
    ("zk-v3", Replicas, "_open"),
]


@pytest.mark.parametrize(("design", "holder", "name"), WORKLOADS)
def test_exception_in_the_run_of_a_workload_is_its_outcome(
    design: str, holder: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, name, raises(UNFORESEEN))
    plan = Plan(seed=7, design=design, seconds=1, warm_up_seconds=1, faults=())
    outcome = run_plan(plan)
    assert outcome.is_red
    assert outcome.plan == plan
    assert "OSError: planted (tests.sim.test_errors:" in outcome.broken
    is_in_a_process = holder in (Workers, Replicas)
    assert outcome.is_error is not is_in_a_process
    assert rules_of(outcome) == {"raised" if is_in_a_process else "OSError"}


# --- schedules and the museum ---------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("planted"), AssertionError("planted")])
def test_exception_in_a_schedule_is_no_void_run(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MetadataInvariants, "says_state", raises(error))
    monkeypatch.setattr(PartitionInvariants, "settled", raises(error))
    played = play("shrink_commits")
    assert (played.end, played.rule) == (End.ERROR, type(error).__name__)
    assert not played.is_broken


def test_museum_counts_what_ended_by_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "judge", raises(UNFORESEEN))
    counted = count_seeds(ITEMS["D2"].exhibits[0], 1)
    assert counted.errors[0].startswith("seed 0: error OSError planted (tests.sim.test_errors:")
    assert not counted.is_right


# --- sweeps ---------------------------------------------------------------------------------------

RAISES, DIES, VIOLATES = 23, 25, 47


def run_some(seed: int, /, *, plant: str | None, tracer: object = None, **_more: object) -> Outcome:
    """A stand-in for a run: most seeds are fine."""
    if seed == RAISES:
        raise IndexError("planted")
    if seed == DIES:
        os.kill(os.getpid(), signal.SIGKILL)
    kind = "safety" if seed == VIOLATES else "ok"
    return error_outcome(seed, Ending(kind=kind, rule="" if kind == "ok" else "R-UE"))


def test_sweep_goes_on_and_keeps_what_the_other_seeds_came_to() -> None:
    result = sweep(range(60), processes=2, run=run_some)
    assert result.seeds == 60
    told = [(failure.seed, failure.kind, failure.rule) for failure in result.failures]
    assert told == [
        (RAISES, "error", "IndexError"),
        (DIES, "error", "died"),
        (VIOLATES, "safety", "R-UE"),
    ]
    assert result.failures[1].detail == "the process of the run: killed by SIGKILL"


def test_sweep_ends_at_the_first_rule_that_is_broken_not_at_an_exception() -> None:
    result = sweep(range(60), processes=1, run=run_some, failures_max=1)
    assert [failure.seed for failure in result.failures] == [RAISES, DIES, VIOLATES]


@pytest.mark.parametrize(("count", "code"), [(40, 1), (60, 4)])
def test_exit_code_of_a_sweep(
    count: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUORUM", replaced(command.QUORUM))
    assert sim("--sweep", str(count), "--processes", "1") == code
    text = capsys.readouterr().out
    assert f"{count} seeds in" in text
    assert f"repro:   quorumlab chaos sim --seed {DIES} --trace full" in text


def test_sweep_says_how_fast_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    def swept(*_: object) -> SweepResult:
        return SweepResult(seeds=4, seconds=2.0, events=5_000, virtual_ms=6_000)

    assert sim("--sweep", "4", sweep_seeds=swept) == 0
    text = capsys.readouterr().out
    assert "(2.0 a second)" in text
    assert "5,000 events (2,500 a second)" in text
    assert "3.0 virtual seconds a second" in text


def replaced(simulated: command.Simulated) -> command.Simulated:
    plants = {"votes_twice": simulated.plants["votes_twice"]}
    return command.Simulated(flag="", run=run_some, plants=plants, others={}, kinds=())


def test_exception_is_no_catch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUORUM", replaced(command.QUORUM))
    assert sim("--catches", "--first", str(RAISES), "--processes", "1") == 4
    text = capsys.readouterr().out
    assert "MISSED" in text
    assert f"quorumlab chaos sim --seed {RAISES} --plant votes_twice --trace full" in text


# --- what once ended a sweep with a traceback -----------------------------------------------------


def test_leader_of_a_history_without_a_batch_below_holds_all_of_it() -> None:
    """A high watermark may lie within the first batch, whose end nobody has committed yet."""
    view = QuorumView(())
    invariants = LogInvariants(view)
    invariants._high_watermarks[1] = 3
    nobody: Any = None  # whose log is not looked at
    invariants.holds_committed(nobody, 2)
    batch = Entry(parent=None, records=b"", base_offset=0, next_offset=5, epoch=1)
    view.history.extend([batch])
    invariants.holds_committed(nobody, 2)


# --- Ctrl-C ---------------------------------------------------------------------------------------


def ends_at_once(seed: int, **_how: object) -> Outcome:
    return error_outcome(seed, Ending(kind="ok", rule="", detail=""))


def test_an_interrupted_sweep_tells_what_it_came_to_and_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ctrl_c(so_far: SweepResult) -> None:
        raise KeyboardInterrupt

    def interrupted(seeds: Sequence[int], *_how: object) -> SweepResult:
        return sweep(seeds, progress=ctrl_c, run=ends_at_once)

    assert sim("--sweep", "500", "--first", "70", sweep_seeds=interrupted) == 130
    said = capsys.readouterr()
    done = int(said.out.split()[0])
    assert 0 < done < 500
    assert f"--sweep {500 - done} --first {70 + done} goes on" in said.err
