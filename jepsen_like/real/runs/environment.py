"""The cluster that a run breaks, ours or somebody else's, and what can be done to it.

Between the nodes of a cluster of ours, which lies in the directory of the run, there are proxies,
so that every fault of a network can be had without root; or, for faults below TCP, a namespace for
each node and nothing between them.

Of a cluster that somebody else runs nothing is known but where its brokers are. For faults between
clients and brokers there is a proxy before each broker, and clients are told of no other way.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jepsen_like.faults.fault import Injector
from jepsen_like.faults.kinds import KINDS, Medium
from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.clients.target import Target, target_of_layout, target_of_servers
from jepsen_like.real.credentials import Credentials
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.injection.local_injectors import injectors, prepared
from jepsen_like.real.injection.namespaces import free_network, why_no_namespaces
from jepsen_like.real.injection.network_faults import on_flows
from jepsen_like.real.injection.zookeeper_faults import zookeeper_nodes
from jepsen_like.real.layout import HOST, ClusterError, Link
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from jepsen_like.real.runs.outcome import Interrupted, Watcher
from jepsen_like.real.runs.run_options import RunOptions

__all__ = ["Environment", "Secure", "our_cluster", "their_cluster", "why_not"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    target: Target
    injectors: Mapping[str, Injector]
    cluster: LocalCluster | None = None  # None: somebody else's
    zookeepers: Sequence[int] = ()  # as faults name them

    def heal(self) -> None:
        """Whatever an injector left behind: every node of ours runs, and none stands still."""
        if self.cluster is not None:
            self.cluster.resume_all()
            self.cluster.start_all()

    def remove_data(self) -> None:
        """Removes the data of a run that needs no second look. Logs of nodes stay."""
        if self.cluster is not None:
            for node in self.cluster.layout.nodes:
                shutil.rmtree(node.data, ignore_errors=True)


@contextmanager
def their_cluster(options: RunOptions) -> Iterator[Environment]:
    """Without faults clients go straight to it; else a proxy stands before each broker."""
    target = target_of_servers(list(options.servers), options.credentials)
    if not options.faults:
        yield Environment(target=target, injectors={})
        return
    ports = free_ports()
    links = [
        Link(source=CLIENTS, target=broker, port=next(ports), target_port=port)
        for broker, (_, port) in target.brokers.items()
    ]
    proxies = {link.target: (HOST, link.port) for link in links}
    tls = options.credentials.proxied
    with ProxyMesh(links, seed=options.seed, elsewhere=target.brokers, tls=tls) as mesh:
        known = on_flows([list(target.brokers)], mesh)
        credentials = options.credentials if tls is None else tls.credentials
        met = replace(target, brokers=proxies, credentials=credentials)
        yield Environment(target=met, injectors=known)


Secure = Callable[[LocalCluster], Credentials]


@contextmanager
def our_cluster(options: RunOptions, watcher: Watcher, secure: Secure) -> Iterator[Environment]:
    """Started and ready; stopped when left. Raises Interrupted."""

    def progress(text: str) -> None:
        if watcher.is_interrupted():
            raise Interrupted
        watcher.progress(text)

    with ExitStack() as stack:
        cluster = _create(options, options.directory / "cluster")
        stack.enter_context(cluster.lock())
        mesh = stack.enter_context(ProxyMesh(cluster.layout.proxied, seed=options.seed))
        gear = stack.enter_context(prepared(cluster, options.kinds))
        cluster.credentials = secure(cluster)  # on the disks that it was given
        known = injectors(cluster, mesh, gear)
        for kind in options.kinds:
            if why := known[kind].why_not:
                raise ClusterError(f"{kind}: {why}")
        stack.callback(_stop, cluster)
        cluster.start_all()
        cluster.wait_ready(progress=progress)
        yield Environment(
            target=target_of_layout(cluster.layout, cluster.credentials),
            injectors=known,
            cluster=cluster,
            zookeepers=zookeeper_nodes(cluster.layout),
        )


def why_not(directory: Path, kinds: Sequence[str]) -> Mapping[str, str]:
    """The kinds of faults that this machine cannot do, and why. Nothing is started."""
    reasons: dict[str, str] = {}
    for medium in Medium:
        alike = [kind for kind in kinds if KINDS[kind].medium is medium]
        network = _network_for(alike)
        cluster = LocalCluster.create(
            directory / medium,
            controllers=1,
            brokers=1,
            first_voters=1,
            proxies=not network,
            network=network,
        )
        with prepared(cluster, alike) as gear:
            known = injectors(cluster, ProxyMesh(cluster.layout.proxied), gear)
            reasons |= {kind: known[kind].why_not for kind in alike}
    return {kind: reasons[kind] for kind in kinds if reasons[kind]}


def _network_for(kinds: Sequence[str], *, has_zookeeper: bool = False) -> str:
    """In which the nodes have addresses; "" if they meet over proxies."""
    wants_it = any(KINDS[kind].medium is Medium.NAMESPACES for kind in kinds)
    return free_network() if wants_it and not has_zookeeper and not why_no_namespaces() else ""


def _create(options: RunOptions, directory: Path) -> LocalCluster:
    has_changing_voters = options.workload == "admin" or "membership" in options.kinds
    settings = {}
    if options.workload == "cas-register":
        settings["quorumlab.application"] = "register"
    if options.workload == "register":
        settings["quorumlab.confirmed.reads.enable"] = "true"
    network = _network_for(options.kinds, has_zookeeper=options.has_zookeeper)
    return LocalCluster.create(
        directory,
        controllers=options.controllers,
        brokers=options.brokers,
        first_voters=options.controllers if has_changing_voters else 0,
        settings=settings,
        proxies=not network,
        network=network,
        design=options.design if options.has_zookeeper else None,
        engine=options.engine,
        zookeepers=options.zookeepers if options.has_zookeeper else None,
        security=options.security,
    )


def _stop(cluster: LocalCluster) -> None:
    """Also what is paused."""
    cluster.resume_all()
    cluster.stop_all()
