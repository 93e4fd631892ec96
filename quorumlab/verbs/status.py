"""`quorumlab status`: the cluster in --dir, dead nodes included. Exit code 3 if it is not well."""

import time
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

from jepsen_like.installation import command
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cluster_status import describe, is_healthy
from quorumlab.output import answer, number_of, table_lines
from quorumlab.verbs.nodes import open_cluster

__all__ = ["changed_lines", "run"]

_UNHEALTHY = 3
_LOOK_SECONDS = 0.5


def run(args: SimpleNamespace) -> int:
    if args.watch:
        _watch(open_cluster(args), args.format)
    described = describe(open_cluster(args))
    answer(args.format, described, _lines(described))
    return 0 if is_healthy(described) else _UNHEALTHY


def _watch(cluster: LocalCluster, form: str) -> NoReturn:
    """For people: all facts once, then each change. For scripts: the whole state after each
    change, on one line."""
    before: Mapping[str, object] = {}
    while True:
        described = describe(cluster)
        now = _facts(described)
        if now != before:
            at = time.strftime("%H:%M:%S")
            changes = (f"{at}  {line}" for line in changed_lines(before, now))
            answer("jsonl" if form == "json" else form, {"at": at, **described}, changes)
        before = now
        time.sleep(_LOOK_SECONDS)


def changed_lines(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """A line for each fact that is new or another one."""
    for name, value in now.items():
        if name not in before:
            yield f"{name}: {value}"
        elif before[name] != value:
            yield f"{name}: {value} (was {before[name]})"


def _facts(described: Mapping[str, Any]) -> dict[str, object]:
    """What may change in a cluster that runs, by name."""
    active = described["active_controller"]
    facts: dict[str, object] = {"active controller": "none" if active is None else active}
    for role in ("controller", "broker"):
        for node in described[f"{role}s"]:
            facts[f"{role} {node['id']}"] = node["state"]
    if described["metadata_is_current"]:
        facts["partitions"] = described["partitions"]
        facts["under-replicated partitions"] = described["under_replicated_partitions"]
        facts["partitions without a leader"] = described["offline_partitions"]
    return facts


def _lines(described: dict[str, Any]) -> Iterator[str]:
    rows = [
        {"role": role, "address": f"{node['host']}:{node['port']}", **node}
        for role, key in (("controller", "controllers"), ("broker", "brokers"))
        for node in described[key]
    ]
    yield f"cluster {described['cluster_id']} in {described['directory']}"
    yield f"design {described['design']}{_added_to_design(described)}"
    yield f"bootstrap servers {described['bootstrap_servers']}"
    if all(row["state"] in ("stopped", "dead", "unresponsive") for row in rows):
        start = command("up", "--dir", described["directory"])
        yield f"no node answers: `{start}` starts what is down"
    else:
        yield from _health_lines(described)
    yield ""
    rows = [*map(_zookeeper, described["zookeepers"]), *rows]
    yield from table_lines(rows, ("id", "role", "state", "pid", "address", "http_port", "log"))


def _added_to_design(described: dict[str, Any]) -> str:
    """The engine of a quorum; of a ZooKeeper design, what is turned off."""
    if described["controllers"]:
        return f", engine {described['engine']}"
    return f", without {', '.join(described['without'])}" if described["without"] else ""


def _zookeeper(server: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **server,
        "role": "zookeeper",
        "address": f"{server['host']}:{server['port']}",
        "log": f"{server['dir']}/node.log",
    }


def _health_lines(described: dict[str, Any]) -> Iterator[str]:
    leader = described["active_controller"]
    active = f"active controller {'none' if leader is None else leader}"
    yield f"{active}, controller epoch {described['controller_epoch']}"
    if not described["metadata_is_known"]:
        yield "partitions are not known: no node that answers has read the metadata"
        return
    yield (
        f"{number_of(described['partitions'], 'partition')}, "
        f"{described['under_replicated_partitions']} under-replicated, "
        f"{described['offline_partitions']} without a leader"
        f"{'' if described['metadata_is_current'] else ', as last known: no node can tell now'}"
    )
