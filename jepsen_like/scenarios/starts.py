"""How a scenario begins: what is started, and with which settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jepsen_like.scenarios.forms import Forms, Misused
from jepsen_like.scenarios.machines import DISKS, LINKS
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.time.pace import AT_ONCE
from quorum.raft.config import SnapshotSettings

__all__ = ["STARTS", "Start"]

STARTS = Forms()
_NODES_MAX = 9
_CLIENT_MS = 3_000  # until the client of a cluster gives up
_MS_MIN, _MS_MAX = 100, 60_000
_QUORUM = Options(
    kraft_version=1,
    election_timeout_ms=100,
    fetch_timeout_ms=300,
    fetch_max_wait_ms=10,  # so short that timers, not the moment of a fetch, say who is first
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    shutdown_timeout_ms=100,
    propose_interval_ms=0,
    turns_us=AT_ONCE,
    links=LINKS,
    disks=DISKS,
)


@dataclass(frozen=True, slots=True)
class Start:
    options: Options | ClusterOptions  # of a quorum, or of a cluster
    are_timers_equal: bool = False


@STARTS.form("start COUNT", "a quorum of so many voters")
def start(count: int) -> Start:
    return Start(_quorum(count))


@STARTS.form("start COUNT and OTHER observers", "a quorum of voters, and nodes that only follow")
def start_observers(count: int, other: int) -> Start:
    return Start(_quorum(count, observers=other))


@STARTS.form("start COUNT with a snapshot every OTHER bytes", "the log before it is dropped")
def start_snapshots(count: int, other: int) -> Start:
    often = SnapshotSettings(bytes_between=other, interval_ms=0, retention_bytes=0)
    return Start(_quorum(count, snapshots=often if other else SnapshotSettings()))


@STARTS.form("start COUNT with fetches of OTHER bytes", "or of one batch, if it is larger")
def start_small_fetches(count: int, other: int) -> Start:
    return Start(_quorum(count, bytes_max=other))


@STARTS.form("start COUNT with equal timers", "no time-out has a random part")
def start_equal_timers(count: int) -> Start:
    return Start(_quorum(count), are_timers_equal=True)


@STARTS.form("start COUNT controllers, OTHER brokers", "a cluster with the partition orders-0")
def start_cluster(count: int, other: int) -> Start:
    return Start(_cluster(count, other))


@STARTS.form("start COUNT controllers, OTHER brokers with WHAT", "NAME=VALUE, …; Kafka's names")
def start_cluster_with(count: int, other: int, what: str) -> Start:
    settings = _cluster(count, other)
    for pair in what.split(", "):
        name, _, value = pair.partition("=")
        if name not in _SETTINGS:
            raise Misused(f"there is no setting `{name}`: {', '.join(_SETTINGS)}")
        try:
            settings = _SETTINGS[name](settings, value)
        except (KeyError, ValueError):
            raise Misused(f"`{value}` is nothing for {name}") from None
    return Start(settings)


def _number(text: str) -> int:
    if not 1 <= int(text) <= _NODES_MAX:
        raise ValueError(text)
    return int(text)


def _ms(text: str) -> int:
    """Shorter than some round trips makes no sense, longer than a scenario waits neither."""
    if not _MS_MIN <= int(text) <= _MS_MAX:
        raise ValueError(text)
    return int(text)


_SWITCH = {"true": True, "false": False, "1": True, "0": False}
_SETTINGS: Mapping[str, Callable[[ClusterOptions, str], ClusterOptions]] = {
    "min.insync.replicas": lambda cluster, value: replace(
        cluster, min_insync_replicas=_number(value)
    ),
    "unclean.leader.election.enable": lambda cluster, value: replace(
        cluster, unclean=_SWITCH[value]
    ),
    "eligible.leader.replicas.version": lambda cluster, value: replace(cluster, elr=_SWITCH[value]),
    "broker.session.timeout.ms": lambda cluster, value: replace(
        cluster, session_timeout_ms=_ms(value), heartbeat_interval_ms=_ms(value) // 5
    ),
    "replica.lag.time.max.ms": lambda cluster, value: replace(cluster, lag_time_max_ms=_ms(value)),
}


def _cluster(controllers: int, brokers: int) -> ClusterOptions:
    if not 1 <= controllers <= _NODES_MAX or not 1 <= brokers <= _NODES_MAX:
        raise Misused(f"a cluster here has 1 to {_NODES_MAX} controllers, and as many brokers")
    return ClusterOptions(
        quorum=replace(
            _QUORUM,
            kraft_version=0,
            voters=controllers,
            observers=brokers,
            fetch_max_wait_ms=50,
            request_timeout_ms=300,
        ),
        replication_factor=brokers,
        min_insync_replicas=1,
        heartbeat_interval_ms=200,
        session_timeout_ms=1_000,
        lag_time_max_ms=1_000,
        fetch_wait_ms=100,
        produce_interval_ms=0,
        client_timeout_ms=_CLIENT_MS,
    )


def _quorum(voters: int, observers: int = 0, **changed: Any) -> Options:
    if not voters or voters + observers > _NODES_MAX:
        raise Misused(f"a quorum here has 1 to {_NODES_MAX} nodes, and a voter among them")
    return replace(_QUORUM, voters=voters, observers=observers, **changed)
