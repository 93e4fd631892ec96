"""How a text begins: what is started, and with which settings.

    start 3                                      a quorum that a scenario tells of, step by step
    start 1 controllers, 3 brokers with elr=true
    start quorum, voters=3                       one that a schedule brings to a bad end

What a scenario tells of has timers of its own, and takes equally long for every message. A schedule
is played on a small, healthy quorum or cluster whose messages take the times of a seed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from jepsen_like.scenarios.cluster.directed_cluster import WAIT_MS
from jepsen_like.scenarios.language.forms import Misused, near_or_all
from jepsen_like.scenarios.stage.machines import DISKS, LINKS
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.sim.world.network import LinkFaults
from quorum.raft.config import SnapshotSettings

__all__ = ["STARTS", "ClusterSettings", "ZkSettings", "started", "told"]

STARTS = {
    "start COUNT": "a quorum of so many voters; `with` settings, as in `with observers=1`",
    "start COUNT controllers, COUNT brokers": "a cluster with the partition orders-0; or `with` …",
    "start quorum, cluster or zookeeper, SETTINGS": "what a schedule is played on",
}
_TOLD = re.compile(
    r"start (?:(?P<voters>[1-9])|(?P<controllers>[1-9]) controllers, (?P<brokers>[1-9]) brokers)"
    r"(?: with (?P<settings>.+))?"
)
_TELLING = Options(
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
_TELLING_CLUSTER = ClusterOptions(
    quorum=replace(_TELLING, kraft_version=0, fetch_max_wait_ms=50, request_timeout_ms=300),
    min_insync_replicas=1,
    session_timeout_ms=1_000,
    lag_time_max_ms=1_000,
    fetch_wait_ms=100,
    produce_interval_ms=0,
    client_timeout_ms=3_000,
)
_OFTEN = SnapshotSettings(  # a few batches, and the log is cleaned
    bytes_between=500, interval_ms=0, retention_bytes=1000, retention_ms=-1
)
SNAPSHOTS: Mapping[str, SnapshotSettings] = {
    "early": SnapshotSettings(bytes_between=300, interval_ms=0, retention_bytes=0),
    "often": _OFTEN,
    "in_pieces": replace(_OFTEN, fetch_max_bytes=100),
    "each_second": SnapshotSettings(interval_ms=1_000),
}
_MS_MIN = 100
_VARIED_US = 300  # how much a message or a sync takes more, on average, with a seed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """As in `ClusterOptions`."""

    brokers: int = 3
    controllers: int = 1
    replicas: int = 3
    min_insync_replicas: int = 1
    unclean: bool = False
    lag_time_max_ms: int = 2_000
    idle_interval_ms: int = 0
    delay_us: int = 100
    session_timeout_ms: int = 3_000
    elr: bool = False
    start_ms: int = 30_000  # until all are up: L-BR
    fetch_timeout_ms: int = WAIT_MS  # long: who is told nothing keeps its controller
    client_timeout_ms: int = WAIT_MS
    transaction_version: int = 0  # 0: there are no transactions
    verifies_transactions: bool = True

    def options(self, *, is_varied: bool) -> ClusterOptions:
        varied_us = _VARIED_US if is_varied else 1
        return ClusterOptions(
            quorum=Options(
                voters=self.controllers,
                observers=self.brokers,
                fetch_timeout_ms=self.fetch_timeout_ms,
                request_timeout_ms=3_000,
                links=LinkFaults(delay_us_min=self.delay_us, delay_us_mean=varied_us),
                disks=DiskFaults(sync_us_min=50, sync_us_mean=varied_us),
                turns_us=AT_ONCE,
            ),
            replication_factor=self.replicas,
            min_insync_replicas=self.min_insync_replicas,
            unclean=self.unclean,
            elr=self.elr,
            heartbeat_interval_ms=self.session_timeout_ms // 10,
            session_timeout_ms=self.session_timeout_ms,
            lag_time_max_ms=self.lag_time_max_ms,
            idle_interval_ms=self.idle_interval_ms,
            produce_interval_ms=0,
            client_timeout_ms=self.client_timeout_ms,
            transaction_version=self.transaction_version,
            verifies_transactions=self.verifies_transactions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSettings:
    """A cluster of ZooKeeper mode. `design` is a name; `without` is as in `wire.zk.switches`."""

    design: str = "zk-v3"
    without: str = ""
    brokers: int = 3
    lag_time_max_ms: int = 1000
    session_timeout_ms: int = 1000
    ack_timeout_ms: int = 500  # of a controller's command
    queue_max: int = 1000
    unclean: bool = False


_SETTINGS = {"quorum": Options(), "cluster": ClusterSettings(), "zookeeper": ZkSettings()}


def started(command: str) -> tuple[str, dict[str, Any]]:
    """`start quorum, voters=3`: what is started, and its settings. Raises Misused."""
    kind, _, settings = command.removeprefix("start ").partition(", ")
    if not command.startswith("start ") or kind not in _SETTINGS:
        known = " or ".join(f"`start {each}`" for each in _SETTINGS)
        raise Misused(f"`{command}` cannot be read: a schedule begins with {known}")
    return kind, _settings_in(settings, _SETTINGS[kind], command)


def told(command: str) -> tuple[Options | ClusterOptions, bool]:
    """What a scenario starts, and whether its time-outs have a random part. Raises Misused."""
    match = _TOLD.fullmatch(command)
    if match is None:
        raise Misused("a scenario begins with `start`: `start 3`, `start 1 controllers, 3 brokers`")
    said = match["settings"] or ""
    if match["voters"]:
        are_equal = said == "timers=equal"
        settings = _settings_in("" if are_equal else said, _TELLING, command)
        return replace(_TELLING, voters=int(match["voters"]), **settings), not are_equal
    cluster = replace(_TELLING_CLUSTER, **_settings_in(said, _TELLING_CLUSTER, command))
    if not cluster.session_timeout_ms >= _MS_MIN:
        raise Misused(f"a session here lasts {_MS_MIN} ms, or longer: some round trips")
    controllers, brokers = int(match["controllers"]), int(match["brokers"])
    return replace(
        cluster,
        quorum=replace(cluster.quorum, voters=controllers, observers=brokers),
        replication_factor=brokers,
        heartbeat_interval_ms=cluster.session_timeout_ms // 5,
    ), True


def _settings_in(text: str, defaults: Any, command: str) -> dict[str, Any]:
    """`NAME=VALUE, …`: fields of `defaults`, and values of their types."""
    options = [each.name for each in fields(defaults)]
    settings = {}
    for pair in text.split(", ") if text else ():
        name, separator, said = pair.partition("=")
        if not separator:
            raise Misused(f"`{pair}` is no setting: write NAME=VALUE")
        if name not in options:
            raise Misused(f"`{command}`: no option {name!r}: {near_or_all(name, options)}")
        default = getattr(defaults, name)
        settings[name] = value = _value(name, said)
        if isinstance(default, int | str) and type(value) is not type(default):
            raise Misused(f"`{said}` is nothing for {name}")
    return settings


def _value(name: str, said: str) -> object:
    if name == "snapshots" and said in SNAPSHOTS:
        return SNAPSHOTS[said]
    if said in ("true", "false"):
        return said == "true"
    return int(said) if said.isdecimal() else said
