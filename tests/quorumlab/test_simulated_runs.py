"""Simulated runs on disk: kept, read back, done again."""

import json
import os
import shlex
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jepsen_like.histories.history import read_history
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, schedule_of
from jepsen_like.sim.chaos.workload_run import failed, run_plan
from jepsen_like.sim.time.ending import Ending
from quorumlab.arguments import Failed, UsageError, parse
from quorumlab.cli import main, root
from quorumlab.simulated_runs import kept_plan, replay_line, say_timeline, timeline_of, write_run
from quorumlab.verbs import chaos_sim
from tests.jepsen_like.report.recorded import data_in

PLAN = Plan(seed=2, workload="cas-register", faults=("kill",), seconds=2)


def act(*words: str) -> int:
    args = parse(root(), ["chaos", *words])
    code: int = args.run(args)
    return code


def test_kept_run_is_read_back_and_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run_plan(PLAN)
    write_run(tmp_path, outcome)
    plan, digest = kept_plan(tmp_path)
    assert (plan.seed, plan.schedule, digest) == (2, schedule_of(PLAN), outcome.digest)
    assert list(read_history((tmp_path / "history.msgpack").read_bytes()).ops) == list(
        outcome.history.ops
    )
    written = (tmp_path / "timeline.txt").read_text().splitlines()
    assert written == timeline_of(outcome.history, frozenset(), context=0)
    assert act("replay", str(tmp_path)) == 0
    assert outcome.digest in capsys.readouterr().out
    assert act("timeline", str(tmp_path)) == 0
    assert capsys.readouterr().out.splitlines() == written
    assert act("timeline", str(tmp_path), "--around", "2,99999") == 0
    assert f"no operation 99999 is in {tmp_path}\n" in capsys.readouterr().err


def test_a_planted_bug_is_told_with_the_line_that_makes_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--seed 3 --workload cas-register --faults none --seconds 1 --plant counts_observers"
    assert act("sim", *words.split(), "--out", str(tmp_path)) == 0
    kept = tmp_path / "seed-3"
    said = capsys.readouterr().out
    assert "  planted: counts_observers\n" in said
    assert f"  page: {kept}/report.html\n" in said
    about = data_in((kept / "report.html").read_text())["about"]
    assert (about["planted"], about["command"]) == (
        "counts_observers, which breaks the rule that observers do not count",
        f"quorumlab chaos replay {words}",
    )
    assert main(shlex.split(about["command"])[1:]) == 0
    assert f"digest {about['digest']}" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["check", str(kept), "--report", str(page)]) == 0
    assert data_in(page.read_text())["about"]["planted"] == about["planted"]


def test_a_run_that_its_seed_does_not_make_is_done_again_from_where_it_is_kept() -> None:
    assert replay_line(PLAN, Path("kept")).startswith("quorumlab chaos replay --seed 2 ")
    assert replay_line(replace(PLAN, schedule=()), Path("kept")) == "quorumlab chaos replay kept"


def test_other_code_than_that_of_the_run_is_noticed(tmp_path: Path) -> None:
    write_run(tmp_path, run_plan(PLAN))
    described = (tmp_path / "run.json").read_text()
    (tmp_path / "run.json").write_text(described.replace('"seed": 2', '"seed": 3'))
    with pytest.raises(Failed, match="its digest was"):
        act("replay", str(tmp_path))


def test_what_is_no_simulated_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="cannot read"):
        act("replay", str(tmp_path))
    (tmp_path / "run.json").write_text('{"workload": "log"}')
    with pytest.raises(Failed, match="real processes do nothing twice"):
        act("shrink", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("sim --workload jam", "--workload jam"),
        ("sim --workload log --faults rain", "no fault is called 'rain'"),
        ("sim --workload log --faults full-disk", "--faults full-disk: the model disk has no end"),
        ("sim --workload log --seeds 5", "write 0..9"),
        ("sim --workload log --seeds 5..4", "there are 0"),
        ("sim --workload log --plant rose", "--plant rose"),
        ("sim --workload log --design raft", "--design raft: one of quorum"),
        ("sim --workload log --seconds 0", "from 1 to 3600"),
        ("sim --workload log --sweep 5", "--sweep is not for runs with --workload, which has"),
        ("sim --workload log --clients", "--clients is not for runs with --workload: leave"),
        ("sim --workload log --catches", "--catches is not for runs with --workload: leave"),
        ("sim --design zk-v3 --until-event 5", "--until-event is not for runs with --design zk-v3"),
        ("sim --seeds 0..3", "--seeds needs --workload"),
        ("sim --no-idempotence", "--no-idempotence needs --workload"),
        ("replay", "name the directory"),
        ("replay runs/seed-7 --seconds 20", "--seconds: runs/seed-7 has the plan of its run"),
        ("replay runs/seed-7 --design quorum", "--design: runs/seed-7 has the plan of its run"),
        ("replay runs/seed-7 --invariants", "--invariants: runs/seed-7 has the plan"),
        ("replay runs/seed-7 --seed 7", "--seed: runs/seed-7 has the plan of its run"),
    ],
)
def test_usage(words: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        act(*words.split())


@pytest.mark.parametrize("flags", ["", "--cluster"])
def test_run_is_told_as_json(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert act("sim", *flags.split(), "--seed", "2", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["seed"]) == ("ok", 2)
    assert told["faults"]
    assert all(isinstance(times, int) for times in told["faults"].values())


def test_only_the_bugs_that_are_named_are_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = "sim --processes 1 --catches --plant"
    assert act(*words.split(), "answers_before_saving") == 0
    (_, found) = capsys.readouterr().out.splitlines()
    assert found.split() == ["answers_before_saving", "10", "1", "R-VD"]
    assert act(*words.split(), "rose") == 2
    assert "there is no such bug" in capsys.readouterr().err
    assert act(*words.split(), "reads_without_a_round") == 2
    assert "has no bound" in capsys.readouterr().err


def test_runs_are_kept_by_seed_and_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "sim --workload cas-register --faults none --seconds 1 --seeds 0..1 --processes 1"
    assert act(*words.split(), "--out", str(tmp_path)) == 0
    assert "2 runs: 0 violated, 0 void or undecided, 2 valid" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-0", "seed-1"]


def dies_or_raises(plan: Plan) -> ChaosOutcome:
    if plan.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return failed(plan, Ending(kind="error", rule="OSError", detail="planted"))


def test_run_whose_process_dies_is_told_with_its_replay_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chaos_sim, "run_plan", dies_or_raises)
    words = "sim --workload log --faults kill --seconds 1 --seeds 0..2 --processes 2"
    assert act(*words.split(), "--out", str(tmp_path)) == 1
    text = capsys.readouterr().out
    assert text.count("  OSError: planted\n  repro: quorumlab chaos replay --seed") == 2
    assert text.count("  died: the process of the run: killed by SIGKILL\n") == 1
    assert "quorumlab chaos replay --seed 1 --workload log --faults kill --seconds 1" in text
    assert "3 runs: 0 violated, 0 void or undecided, 0 valid, 3 ended by an exception" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-0", "seed-1", "seed-2"]


def test_runs_that_ctrl_c_ends_are_summed_up_and_the_others_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    valid = run_plan(PLAN)

    def run_two(plan: Plan) -> ChaosOutcome:
        if plan.seed == 2:
            raise KeyboardInterrupt
        return replace(valid, plan=plan)

    monkeypatch.setattr(chaos_sim, "run_plan", run_two)
    words = "sim --workload log --seeds 0..9 --processes 1"
    assert act(*words.split()) == 130
    said = capsys.readouterr()
    assert "interrupted after 2 of 10 runs: --seeds 2..9 makes the others" in said.err
    assert "2 runs: 0 violated, 0 void or undecided, 2 valid" in said.out


def test_timeline_on_a_terminal_goes_on_behind_its_lanes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    history = run_plan(PLAN).history
    ops = tuple(replace(op, error="long " * 20) if op.index == 5 else op for op in history.ops)
    say_timeline(replace(history, ops=ops), frozenset(), context=0)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    column = lines[6].index("1 write -> fail")
    assert lines[7].startswith(" " * column + "long long")
