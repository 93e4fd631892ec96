"""A cluster of our own in the run's directory, as the run's faults need it.

Between its nodes there are proxies, so that every fault of a network can be had without root.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jepsen_like.faults import Injector
from jepsen_like.real.clients.target import target_of_layout
from jepsen_like.real.injection.registry import injectors, prepared
from jepsen_like.real.injection.zookeeper import zookeeper_nodes
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from jepsen_like.real.runs.environment import Environment
from jepsen_like.real.runs.options import RunOptions
from jepsen_like.real.runs.outcome import Interrupted, Watcher
from jepsen_like.real.runs.plan import kinds_of

__all__ = ["our_cluster", "why_not"]


@contextmanager
def our_cluster(options: RunOptions, watcher: Watcher) -> Iterator[Environment]:
    """Started and ready; stopped when left. Raises Interrupted."""

    def progress(text: str) -> None:
        if watcher.is_interrupted():
            raise Interrupted
        watcher.progress(text)

    with ExitStack() as stack:
        cluster = _create(options, options.directory / "cluster")
        stack.enter_context(cluster.lock())
        mesh = stack.enter_context(ProxyMesh(cluster.layout.links, seed=options.seed))
        disks = stack.enter_context(prepared(cluster, kinds_of(options)))
        known = injectors(cluster, mesh, disks)
        _refuse_what_cannot_be(options, known)
        stack.callback(_stop, cluster)
        cluster.start_all()
        cluster.wait_ready(progress=progress)
        yield Environment(
            target=target_of_layout(cluster.layout),
            injectors=known,
            cluster=cluster,
            zookeepers=zookeeper_nodes(cluster.layout),
        )


def why_not(directory: Path, kinds: Sequence[str]) -> Mapping[str, str]:
    """Those kinds that this machine cannot do, and why. Nothing is started."""
    cluster = LocalCluster.create(directory, controllers=1, brokers=1, first_voters=1, proxies=True)
    with prepared(cluster, kinds) as disks:
        known = injectors(cluster, ProxyMesh(cluster.layout.links), disks)
        reasons = {kind: known[kind].why_not() for kind in kinds}
    return {kind: reason for kind, reason in reasons.items() if reason}


def _refuse_what_cannot_be(options: RunOptions, known: Mapping[str, Injector]) -> None:
    for kind in kinds_of(options):
        reason = known[kind].why_not()
        if reason:
            raise ClusterError(f"{kind}: {reason}")


def _create(options: RunOptions, directory: Path) -> LocalCluster:
    has_changing_voters = options.workload == "admin" or "membership" in kinds_of(options)
    settings = {}
    if options.workload == "cas-register":
        settings["quorumlab.application"] = "register"
    return LocalCluster.create(
        directory,
        controllers=options.controllers,
        brokers=options.brokers,
        first_voters=options.controllers if has_changing_voters else 0,
        settings=settings,
        proxies=True,
        design=options.design if options.has_zookeeper else None,
        zookeepers=options.zookeepers if options.has_zookeeper else None,
    )


def _stop(cluster: LocalCluster) -> None:
    """Also what is paused."""
    for node_id in cluster.running():
        cluster.resume(node_id)
    cluster.stop_all()
