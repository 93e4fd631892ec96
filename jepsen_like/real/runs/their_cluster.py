"""A cluster that somebody else runs: nothing is known of it but where its brokers are.

For faults between clients and brokers there is, before each broker, a proxy that makes them and a
signpost that keeps clients from going past it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from jepsen_like.participants import CLIENTS
from jepsen_like.real.clients.target import Address, target_of_servers
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.injection.network import on_flows
from jepsen_like.real.layout import ClusterLayout, NodeLayout
from jepsen_like.real.links import Link
from jepsen_like.real.proxy import ProxyMesh
from jepsen_like.real.runs.environment import Environment
from jepsen_like.real.runs.options import RunOptions
from jepsen_like.real.signposts import Signposts

__all__ = ["their_cluster"]

_HOST = "127.0.0.1"  # of all that stands between


@contextmanager
def their_cluster(options: RunOptions) -> Iterator[Environment]:
    """Without faults clients go straight to it; else a proxy stands before each broker."""
    target = target_of_servers(list(options.servers))
    if not options.faults:
        yield Environment(target=target, injectors={})
        return
    layout, posts = _before_brokers(target.brokers, free_ports(), options.directory)
    proxies = {link.target: (_HOST, link.port) for link in layout.links}
    with (
        Signposts(target.brokers, posts, proxies),
        ProxyMesh(layout.links, seed=options.seed) as mesh,
    ):
        yield Environment(target=replace(target, brokers=proxies), injectors=on_flows(layout, mesh))


def _before_brokers(
    brokers: Mapping[int, Address], ports: Iterator[int], directory: Path
) -> tuple[ClusterLayout, Mapping[int, int]]:
    """Somebody else's brokers as a layout of links from clients, and the ports of signposts."""
    posts = {node_id: next(ports) for node_id in brokers}
    nodes = tuple(
        NodeLayout(
            id=node_id,
            roles=("broker",),
            host=host,
            port=port,
            controller_port=None,
            http_port=0,
            dir="",
        )
        for node_id, (host, port) in brokers.items()
    )
    links = tuple(
        Link(
            source=CLIENTS,
            target=node_id,
            port=next(ports),
            target_port=posts[node_id],
            controller=False,
        )
        for node_id in brokers
    )
    layout = ClusterLayout(
        directory=directory,
        cluster_id="",
        design="",
        engine="",
        combined=False,
        nodes=nodes,
        links=links,
    )
    return layout, posts
