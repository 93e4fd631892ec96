"""`quorumlab doctor`: directories and addresses of one cluster side by side; never repairs.

Without any it looks at what is here: the installation, the machine, and each cluster in this
directory, its nodes asked if they run.

Exit codes: 0 nothing is wrong, 1 nothing is there, 2 usage, 3 something is wrong.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from jepsen_like.installation import command
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.arguments import UsageError, declare
from quorumlab.cluster_status import describe
from quorumlab.inspection.diagnosis import diagnose, findings_of, removable
from quorumlab.inspection.facts import Finding, Level, LiveFacts, ReplicaFacts, ask, held_by, read
from quorumlab.inspection.surroundings import (
    clusters_in,
    disk,
    installation,
    ports,
    processes,
    running,
)
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
        targets TARGET [*]  directories of nodes or clusters, HOST:PORT (default: what is here)"""
    declare(parser, run, table)


def run(args: argparse.Namespace) -> int:
    if not args.targets:
        if args.remove is not None:
            raise UsageError(f"--remove {args.remove}: name the address of a node, HOST:PORT")
        return _look_around(args.format)
    examined = _examine(args.targets)
    if args.remove is not None:
        examined.findings[:0] = _removable(examined.lives, args.remove)
    _tell(examined, args.format)
    return _code(examined.findings)


@dataclass(frozen=True, slots=True)
class _Examined:
    """One cluster, as far as it was named."""

    replicas: list[ReplicaFacts]
    lives: list[LiveFacts]
    findings: list[Finding]  # problems first


def _code(findings: Iterable[Finding]) -> int:
    return _UNHEALTHY if any(each.level is Level.PROBLEM for each in findings) else 0


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: list(Level).index(finding.level))


def _examine(targets: Sequence[str]) -> _Examined:
    unreadable = list(chain.from_iterable(map(_whole, targets)))
    found = dict(_found(targets, unreadable))
    replicas = [read(name, target) for target, name in found.items() if isinstance(target, Target)]
    lives = [ask(target) for target in found if isinstance(target, Address)]
    findings = [*unreadable, *diagnose(replicas, lives)]
    if replicas and not lives and not any(map(is_whole, map(Path, targets))):
        findings.append(_NOBODY_ASKED)
    return _Examined(replicas, lives, _in_order(findings))


def _look_around(form: str) -> int:
    directory = Path()
    clusters, nodes = clusters_in(directory), running()
    here = [*installation(), disk(directory), *processes(nodes, clusters)]
    if not clusters:
        advice = "`quorumlab up` starts one" if not nodes else ""
        here.append(Finding(Level.FINE, "no cluster in this directory", advice))
    elif not any(LocalCluster.open(cluster).running() for cluster in clusters):
        here.append(Finding(Level.FINE, "all stopped"))
    here = _in_order(here)
    examined = {str(cluster): _examined_here(cluster) for cluster in clusters}
    if form == "text":
        _say_findings(here)
        for name, each in examined.items():
            say(f"\n{name}:\n")
            _tell(each, form)
    else:
        told = {"here": list(map(_finding, here))}
        print_json({**told, "clusters": {name: _facts(each) for name, each in examined.items()}})
    return _code(chain(here, *(each.findings for each in examined.values())))


def _examined_here(cluster: Path) -> _Examined:
    """Its directories, and the controllers that run."""
    there = LocalCluster.open(cluster)
    alive = there.running()
    if not alive:  # that is no problem where nothing is asked for
        stopped = Finding(Level.FINE, "stopped", f"`{command('up', '--dir', cluster)}` starts it")
        examined = _examine(list(map(str, nodes_in(cluster))))
        findings = [each for each in examined.findings if each is not _NOBODY_ASKED]
        return replace(examined, findings=_in_order([*findings, *ports(cluster), stopped]))
    addresses = (
        f"{node.host}:{node.controller_port}"
        for node in there.layout.controllers
        if node.id in alive
    )
    examined = _examine([str(cluster), *addresses])
    return replace(examined, findings=_in_order([*examined.findings, *ports(cluster)]))


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


def _finding(each: Finding) -> dict[str, str]:
    return {**asdict(each), "level": each.level.value}


def _facts(examined: _Examined) -> dict[str, object]:
    return {
        "replicas": list(map(asdict, examined.replicas)),
        "live": list(map(asdict, examined.lives)),
        "findings": list(map(_finding, examined.findings)),
    }


def _tell(examined: _Examined, form: str) -> None:
    match form:
        case "json":
            print_json(_facts(examined))
        case "jsonl":
            print_json(list(map(_finding, examined.findings)), form="jsonl")
        case _:
            _say_side_by_side(examined.replicas, examined.lives)
            _say_findings(examined.findings)


def _say_findings(findings: Iterable[Finding]) -> None:
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
