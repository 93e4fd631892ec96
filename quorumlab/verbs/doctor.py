"""`quorumlab doctor`: directories and addresses of one cluster side by side; never repairs.

Without any it looks at what is here: the installation, the machine, and each cluster in this
directory, its nodes asked if they run.

Exit codes: 0 nothing is wrong, 1 nothing is there, 2 usage, 3 something is wrong.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

from jepsen_like.installation import command
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.arguments import UsageError
from quorumlab.client_properties import (
    broker_settings,
    controller_settings,
    given_settings,
)
from quorumlab.cluster_status import describe
from quorumlab.inspection.diagnosis import diagnose, findings_of, removable
from quorumlab.inspection.facts import Finding, Level, LiveFacts, ReplicaFacts, ask, held_by, read
from quorumlab.inspection.hanging import find_hanging
from quorumlab.inspection.surroundings import (
    clusters_in,
    disk_finding,
    installation_findings,
    port_findings,
    process_findings,
    running_nodes,
)
from quorumlab.inspection.target import (
    Address,
    NoSuchTarget,
    Target,
    find_target,
    is_whole,
    nodes_in,
)
from quorumlab.output import print_json, print_rows, say, say_folded

__all__ = ["run"]

_UNHEALTHY = 3
_INDENT = 11
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


def run(args: SimpleNamespace) -> int:
    if not args.targets:
        if args.remove is not None:
            raise UsageError(f"--remove {args.remove}: name the address of a node, HOST:PORT")
        here = _look_around(Path())
        _tell_around(here, args.format)
        return _exit_code(chain(here.findings, *(each.findings for each in here.clusters.values())))
    is_whole_cluster = any(map(is_whole, map(Path, args.targets)))
    settings = given_settings(args.command_config)
    examined = _examine(args.targets, expects_addresses=not is_whole_cluster, settings=settings)
    if args.remove is not None:
        first = _removable(examined.lives, args.remove, settings)
        examined = replace(examined, findings=[*first, *examined.findings])
    _tell(examined, args.format)
    return _exit_code(examined.findings)


def _exit_code(findings: Iterable[Finding]) -> int:
    return _UNHEALTHY if any(each.level is Level.PROBLEM for each in findings) else 0


@dataclass(frozen=True, slots=True)
class _Examined:
    """One cluster, as far as it was named."""

    replicas: list[ReplicaFacts]
    lives: list[LiveFacts]
    findings: list[Finding]  # problems first


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: list(Level).index(finding.level))


def _examine(
    targets: Sequence[str], *, expects_addresses: bool, settings: ClientSettings = PLAIN
) -> _Examined:
    """`settings`: how addresses among the targets are spoken to."""
    findings = list(chain.from_iterable(map(_findings_of_nodes, targets)))
    found = dict(_found(targets, findings, settings))
    replicas = [read(name, target) for target, name in found.items() if isinstance(target, Target)]
    lives = [ask(target) for target in found if isinstance(target, Address)]
    findings += diagnose(replicas, lives)
    for target in found:
        findings += find_hanging(target) if isinstance(target, Address) else []
    if replicas and not lives and expects_addresses:
        findings.append(_NOBODY_ASKED)
    return _Examined(replicas, lives, _in_order(dict.fromkeys(findings)))


@dataclass(frozen=True, slots=True)
class _Here:
    """A directory, and each whole cluster in it."""

    findings: list[Finding]
    clusters: dict[str, _Examined]


def _look_around(directory: Path) -> _Here:
    clusters, nodes = clusters_in(directory), running_nodes()
    alive = {cluster: LocalCluster.open(cluster).running() for cluster in clusters}
    findings = [*installation_findings(), disk_finding(directory)]
    findings += process_findings(nodes, clusters)
    if not clusters:
        advice = "" if nodes else "`quorumlab up` starts one"
        findings.append(Finding(Level.FINE, "no cluster in this directory", advice))
    elif not any(alive.values()):
        findings.append(Finding(Level.FINE, "all stopped"))
    examined = {str(cluster): _examine_here(cluster, alive[cluster]) for cluster in clusters}
    return _Here(_in_order(findings), examined)


def _examine_here(cluster: Path, alive: Collection[int]) -> _Examined:
    """Its directories, and the controllers that run. That nothing runs is no problem here."""
    if alive:
        layout = ClusterLayout.load(cluster.resolve())
        asked = [node for node in layout.controllers if node.id in alive]
        addresses = [f"{node.host}:{node.controller_port}" for node in asked]
        examined = _examine(
            [str(cluster), *addresses],
            expects_addresses=False,
            settings=controller_settings(layout),
        )
        more = _hanging_here(layout, alive)
    else:
        examined = _examine(list(map(str, nodes_in(cluster))), expects_addresses=False)
        start = f"`{command('up', '--dir', cluster)}` starts it"
        more = [Finding(Level.FINE, "stopped", start)]
    findings = _in_order([*examined.findings, *port_findings(cluster), *more])
    return replace(examined, findings=findings)


def _hanging_here(layout: ClusterLayout, alive: Collection[int]) -> list[Finding]:
    """Brokers know of all partitions through any of them."""
    for node in layout.brokers:
        if node.id in alive:
            return find_hanging(Address(node.host, node.port, broker_settings(layout)))
    return []


def _tell_around(here: _Here, form: str) -> None:
    match form:
        case "json":
            clusters = {name: _facts(each) for name, each in here.clusters.items()}
            print_json({"here": list(map(_finding, here.findings)), "clusters": clusters})
        case "jsonl":
            of_clusters = ((name, each.findings) for name, each in here.clusters.items())
            for place, findings in (("here", here.findings), *of_clusters):
                print_json([{"place": place, **_finding(each)} for each in findings], form=form)
        case _:
            _say_findings(here.findings)
            for name, each in here.clusters.items():
                say(f"\n{name}:\n")
                _tell(each, form)


def _findings_of_nodes(text: str) -> Iterator[Finding]:
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
    names: Iterable[str], unreadable: list[Finding], settings: ClientSettings
) -> Iterator[tuple[Target | Address, str]]:
    """Each once, however often and by whatever name it is there: of a whole cluster, its nodes.

    Raises NoSuchTarget.
    """
    known: set[Target | Address | Path] = set()
    for name in chain.from_iterable(map(_nodes, names)):
        try:
            target = find_target(name, settings)
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


def _removable(lives: Sequence[LiveFacts], node_id: int, settings: ClientSettings) -> list[Finding]:
    answered = [live for live in lives if live.leader_id >= 0]
    if not answered:
        raise ClusterError(
            "--remove needs the address of a node that knows the leader: add HOST:PORT"
        )
    live = max(answered, key=lambda each: each.leader_epoch)
    return removable(live, held_by(live.name, node_id, settings))


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
        say_folded(f"{each.level.value:<8} {each.text}", _INDENT)
        if each.advice:
            say_folded(f"{'':<8}   {each.advice}", _INDENT)


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
