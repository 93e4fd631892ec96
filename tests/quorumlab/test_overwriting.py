"""No verb writes into a directory, or over a file, that quorumlab did not make."""

import json
from pathlib import Path

import pytest

from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, plan_as_json
from jepsen_like.sim.chaos.workload_run import run_plan
from quorumlab.arguments import Failed
from quorumlab.cli import main
from quorumlab.output import refuse_other_directory, refuse_other_file
from quorumlab.simulated_runs import write_run
from tests.quorumlab.test_check import run_directory

GOLDEN = Path(__file__).parents[1] / "golden"
NODE = str(GOLDEN / "kraft3/node-1")

INTO_DIRECTORIES = {
    "up": "up --dir OUT",
    "demo": "demo --dir OUT",
    "compare": "compare --quick --designs quorum --out OUT",
    "chaos run": "chaos run --seconds 1 --out OUT",
    "chaos report": "chaos report --design zk-v1 --runs 1 --out OUT",
    "chaos sim": "chaos sim --workload log --seed 7 --seconds 1 --out OUT/..",
    "chaos replay": "chaos replay RUN --out OUT",
    "chaos shrink": "chaos shrink RUN --out OUT",
    "inspect export": f"inspect export {NODE} --parquet OUT",
}
OVER_FILES = {
    "check": "check RUN/history.msgpack --report OUT",
    "check --export": "check RUN/history.msgpack --export OUT",
    "compare --export": "compare --stored --export OUT",
    "chaos export --edn": "chaos export RUN --edn OUT",
    "chaos export --jsonl": "chaos export RUN --jsonl OUT",
    "chaos report": "chaos report --design zk-v1 --runs 1 --out NEW --page OUT",
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A history that is violated, which says that it was simulated."""
    directory = tmp_path / "run"
    directory.mkdir()
    plan = plan_as_json(Plan(seed=1, workload="log", seconds=1, faults=()))
    told = {"simulated": True, "digest": "", "plan": plan}
    (directory / "run.json").write_text(json.dumps(told))
    return run_directory(directory, loses=True)


@pytest.fixture(autouse=True)
def _nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: object, **__: object) -> None:
        raise AssertionError("refused too late: it has begun")

    for what in (
        "quorumlab.verbs.up._run",
        "quorumlab.verbs.compare._make",
        "quorumlab.verbs.chaos_report._make",
        "quorumlab.verbs.chaos_sim.run_plan",
        "quorumlab.verbs.check._run_locally",
    ):
        monkeypatch.setattr(what, begun)


def bytes_in(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def given(command: str, tmp_path: Path, out: Path) -> list[str]:
    places = {"OUT": str(out), "RUN": str(tmp_path / "run"), "NEW": str(tmp_path / "new")}
    words = []
    for word in command.split():
        for name, place in places.items():
            word = word.replace(name, place)
        words.append(word)
    return words


@pytest.mark.parametrize("verb", INTO_DIRECTORIES)
@pytest.mark.parametrize("held", ["notes.txt", "cluster.json", "results.json", "run.json"])
def test_nothing_is_written_into_a_directory_of_others(
    verb: str, held: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (verb, held) == ("up", "cluster.json"):
        pytest.skip("that is a cluster's own")
    out = tmp_path / "seed-7"
    out.mkdir()
    (out / held).write_text("{}")
    before = bytes_in(tmp_path)
    assert main(given(INTO_DIRECTORIES[verb], tmp_path, out)) == 1
    # `compare` may have said before which engines and designs this machine lacks.
    *_, refusal = capsys.readouterr().err.splitlines()
    assert refusal.startswith("quorumlab: ")
    assert str(out) in refusal
    assert bytes_in(tmp_path) == before


@pytest.mark.parametrize("verb", OVER_FILES)
def test_no_file_of_others_is_overwritten(
    verb: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / ("thesis.svg" if verb.endswith("--export") else "thesis.html")
    out.write_text("<!doctype html><title>three years of work</title>")
    before = bytes_in(tmp_path)
    assert main(given(OVER_FILES[verb], tmp_path, out)) == 1
    told = capsys.readouterr().err
    assert f"{out}: that file is there already: name another one" in told
    assert bytes_in(tmp_path) == before


def test_a_page_that_nobody_asked_for_leaves_a_file_of_others(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    (run / "report.html").write_text("mine")
    assert main(["check", str(run)]) == 4
    assert "no report" in capsys.readouterr().err
    assert (run / "report.html").read_text() == "mine"


def test_what_is_its_own_is_written_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    page, edn, tables = (str(tmp_path / name) for name in ("p.html", "h.edn", "tables"))
    kept = tmp_path / "kept"
    outcome: ChaosOutcome = run_plan(Plan(seed=1, workload="cas-register", seconds=1, faults=()))
    for _ in range(2):
        assert main(["check", str(run / "history.msgpack"), "--report", page]) == 4
        assert main(["chaos", "export", str(run), "--edn", edn]) == 0
        assert main(["inspect", "export", NODE, "--parquet", tables]) == 0
        write_run(kept, outcome)


def test_a_comparison_that_measured_nothing_yet_goes_on_in_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorumlab.verbs.compare._make", lambda *_: 130)
    out = tmp_path / "out"
    command = ["compare", "--quick", "--designs", "quorum", "--engines", "native", "--out"]
    assert main([*command, str(out)]) == 130
    (out / "clusters").mkdir()
    assert main([*command, str(out)]) == 130


def test_hidden_files_and_what_is_empty_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").write_text("x")
    (tmp_path / "lost+found").mkdir()
    refuse_other_directory(tmp_path, option="--out", holds="x")
    refuse_other_directory(tmp_path / "new", option="--out", holds="x")
    (tmp_path / "empty").touch()
    refuse_other_file(tmp_path / "empty", option="--out", is_own=lambda _: False)
    refuse_other_file(Path("/dev/null"), option="--out", is_own=lambda _: False)
    with pytest.raises(Failed, match="it is not empty, and has no x of an earlier run in it"):
        refuse_other_directory(tmp_path, option="--out", holds="x")
