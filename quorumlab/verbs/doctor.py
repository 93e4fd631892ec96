"""`quorumlab doctor`: directories and addresses of one cluster side by side; never repairs.

Exit codes: 0 nothing is wrong, 1 nothing is there, 2 usage, 3 something is wrong.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.arguments import declare
from quorumlab.cluster_status import describe
from quorumlab.inspection.diagnosis import diagnose, findings_of, removable
from quorumlab.inspection.facts import Finding, Level, LiveFacts, ReplicaFacts, ask, held_by, read
from quorumlab.inspection.target import (
    Address,
    NoSuchTarget,
    Target,
    find_target,
    is_whole,
    nodes_in,
)
from quorumlab.output import print_json, print_rows, say

__all__ = ["add_options", "run"]

_UNHEALTHY = 3
_NOBODY_ASKED = Finding(
    Level.FINE,
    "only files were looked at, which do not tell whether a node runs",
    "name the directory of the whole cluster too, or HOST:PORT of a node",
)
_OF_REPLICA = (
    *("name", "cluster_id", "node_id", "directory_id", "last_epoch", "end_offset", "voters"),
)
_OF_LIVE = (
    *("name", "cluster_id", "leader_id", "leader_epoch", "high_watermark", "voters"),
    "clock_difference_ms",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    table = """
        --format text|json|jsonl [text]
        --remove N  can node N be removed safely?
        targets TARGET [+]  directories of nodes or of whole clusters, and HOST:PORT"""
    declare(parser, run, table)


def run(args: argparse.Namespace) -> int:
    unreadable = list(chain.from_iterable(map(_whole, args.targets)))
    found = dict(_found(args.targets, unreadable))
    replicas = [read(name, target) for target, name in found.items() if isinstance(target, Target)]
    lives = [ask(target) for target in found if isinstance(target, Address)]
    findings = [*unreadable, *diagnose(replicas, lives)]
    if replicas and not lives and not any(map(is_whole, map(Path, args.targets))):
        findings.append(_NOBODY_ASKED)
    findings.sort(key=lambda finding: list(Level).index(finding.level))
    if args.remove is not None:
        findings[:0] = _removable(lives, args.remove)
    _tell(replicas, lives, findings, args.format)
    is_healthy = all(finding.level is not Level.PROBLEM for finding in findings)
    return 0 if is_healthy else _UNHEALTHY


def _whole(text: str) -> Iterator[Finding]:
    """Findings about the nodes, if this is the directory of a whole cluster."""
    path = Path(text)
    if not is_whole(path):
        return
    try:
        described = describe(LocalCluster.open(path))
    except ClusterError as error:  # a copy, made to look at its files
        yield Finding(Level.WARNING, f"it cannot be told whether the nodes run: {error}")
    else:
        yield from findings_of(described)


def _found(
    names: Iterable[str], unreadable: list[Finding]
) -> Iterator[tuple[Target | Address, str]]:
    """Each once, however often and by whatever name it is there: of a whole cluster, its nodes.

    Raises NoSuchTarget.
    """
    known: set[Target | Address | Path] = set()
    for name in chain.from_iterable(map(_nodes, names)):
        try:
            target = find_target(name)
        except NoSuchTarget:
            raise
        except ClusterError as error:
            unreadable.append(Finding(Level.PROBLEM, str(error)))
            continue
        if _itself(target) not in known:
            known.add(_itself(target))
            yield target, name


def _nodes(text: str) -> Sequence[str]:
    if is_whole(Path(text)):
        return [str(node) for node in nodes_in(Path(text))]
    return [text]


def _itself(target: Target | Address) -> Target | Address | Path:
    if isinstance(target, Target) and target.log_directory is not None:
        return target.log_directory.resolve()
    return target


def _removable(lives: Sequence[LiveFacts], node_id: int) -> list[Finding]:
    answered = [live for live in lives if live.leader_id >= 0]
    if not answered:
        raise ClusterError(
            "--remove needs the address of a node that knows the leader: add HOST:PORT"
        )
    live = max(answered, key=lambda each: each.leader_epoch)
    return removable(live, held_by(live.name, node_id))


def _tell(
    replicas: Sequence[ReplicaFacts],
    lives: Sequence[LiveFacts],
    findings: Sequence[Finding],
    form: str,
) -> None:
    told = [{**asdict(each), "level": each.level.value} for each in findings]
    match form:
        case "json":
            facts = {"replicas": list(map(asdict, replicas)), "live": list(map(asdict, lives))}
            print_json({**facts, "findings": told})
        case "jsonl":
            print_json(told, form="jsonl")
        case _:
            _say_side_by_side(replicas, lives)
            for each in findings:
                say(f"{each.level.value:<8} {each.text}")
                if each.advice:
                    say(f"{'':<8}   {each.advice}")


def _say_side_by_side(replicas: Sequence[ReplicaFacts], lives: Sequence[LiveFacts]) -> None:
    if replicas:
        rows = [{**asdict(each), "voters": _ids(each.voters.ids)} for each in replicas]
        print_rows(rows, _OF_REPLICA)
        say("")
    answered = [live for live in lives if live.failure is None]
    if answered:
        rows = [{**asdict(each), "voters": _ids(v.id for v in each.voters)} for each in answered]
        print_rows(rows, _OF_LIVE)
        say("")


def _ids(voters: Iterable[int]) -> str | None:
    return ",".join(map(str, voters)) or None
