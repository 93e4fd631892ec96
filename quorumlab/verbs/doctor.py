"""`quorumlab doctor`: directories and addresses of one cluster side by side; never repairs.

Exit codes: 0 nothing is wrong, 2 usage, 3 something is.
"""

import argparse
from collections.abc import Sequence

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.diagnosis import Finding, Level, LiveFacts, diagnose, removable
from quorumlab.inspection.gathering import ask, read
from quorumlab.inspection.target import Target, find_target
from quorumlab.output import print_json, say

__all__ = ["add_parser", "run"]

_UNHEALTHY = 3


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("doctor", help="what is wrong with a cluster? Reads only")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--remove", type=int, metavar="N", help="can node N be removed safely?")
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="directories of nodes, and HOST:PORT",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    replicas, lives = [], []
    unreadable: list[Finding] = []
    for text in args.targets:
        try:
            target = find_target(text)
        except ClusterError as error:
            unreadable.append(Finding(Level.PROBLEM, str(error)))
            continue
        if isinstance(target, Target):
            replicas.append(read(text, target))
        else:
            lives.append(ask(target))
    findings = [*unreadable, *diagnose(replicas, lives)]
    if args.remove is not None:
        findings.insert(0, _removable(lives, args.remove))
    _tell(findings, args.format)
    is_healthy = all(finding.level is not Level.PROBLEM for finding in findings)
    return 0 if is_healthy else _UNHEALTHY


def _removable(lives: Sequence[LiveFacts], node_id: int) -> Finding:
    answered = [live for live in lives if live.leader_id >= 0]
    if not answered:
        raise ClusterError(
            "--remove needs the address of a node that knows the leader: add HOST:PORT"
        )
    return removable(max(answered, key=lambda live: live.leader_epoch), node_id)


def _tell(findings: Sequence[Finding], form: str) -> None:
    if form == "json":
        told = [
            {"level": each.level.value, "text": each.text, "advice": each.advice}
            for each in findings
        ]
        print_json(told)
        return
    for each in findings:
        say(f"{each.level.value:<8} {each.text}")
        if each.advice:
            say(f"{'':<8}   {each.advice}")
