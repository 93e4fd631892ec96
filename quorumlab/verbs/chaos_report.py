"""`quorumlab chaos report`: many runs over all kinds of faults, and a page about them.

A run that has a verdict is never made again, whatever the verdict; one that was interrupted is put
aside and made anew. Exit codes: 0 all valid, 4 one was violated, 5 one was void or undecided.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jepsen_like.campaign import (
    Planned,
    is_report,
    plan_campaign,
    plan_zk_campaign,
    report,
    section,
    with_sections,
)
from jepsen_like.faults.kinds import KINDS
from jepsen_like.python_children import python_command
from jepsen_like.real.runs.environment import why_not
from jepsen_like.real.runs.outcome import ADMITTED, whose_document
from jepsen_like.report.campaign_picture import campaign_picture
from quorum.raftos.engines import NATIVE
from quorumlab.arguments import Failed
from quorumlab.children import child
from quorumlab.interrupts import sigterm_as_ctrl_c
from quorumlab.output import refuse_other_directory, refuse_other_file, say
from quorumlab.pictures import refuse_other_picture, write_picture
from quorumlab.verbs.common import in_bounds, one_of
from wire.zk.designs import DESIGNS

__all__ = ["run"]

_INTERRUPTED = 130
_RUNS_MAX = 1000
_PLAN = "plan.json"
_DECIDED = (0, 4, 5)  # exit codes of a run that came to its end


def run(args: SimpleNamespace) -> int:
    in_bounds(args, runs=(1, _RUNS_MAX), seconds=(1, 3600))
    try:
        with sigterm_as_ctrl_c():
            return _make_all(args)
    except KeyboardInterrupt:
        say("interrupted: the same command goes on with the run that is missing", sys.stderr)
        return _INTERRUPTED


def _make_all(args: SimpleNamespace) -> int:
    one_of(("quorum", *DESIGNS), "--design", args.design)
    left_out: Mapping[str, str] = {}  # what this machine cannot do, and why
    if args.design == "quorum":
        with tempfile.TemporaryDirectory() as directory:
            left_out = why_not(Path(directory), tuple(KINDS))
        kinds = [kind for kind in KINDS if kind not in left_out]
        planned = plan_campaign(runs=args.runs, kinds=kinds, seed=args.seed)
    else:
        planned = plan_zk_campaign(args.design, runs=args.runs, seed=args.seed)
    page = args.page or args.out / "report.md"
    refuse_other_picture(args.export)
    refuse_other_directory(args.out, option="--out", holds=_PLAN)
    refuse_other_file(page, option="--page", is_own=is_report)
    _check_plan(args, planned)
    for each in planned:
        _make(args, each)
    told = [_told(args.out / each.directory) for each in planned]
    before = page.read_text() if page.exists() else ""
    runs = [json.loads((args.out / each.directory / "run.json").read_text()) for each in planned]
    commits = [run["commit"] for run in runs]
    if args.design == "quorum":
        first = report(
            told,
            commits=commits,
            command=_command(args),
            left_out=left_out,
            put_aside=sorted(path.name for path in args.out.glob("*.interrupted-*")),
        )
        page.write_text(with_sections(first, before, order=list(DESIGNS)))
    else:
        added = section(args.design, told, commits=commits, command=_command(args))
        page.write_text(with_sections(before, before, added, order=list(DESIGNS)))
    say(f"{len(told)} runs are told of in {page}")
    if args.export is not None:
        write_picture(args.export, campaign_picture(told, _command(args)))
        say(f"picture: {args.export}")
    worst = {each["exit_code"] for each in told}
    return next((code for code in (4, 5) if code in worst), 0)


def _check_plan(args: SimpleNamespace, planned: Sequence[Planned]) -> None:
    """The runs of one page are of one plan: another one needs another directory."""
    path = args.out / _PLAN
    plan = {
        "seconds": args.seconds,
        "runs": [[each.directory, each.seed, list(each.kinds)] for each in planned],
    }
    args.out.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(json.dumps(plan, indent=1) + "\n")
    try:
        is_same = json.loads(path.read_text()) == plan
    except ValueError:
        is_same = False
    if not is_same:
        raise Failed(f"{args.out} holds runs of another plan: use another --out")
    # All designs with ZooKeeper have the same plan.
    for directory in filter(_is_made, (args.out / each.directory for each in planned)):
        design = _told(directory)["design"]
        if design != args.design:
            raise Failed(
                f"{directory} is a run of the design {design}, not {args.design}: use another --out"
            )


def _make(args: SimpleNamespace, planned: Planned) -> None:
    """Makes a run that has no verdict yet."""
    directory = args.out / planned.directory
    if _is_made(directory):
        say(f"{planned.directory}: {_told(directory)['summary']} (made before)")
        return
    _put_aside(directory)
    command = python_command("quorumlab", *_arguments(args, planned))
    log = args.out / f"{planned.directory}.log"
    with log.open("w") as output, child(command, output=output, errors=subprocess.STDOUT) as run:
        pass
    if run.returncode not in _DECIDED:
        raise Failed(f"{planned.directory} came to no end: see {log}")
    say(f"{planned.directory}: {_told(directory)['summary']}")


def _is_made(directory: Path) -> bool:
    return (directory / "verdict.json").exists()


def _put_aside(directory: Path) -> None:
    """Keeps what an interrupted run left, out of the way."""
    if not directory.exists():
        return
    number = 1
    while (aside := directory.with_name(f"{directory.name}.interrupted-{number}")).exists():
        number += 1
    directory.rename(aside)


def _arguments(args: SimpleNamespace, planned: Planned) -> Sequence[str]:
    return [
        "chaos", "run", "--workload", planned.workload, "--faults", ",".join(planned.kinds),
        "--seconds", str(args.seconds), "--seed", str(planned.seed), *planned.arguments,
        "--out", str(args.out / planned.directory),
    ]  # fmt: skip


def _told(directory: Path) -> dict[str, Any]:
    """Adds what is known by now to be admitted."""
    told: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
    known = ADMITTED.get(whose_document(told["design"], told.get("engine", NATIVE)), {})
    rules = [finding["rule"] for finding in told["verdict"]["findings"]]
    return {**told, "admitted": {rule: known[rule] for rule in rules if rule in known}}


def _command(args: SimpleNamespace) -> str:
    design = ["--design", args.design] if args.design != "quorum" else []
    return shlex.join(
        ["quorumlab", "chaos", "report", *design, "--runs", str(args.runs),
         "--seconds", str(args.seconds), "--seed", str(args.seed), "--out", str(args.out)]
    )  # fmt: skip
