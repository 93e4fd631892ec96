"""Chaos on real processes: short runs, what they leave behind, and mistakes that they must find."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind, Op, Value, read_history
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.runs.chaos_run import execute
from jepsen_like.real.runs.outcome import Watcher
from jepsen_like.real.runs.run_options import RunOptions
from quorumlab.cli import main
from tests.integration.waiting import wait

COMMAND = [sys.executable, "-m", "quorumlab", "chaos", "run"]
SMALL = ("--controllers", "1", "--brokers", "1")  # where one of each shows it


def chaos_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run of the log under kills and pauses."""
    path = tmp_path_factory.mktemp("chaos") / "run"
    done = chaos_run(
        "--faults", "kill,pause", "--seconds", "10", "--seed", "1", "--format", "json",
        "--out", str(path),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == json.loads((path / "verdict.json").read_text())
    return path


@pytest.fixture(scope="module")
def history(directory: Path) -> History:
    return read_history((directory / "history.msgpack").read_bytes())


def test_run_under_kills_and_pauses_is_valid_and_its_faults_are_proven(directory: Path) -> None:
    told = json.loads((directory / "verdict.json").read_text())
    assert (told["summary"], told["verdict"]["outcome"], told["void"]) == ("valid", "valid", [])
    proven = {fault["kind"] for fault in told["faults"] if fault["bit"]}
    assert proven == {"kill", "pause"}
    assert told["safety"]["ok"] > 100
    assert told["recovered_seconds"] is not None


def test_directory_tells_what_was_run_and_keeps_no_data(directory: Path) -> None:
    told = json.loads((directory / "run.json").read_text())
    assert (told["workload"], told["seed"], told["faults"]) == ("log", 1, ["kill", "pause"])
    assert told["schedule"]
    assert "quorumlab chaos run" in told["command"]
    layout = LocalCluster.open(directory / "cluster").layout
    assert all(node.log.exists() and not node.data.exists() for node in layout.nodes)


def test_history_holds_clients_faults_and_samples(history: History) -> None:
    assert not history.is_cut
    assert [op.index for op in history.ops] == list(range(len(history.ops)))
    phases = [op.value for op in history.ops if op.f == "phase"]
    assert phases == ["warm-up", "safety", "liveness", "final"]
    faults = [op.f for op in history.ops if op.process == "nemesis" and op.f != "phase"]
    assert faults.count("inject") == faults.count("heal") >= 2
    observers = {op.process for op in history.ops if op.f == "observe"}
    assert observers == {f"node-{node}" for node in (1, 2, 3, 101, 102, 103)}


def test_lost_acknowledged_record_is_found(history: History, tmp_path: Path) -> None:
    """The same history, in which one acknowledged record is read by nobody."""
    acknowledged = [op.value[0] for op in history.ops if op.f == "send" and op.kind is Kind.OK]
    _, key, [_, value] = acknowledged[len(acknowledged) // 2]
    lost = replace(history, ops=[without(op, key, value) for op in history.ops])
    assert judge(history).outcome is Outcome.VALID
    verdict = judge(lost)
    assert verdict.outcome.exit_code == 4
    assert any(str(value) in finding.detail for finding in verdict.findings)


def without(op: Op, key: str, value: int) -> Op:
    match op:
        case Op(f="poll", kind=Kind.OK, value=[["poll", found]]):
            kept: Value = {
                k: [each for each in records if (k, each[1]) != (key, value)]
                for k, records in found.items()
            }
            return replace(op, value=[["poll", kept]])
        case _:
            return op


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that takes what one broker says for what the cluster says."""
    options = RunOptions(
        directory=tmp_path_factory.mktemp("stale") / "run",
        workload="register",
        faults=("pause",),
        seconds=5,
        seed=2,
        stale_reads_as_reads=True,
    )
    ran = execute(options, Watcher())
    assert ran.summary == "violated"
    assert ran.exit_code == 4
    return options.directory


@pytest.mark.long
def test_ordinary_reads_are_not_linearizable_and_the_checker_says_so(stale: Path) -> None:
    told = json.loads((stale / "verdict.json").read_text())
    assert told["summary"] == "violated"
    finding = told["verdict"]["findings"][0]
    assert finding["object"].startswith("register-")
    history = read_history((stale / "history.msgpack").read_bytes())
    shown = [history.ops[index] for index in finding["ops"]]
    assert any(op.f == "read" for op in shown), finding


@pytest.mark.long
def test_run_that_was_violated_keeps_the_data(stale: Path) -> None:
    layout = LocalCluster.open(stale / "cluster").layout
    assert all(any(node.data.iterdir()) for node in layout.nodes)


@pytest.mark.extra
@pytest.mark.parametrize("workload", ["transactions", pytest.param("bank", marks=pytest.mark.long)])
def test_transactions_stay_whole_under_kills_pauses_and_partitions(
    workload: str, tmp_path: Path
) -> None:
    done = chaos_run(
        "--workload", workload, "--faults", "kill,pause,partition", "--seconds", "10",
        "--seed", "1", "--format", "json", "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["summary"], told["void"]) == ("valid", [])
    assert told["safety"]["ok"] > 10


# --- the command -----------------------------------------------------------------------------


def test_interrupted_run_keeps_its_history_and_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = subprocess.Popen(
        [*COMMAND, *SMALL, "--faults", "none", "--seconds", "60", "--out", str(path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    history = path / "history.msgpack"
    wait(lambda: history.exists() and history.stat().st_size > 20_000, "a history")
    run.send_signal(signal.SIGINT)
    _, complaint = run.communicate(timeout=30)
    assert run.returncode == 130
    assert f"the history is kept in {path}" in complaint
    assert not read_history(history.read_bytes()).is_cut
    assert LocalCluster.open(path / "cluster").running() == {}


@pytest.mark.long
def test_stopped_report_ends_the_run_that_it_makes(tmp_path: Path) -> None:
    making = subprocess.Popen(
        [*COMMAND[:-1], "report", "--runs", "1", "--seconds", "60", "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = tmp_path / "001-log"
    history = run / "history.msgpack"
    try:
        wait(history.exists, "a history", seconds=90)
    finally:
        making.send_signal(signal.SIGTERM)
        _, complaint = making.communicate(timeout=60)
    assert making.returncode == 130
    assert complaint.startswith("interrupted: the same command goes on")
    assert "the history is kept in" in (tmp_path / "001-log.log").read_text()
    assert LocalCluster.open(run / "cluster").running() == {}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--faults", "none,kill"), "none stands alone"),
        (("--faults", "kil"), "did you mean 'kill'?"),
        (("--faults", "bite"), "no fault is called 'bite'"),
        (("--faults", "wipe"), "--faults wipe: nodes of a run of processes come back"),
        (("--faults", "kill:queen"), "no role is called 'queen'"),
        (("--faults", "netns-loss,kill,delay"), "netns-loss and delay cannot be had in one run"),
        (("--workload", "dance"), "--workload dance: one of admin, bank, cas-register"),
        (("--design", "zk-v9"), "--design zk-v9: did you mean 'zk-v3'?"),
        (("--design", "zk-v1", "--workload", "register"), "not with --design zk-v1: a majority"),
        (("--design", "zk-v3", "--workload", "admin"), "no way to ask for elections"),
        (("--seconds", "0"), "--seconds 0: from 1"),
        (("--bootstrap-server", "b:1", "--faults", "kill"), "needs the cluster's processes"),
        (("--bootstrap-server", "b:1", "--workload", "register"), "only quorumlab's own"),
        (("--bootstrap-server", "b:1", "--brokers", "3"), "--brokers: it is of a cluster that is"),
        (("--bootstrap-server", "b:1", "--keep"), "--keep: it is of a cluster that is started"),
        (("--workload", "admin", "--faults", "kill,power-loss"), "is lost: leave out power-loss"),
        (("--zookeepers", "3"), "--zookeepers: the quorum design has no ZooKeeper"),
        (("--design", "zk-v3", "--controllers", "3"), "--controllers: in zk-v3 no node is set"),
        (("--workload", "cas-register", "--brokers", "1"), "runs on controllers alone"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", "run", *arguments]) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


def test_a_directory_that_holds_something_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").write_text("")
    assert main(["chaos", "run", "--out", str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
