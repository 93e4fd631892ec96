"""How a scenario begins: what is started, and with which settings."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from jepsen_like.scenarios.directed_cluster import ClusterSettings
from jepsen_like.scenarios.directed_quorum import QuorumSettings
from jepsen_like.scenarios.forms import Forms, Misused

__all__ = ["STARTS"]

STARTS = Forms()
_NODES_MAX = 9
_MS_MIN, _MS_MAX = 100, 60_000


@STARTS.form("start COUNT", "a quorum of so many voters")
def start(count: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count))


@STARTS.form("start COUNT and OTHER observers", "a quorum of voters, and nodes that only follow")
def start_observers(count: int, other: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, observers=other))


@STARTS.form("start COUNT with a snapshot every OTHER bytes", "the log before it is dropped")
def start_snapshots(count: int, other: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, snapshot_bytes=other))


@STARTS.form("start COUNT with fetches of OTHER bytes", "or of one batch, if it is larger")
def start_small_fetches(count: int, other: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, fetch_bytes=other))


@STARTS.form("start COUNT with equal timers", "no time-out has a random part")
def start_equal_timers(count: int) -> QuorumSettings:
    return _checked(QuorumSettings(voters=count, are_timers_equal=True))


@STARTS.form("start COUNT controllers, OTHER brokers", "a cluster with the partition orders-0")
def start_cluster(count: int, other: int) -> ClusterSettings:
    return _cluster(count, other)


@STARTS.form("start COUNT controllers, OTHER brokers with WHAT", "NAME=VALUE, …; Kafka's names")
def start_cluster_with(count: int, other: int, what: str) -> ClusterSettings:
    settings = _cluster(count, other)
    for pair in what.split(", "):
        name, _, value = pair.partition("=")
        if name not in _SETTINGS:
            raise Misused(f"there is no setting `{name}`: {', '.join(_SETTINGS)}")
        try:
            settings = _SETTINGS[name](settings, value)
        except (KeyError, ValueError):
            raise Misused(f"`{value}` is nothing for {name}") from None
    return settings


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
_SETTINGS: Mapping[str, Callable[[ClusterSettings, str], ClusterSettings]] = {
    "min.insync.replicas": lambda cluster, value: replace(
        cluster, min_insync_replicas=_number(value)
    ),
    "unclean.leader.election.enable": lambda cluster, value: replace(
        cluster, unclean=_SWITCH[value]
    ),
    "eligible.leader.replicas.version": lambda cluster, value: replace(cluster, elr=_SWITCH[value]),
    "broker.session.timeout.ms": lambda cluster, value: replace(cluster, session_ms=_ms(value)),
    "replica.lag.time.max.ms": lambda cluster, value: replace(cluster, lag_ms=_ms(value)),
}


def _cluster(controllers: int, brokers: int) -> ClusterSettings:
    if not 1 <= controllers <= _NODES_MAX or not 1 <= brokers <= _NODES_MAX:
        raise Misused(f"a cluster here has 1 to {_NODES_MAX} controllers, and as many brokers")
    return ClusterSettings(controllers=controllers, brokers=brokers)


def _checked(settings: QuorumSettings) -> QuorumSettings:
    if not settings.voters or settings.voters + settings.observers > _NODES_MAX:
        raise Misused(f"a quorum here has 1 to {_NODES_MAX} nodes, and a voter among them")
    return settings
