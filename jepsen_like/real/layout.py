"""The directory of a local cluster: which nodes it has, where they listen, where their data lies.

DIR/cluster.json                what the cluster is; written once, by the first `up`
DIR/up.lock                     pid and start time of the `up` that runs it
DIR/<id>/server.properties      the node's configuration, in Kafka's keys
DIR/<id>/node.pid               pid and start time of the node's process
DIR/<id>/node.log               what it printed
DIR/<id>/data/                  its log directory, in Kafka's format
DIR/security/                   the secrets of a secured one: `jepsen_like.real.secured`
DIR/zookeeper/                  the ZooKeeper of a design that has one: `jepsen_like.real.zookeeper`

Proxies may stand between nodes (`jepsen_like.real.proxy`). One link is one way for one asker. Every
node reaches every other one over a link of its own, so that each can be cut alone; clients share
one link to each broker. Brokers advertise the links of the clients; nodes know each other by their
usual addresses and dial the links instead (`quorumlab.dial.overrides`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from msgspec import MsgspecError, convert

from jepsen_like.faults.participants import CLIENTS
from jepsen_like.installation import command
from jepsen_like.real.secured import (
    Listening,
    SecurityFiles,
    advertised_listeners,
    listener_pairs,
)

__all__ = [
    "CLUSTER_FILE",
    "CONTROLLED_SHUTDOWN_DEFAULT_MS",
    "CONTROLLED_SHUTDOWN_SETTING",
    "FAST_SETTINGS",
    "FAST_ZOOKEEPER_SETTINGS",
    "HOST",
    "Address",
    "ClusterError",
    "ClusterLayout",
    "Link",
    "NodeLayout",
    "ProcessDirectory",
    "write_json",
]

HOST = "127.0.0.1"
Address = tuple[str, int]
CLUSTER_FILE = "cluster.json"  # in the directory of a cluster: its layout

CONTROLLED_SHUTDOWN_SETTING = "quorumlab.controlled.shutdown.timeout.ms"
CONTROLLED_SHUTDOWN_DEFAULT_MS = 300_000  # of a node's configuration that does not say it

# Kafka's defaults are made for machine rooms; a cluster on one machine may notice failures sooner.
_FAST_BROKERS: Mapping[str, str] = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "400",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "100",
    CONTROLLED_SHUTDOWN_SETTING: "3000",
    "group.initial.rebalance.delay.ms": "0",  # as in the server.properties that Kafka ships
}
FAST_ZOOKEEPER_SETTINGS: Mapping[str, str] = {
    "zookeeper.session.timeout.ms": "2000",
    "controller.socket.timeout.ms": "3000",
    "quorumlab.reassignment.wake.ms": "2000",
    **_FAST_BROKERS,
}
FAST_SETTINGS: Mapping[str, str] = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.request.timeout.ms": "1000",
    **_FAST_BROKERS,
}


class ClusterError(Exception):
    """Something about the cluster stands in the way; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`source` dials `port` and gets to `target_port`. A source of CLIENTS: whoever is no node."""

    source: int
    target: int
    port: int
    target_port: int
    controller: bool = False  # the quorum's listener of the target, not the one for clients
    zookeeper: bool = False  # the target is a ZooKeeper, and speaks its own protocol
    tls: bool = False  # what passes is encrypted


class ProcessDirectory:
    """What every process of a cluster has in a directory of its own."""

    __slots__ = ()
    dir: str

    @property
    def path(self) -> Path:
        return Path(self.dir)

    @property
    def log(self) -> Path:
        return self.path / "node.log"

    @property
    def pid_file(self) -> Path:
        return self.path / "node.pid"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLayout(ProcessDirectory):
    id: int
    roles: tuple[str, ...]
    host: str
    port: int  # clients of a broker; the quorum on a node that is only a controller
    controller_port: int | None  # the quorum's listener, on controllers
    http_port: int
    dir: str
    broker_port: int | None = None  # where brokers ask each other, on brokers of a secured cluster
    first_voter: str = ""  # the id of its metadata directory, if the log's first voters name it

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def config(self) -> Path:
        return self.path / "server.properties"

    @property
    def data(self) -> Path:
        return self.path / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayout:
    directory: Path
    cluster_id: str
    design: str
    engine: str
    combined: bool
    nodes: tuple[NodeLayout, ...]
    release_version: str = ""  # of Kafka, whose features its log begins with; "": the newest
    dynamic: bool = False  # the voters live in the log (KIP-853), not in the configuration
    zookeepers: int = 0  # servers that belong to the cluster, in the designs that have them
    zookeeper_connect: str = ""
    links: tuple[Link, ...] = ()  # the proxies between the nodes; none: they dial each other
    zookeeper_links: tuple[Link, ...] = ()  # those from brokers to the ZooKeepers of the cluster
    security: str = ""  # what its clients speak; a plain cluster asks nobody who they are
    network: str = ""  # of which nodes have addresses, if each has a namespace: "198.18.7"

    @property
    def controllers(self) -> tuple[NodeLayout, ...]:
        return tuple(node for node in self.nodes if node.is_controller)

    @property
    def brokers(self) -> tuple[NodeLayout, ...]:
        return tuple(node for node in self.nodes if node.is_broker)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{node.host}:{self.advertised_port(node)}" for node in self.brokers)

    def advertised_port(self, node: NodeLayout) -> int:
        """Where a broker says that it listens."""
        own = (each.port for each in self.links if (each.source, each.target) == (CLIENTS, node.id))
        return next(own, node.port)

    @property
    def proxied(self) -> tuple[Link, ...]:
        """All links that need a proxy."""
        return (*self.links, *self.zookeeper_links)

    @property
    def initial_controllers(self) -> str:
        """The first voters, as `format --initial-controllers` takes them."""
        return ",".join(
            f"{node.id}@{node.host}:{node.controller_port}:{node.first_voter}"
            for node in self.controllers
            if node.first_voter
        )

    @property
    def security_files(self) -> SecurityFiles:
        return SecurityFiles(self.directory)

    def node(self, node_id: int) -> NodeLayout:
        for node in self.nodes:
            if node.id == node_id:
                return node
        known = ", ".join(str(node.id) for node in self.nodes)
        raise ClusterError(f"no node {node_id} in {self.directory}; its nodes are {known}")

    def save(self) -> None:
        write_json(self.directory / CLUSTER_FILE, asdict(self) | {"directory": None})

    @classmethod
    def load(cls, directory: Path) -> "ClusterLayout":
        path = directory / CLUSTER_FILE
        try:
            stored = json.loads(path.read_text())
            _refuse_moved(directory, Path(stored["nodes"][0]["dir"]).parent)
            return convert(stored | {"directory": directory}, cls)
        except FileNotFoundError:
            raise ClusterError(
                f"no cluster in {directory}: start one with `{command('up', '--dir', directory)}`"
            ) from None
        except NotADirectoryError:
            raise ClusterError(
                f"{directory} is a file: name the directory of a cluster by --dir"
            ) from None
        except (OSError, ValueError, LookupError, TypeError, MsgspecError) as error:
            raise ClusterError(f"{path} cannot be read: {error}") from error

    def refuse_changes(self, wanted: "ClusterLayout") -> None:
        """A cluster on disk is what it is: name the first thing that `wanted` would change."""
        for what, ours, theirs in (
            ("design", self.design, wanted.design),
            ("engine", self.engine, wanted.engine),
            ("number of ZooKeepers", self.zookeepers, wanted.zookeepers),
            (
                "ZooKeeper",
                self.zookeeper_connect,
                wanted.zookeeper_connect or self.zookeeper_connect,
            ),
            ("number of controllers", len(self.controllers), len(wanted.controllers)),
            ("number of brokers", len(self.brokers), len(wanted.brokers)),
            ("combined roles", self.combined, wanted.combined),
            ("way to name voters", self._voters, wanted._voters),
            ("way between nodes", self._way, wanted._way),
            ("first release", self.release_version, wanted.release_version),
            ("security", self.security or "none", wanted.security or "none"),
        ):
            if ours != theirs:
                raise ClusterError(
                    f"{self.directory} holds a cluster whose {what} is {ours}, not {theirs}: "
                    "use another --dir, or leave the option out"
                )

    @property
    def _voters(self) -> str:
        return "dynamic" if self.dynamic else "static"

    @property
    def _way(self) -> str:
        if self.network:
            return f"through namespaces in {self.network}.0/24"
        return "through proxies" if self.links else "direct"

    def properties(self, node: NodeLayout, settings: Mapping[str, str]) -> str:
        """The text of the node's server.properties."""
        return "".join(f"{key}={value}\n" for key, value in self._pairs(node, settings))

    def _pairs(self, node: NodeLayout, settings: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        if self.zookeeper_connect:
            yield "broker.id", str(node.id)
            yield "zookeeper.connect", self._zookeeper_for(node)
            yield "quorumlab.design", self.design
            yield "listeners", f"PLAINTEXT://{node.host}:{node.port}"
        else:
            yield from self._of_quorum(node)
        if self.links:
            if node.is_broker:
                yield "advertised.listeners", self._advertised(node)
            yield "quorumlab.dial.overrides", ",".join(self._dial_overrides(node))
        yield "quorumlab.http.listener", f"{node.host}:{node.http_port}"
        pages = (f"{each.id}@{each.host}:{each.http_port}" for each in self.nodes)
        yield "quorumlab.http.nodes", ",".join(pages)
        yield "log.dirs", str(node.data)
        replication_factor = str(max(1, min(3, len(self.brokers))))
        yield "default.replication.factor", replication_factor
        yield "offsets.topic.replication.factor", replication_factor
        yield "transaction.state.log.replication.factor", replication_factor
        yield "transaction.state.log.min.isr", str(min(2, int(replication_factor)))
        yield from settings.items()

    def _advertised(self, node: NodeLayout) -> str:
        port = self.advertised_port(node)
        if not self.security:
            return f"PLAINTEXT://{node.host}:{port}"
        return advertised_listeners(node.host, clients=port, brokers=node.broker_port)

    def _dial_overrides(self, node: NodeLayout) -> Iterable[str]:
        """The addresses that the node knows, and the links to dial instead."""
        for link in self.links:
            if link.source == node.id:
                target = self.node(link.target)
                is_known = link.controller or self.security
                known = link.target_port if is_known else self.advertised_port(target)
                yield f"{target.host}:{known}={target.host}:{link.port}"

    def _zookeeper_for(self, node: NodeLayout) -> str:
        """Where this node finds it: over links of its own, if there are any."""
        own = [link for link in self.zookeeper_links if link.source == node.id]
        return ",".join(f"{HOST}:{link.port}" for link in own) or self.zookeeper_connect

    def _of_quorum(self, node: NodeLayout) -> Iterable[tuple[str, str]]:
        addresses = {c.id: f"{c.host}:{c.controller_port}" for c in self.controllers}
        yield "process.roles", ",".join(node.roles)
        yield "node.id", str(node.id)
        if self.dynamic:
            yield "controller.quorum.bootstrap.servers", ",".join(addresses.values())
        else:
            voters = (f"{node_id}@{address}" for node_id, address in addresses.items())
            yield "controller.quorum.voters", ",".join(voters)
        if self.engine != "native" and node.is_controller:
            yield "quorumlab.engine", self.engine
        yield "controller.listener.names", "CONTROLLER"
        yield from self._secured(node) if self.security else self._plain(node)

    @staticmethod
    def _plain(node: NodeLayout) -> Iterable[tuple[str, str]]:
        listeners = []
        if node.is_broker:
            listeners.append(f"PLAINTEXT://{node.host}:{node.port}")
        if node.is_controller:
            listeners.append(f"CONTROLLER://{node.host}:{node.controller_port}")
        yield "listeners", ",".join(listeners)

    def _secured(self, node: NodeLayout) -> Iterable[tuple[str, str]]:
        at = Listening(
            host=node.host,
            clients=node.port if node.is_broker else None,
            brokers=node.broker_port,
            controllers=node.controller_port,
        )
        ids = [each.id for each in self.nodes]
        return listener_pairs(self.security, self.security_files, node.id, at, ids)


def write_json(path: Path, stored: object) -> None:
    """Replace the file at once: a reader sees the old content or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(stored, indent=2) + "\n")
    temporary.rename(path)


def _refuse_moved(directory: Path, made_in: Path) -> None:
    """The nodes of a directory that was moved or copied would go on in the old place."""
    where = quote(str(directory))
    if made_in != directory:
        raise ClusterError(
            f"{directory} was made as {made_in}, and its files still name that: "
            f"`sed -i {quote(f's,{made_in}/,{directory}/,g')} {where}/cluster.json "
            f"{where}/*/server.properties` tells them"
        )
