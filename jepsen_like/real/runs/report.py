"""What is told of a run to scripts: `verdict.json`, and `chaos run --format json`."""

from jepsen_like.history import Value
from jepsen_like.real.runs.admitted import admitted_by, whose_document
from jepsen_like.real.runs.options import RunOptions
from jepsen_like.real.runs.outcome import Measured, Ran
from jepsen_like.struck import struck_as_json
from jepsen_like.verdict import as_json

__all__ = ["described"]


def described(options: RunOptions, ran: Ran) -> dict[str, Value]:
    """Keys are added, never changed."""
    return {
        "summary": ran.summary,
        "exit_code": ran.exit_code,
        "void": list(ran.void),
        "verdict": as_json(ran.verdict),
        "design": options.design,
        "engine": options.engine,
        "admitted": dict(
            admitted_by(whose_document(options.design, options.engine), ran.verdict.findings)
        ),
        "workload": options.workload,
        "client": options.client,
        "seed": options.seed,
        "seconds": options.seconds,
        "command": options.command,
        "directory": str(options.directory),
        "warm_up": _measured(ran.warm_up),
        "safety": _measured(ran.safety),
        "whole": _measured(ran.whole),
        "controller_elections": ran.controller_elections,
        "leader_elections": ran.leader_elections,
        "recovered_seconds": ran.recovered_seconds,
        "faults_planned": len(ran.schedule),
        "faults": [struck_as_json(struck) for struck in ran.struck],
    }


def _measured(measured: Measured) -> dict[str, Value]:
    return {
        "seconds": round(measured.seconds, 3),
        "ok": measured.ok,
        "fail": measured.fail,
        "info": measured.info,
        "ok_a_second": round(measured.ok_a_second, 1),
    }
