"""The directories of simulated runs: the same files as those of runs on processes (docs/chaos.md).

`run.json` has the plan, its schedule, the commit of the code, and the digest of the run.
"""

import json
import re
from pathlib import Path

from jepsen_like.checkers.verdict import as_json
from jepsen_like.faults.validity import fault_outcome_as_json
from jepsen_like.histories.history import History, encode_header, encode_op
from jepsen_like.histories.timeline import around, timeline
from jepsen_like.installation import command
from jepsen_like.planted.every_bug import in_words
from jepsen_like.report.document import Told
from jepsen_like.report.page import page
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, plan_as_json, plan_from_json
from jepsen_like.sim.runs.sweep import commit_of_code
from quorumlab.arguments import Failed
from quorumlab.output import refuse_other_directory, say_folded

__all__ = [
    "PAGE",
    "evidence_in",
    "kept_plan",
    "refuse_other",
    "replay_line",
    "say_timeline",
    "write_run",
]

HISTORY = "history.msgpack"
PAGE = "report.html"
_RUN = "run.json"
_CONTEXT = 20  # operations before and after each piece of evidence
_LINES_MAX = 5_000  # of a timeline
_INDEX = re.compile(r" *[\d.]+ [^\d]*\d+ ")  # of an operation, and what stands before it


def refuse_other(directory: Path) -> None:
    """Raises Failed if there is anything but a simulated run."""
    refuse_other_directory(directory, option="--out", holds=_RUN, is_own=_is_simulated)


def write_run(directory: Path, outcome: ChaosOutcome) -> None:
    refuse_other(directory)
    about = _about(directory, outcome)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(directory / _RUN, {"simulated": True, **about, "plan": plan_as_json(outcome.plan)})
        with (directory / HISTORY).open("wb") as file:
            file.write(encode_header(outcome.history.header))
            file.writelines(map(encode_op, outcome.history.ops))
        _write(directory / "verdict.json", _told(outcome))
        lines = timeline_of(outcome.history, evidence_in(outcome), context=_CONTEXT)
        (directory / "timeline.txt").write_text("\n".join(lines) + "\n")
        if outcome.plan.plants:
            about["planted"] = in_words(outcome.plan.plants)
        told = Told(verdict=outcome.verdict, void=outcome.void, about=about)
        (directory / PAGE).write_text(page(outcome.history, told), encoding="ascii")
    except OSError as error:
        raise Failed(f"cannot write to {directory}: {error.strerror}") from error


def replay_line(plan: Plan, directory: Path | None = None) -> str:
    """The command that makes a run again: by its seed, or, if that says too little, from where it
    is kept."""
    if directory is not None and plan.schedule is not None:
        return command("chaos", "replay", directory)
    words: list[object] = ["--seed", plan.seed, "--workload", plan.workload]
    if plan.design != "quorum":
        words += ["--design", plan.design, "--zookeepers", plan.zookeepers]
    words += ["--faults", ",".join(plan.faults) or "none", "--seconds", plan.seconds]
    words += [] if plan.idempotent else ["--no-idempotence"]
    words += ["--plant", plan.plants] if plan.plants else []
    words += ["--invariants"] if plan.judges_invariants else []
    return command("chaos", "replay", *words)


def _about(directory: Path, outcome: ChaosOutcome) -> dict[str, str]:
    planted = {"planted": outcome.plan.plants} if outcome.plan.plants else {}
    return {
        **planted,
        "command": replay_line(outcome.plan, directory),
        "commit": commit_of_code(),
        "digest": outcome.digest,
    }


def _told(outcome: ChaosOutcome) -> dict[str, object]:
    return {
        **as_json(outcome.verdict),
        "broken": outcome.broken,
        "void": list(outcome.void),
        "faults": [fault_outcome_as_json(each) for each in outcome.fault_outcomes],
    }


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def evidence_in(outcome: ChaosOutcome) -> frozenset[int]:
    return frozenset(index for finding in outcome.verdict.findings for index in finding.ops)


def timeline_of(history: History, evidence: frozenset[int], *, context: int) -> list[str]:
    """Shows all operations, or, where there is evidence, those around it."""
    ops = around(history.ops, evidence, context=context) if evidence else history.ops
    lines = list(timeline(ops[:_LINES_MAX], evidence=evidence))
    left = len(ops) - _LINES_MAX
    return [*lines, f"... and {left} operations more"] if left > 0 else lines


def say_timeline(history: History, evidence: frozenset[int], *, context: int) -> None:
    """A terminal has what is too wide for it behind the lanes."""
    for line in timeline_of(history, evidence, context=context):
        index = _INDEX.match(line)
        say_folded(line, index.end() if index else None)


def _is_simulated(path: Path) -> bool:
    try:
        return _tells_of_simulation(json.loads(path.read_text()))
    except (OSError, ValueError):
        return False


def _tells_of_simulation(told: object) -> bool:
    return isinstance(told, dict) and bool(told.get("simulated"))


def kept_plan(directory: Path) -> tuple[Plan, str]:
    """Reads the plan of the run in `directory`, and its digest."""
    path = directory / _RUN
    try:
        told = json.loads(path.read_text())
    except OSError as error:
        raise Failed(
            f"cannot read {path}: {error.strerror}; name the directory of a run"
        ) from error
    except ValueError as error:
        raise Failed(f"cannot read {path}: {error}") from error
    if not _tells_of_simulation(told):
        raise Failed(
            f"{directory} is no simulated run: real processes do nothing twice in the same way"
        )
    try:
        return plan_from_json(told["plan"]), str(told["digest"])
    except (KeyError, ValueError) as error:
        raise Failed(f"{path}: {error}") from error
