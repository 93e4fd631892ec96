"""What `chaos run` says at its end: one count of operations, and what each other one counts."""

from pathlib import Path

import pytest

from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import Kind
from jepsen_like.real.runs.outcome import Measured, Ran, described, whole_run
from jepsen_like.real.runs.run_options import RunOptions
from jepsen_like.report.document import Told, document
from quorumlab.verbs.chaos_run import _tell
from tests.jepsen_like.play import Play


def played() -> Play:
    """Two writes, one of which nobody answers, a refused one, and what is no client's operation."""
    play = Play()
    play.line(Kind.INFO, "nemesis", "phase", "warm-up")
    play.send(0, "a-0", 1, 0)
    play.invoke(1, "send", [["send", "a-0", 2]])
    play.line(Kind.INFO, "nemesis", "phase", "safety")
    play.invoke(2, "send", [["send", "a-0", 3]])
    play.line(Kind.FAIL, 2, "send", [["send", "a-0", 3]])
    play.line(Kind.OK, "node-1", "observe", {"a-0": [1, 1, 1, [1]]})
    return play


def test_the_whole_run_is_counted_as_its_page_counts_it() -> None:
    history = played().history
    whole = whole_run(history.ops)
    assert (whole.ok, whole.fail, whole.info) == (1, 1, 1)
    shown = document(history, Told(verdict=Verdict.of([])))
    assert shown["total"] == whole.ok + whole.fail + whole.info
    ended = {kind: sum(counts) for kind, counts in shown["series"]["ended"].items()}
    assert (ended["ok"], ended["fail"]) == (whole.ok, whole.fail)


def test_each_count_says_what_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    options = RunOptions(directory=Path("run"))
    ran = Ran(
        verdict=Verdict.of([]),
        warm_up=Measured(seconds=10, ok=930, fail=0, info=0),
        safety=Measured(seconds=60, ok=4260, fail=9, info=3),
        whole=Measured(seconds=80, ok=5695, fail=12, info=4),
        schedule=(),
        fault_outcomes=(),
        controller_elections=0,
        leader_elections=0,
        recovered_seconds=None,
    )
    _tell(options, ran)
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [
        "operations   5,695 ok, 12 failed, 4 unknown",
        "with faults  4,260 ok of these, 71 a second; 93 a second before the faults",
    ]
    whole = described(options, ran)["whole"]
    assert isinstance(whole, dict)
    assert whole["ok"] == 5695
