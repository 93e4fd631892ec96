"""The proxies of a cluster: who reaches whom over which, and what the nodes are told."""

from itertools import count
from pathlib import Path

import pytest

from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.shape import Shape
from quorumlab.config import node_config, parse_properties


def layout(directory: Path, *, combined: bool = False, proxies: bool = True) -> ClusterLayout:
    return Shape(combined=combined, proxies=proxies).lay_out(directory, count(20_000))


def test_everybody_asks_controllers_and_brokers_and_clients_ask_brokers(tmp_path: Path) -> None:
    links = layout(tmp_path).links
    controllers = {(link.source, link.target) for link in links if link.controller}
    assert len(controllers) == 3 * 5
    assert {(1, 101), (102, 101)} < controllers
    brokers = {(link.source, link.target) for link in links if not link.controller}
    assert brokers == {(a, b) for a in (CLIENTS, 1, 2, 3) for b in (1, 2, 3) if a != b}


@pytest.mark.parametrize("combined", [False, True])
def test_each_node_dials_its_own_links_for_the_addresses_it_knows(
    tmp_path: Path, combined: bool
) -> None:
    planned = layout(tmp_path, combined=combined)
    advertised = {}
    for node in planned.nodes:
        config = node_config(parse_properties(planned.properties(node, {})))
        for link in planned.links:
            if link.source == node.id:
                assert link.port in [port for _, port in config.dial_overrides.values()]
        known = {port for _, port in config.dial_overrides}
        others = [other for other in planned.controllers if other.id != node.id]
        assert {other.controller_port for other in others} <= known
        advertised[node.id] = {each.port for each in config.advertised}
    for link in planned.links:
        if link.source == CLIENTS:
            assert link.port in advertised[link.target]
            assert f":{link.port}" in planned.bootstrap_servers


def test_without_proxies_nodes_dial_each_other(tmp_path: Path) -> None:
    planned = layout(tmp_path, proxies=False)
    assert planned.links == ()
    text = planned.properties(planned.nodes[0], {})
    assert "quorumlab.dial" not in text
    assert "advertised" not in text


def test_each_broker_reaches_each_zookeeper_over_a_link_of_its_own(tmp_path: Path) -> None:
    cluster = LocalCluster.create(
        tmp_path, brokers=2, design="zk-kip497", zookeepers=3, proxies=True
    )
    layout = cluster.layout
    links = {(link.source, link.target): link for link in layout.zookeeper_links}
    assert set(links) == {(broker, server) for broker in (1, 2) for server in (201, 202, 203)}
    behind = ",".join(f"127.0.0.1:{links[1, each].target_port}" for each in (201, 202, 203))
    assert behind == layout.zookeeper_connect
    for node in layout.nodes:
        own = [links[node.id, each].port for each in (201, 202, 203)]
        told = ",".join(f"127.0.0.1:{port}" for port in own)
        assert f"zookeeper.connect={told}\n" in layout.properties(node, {})
    assert set(layout.proxied) == {*layout.links, *layout.zookeeper_links}
    assert ClusterLayout.load(tmp_path) == layout


def test_without_proxies_brokers_reach_zookeeper_itself(tmp_path: Path) -> None:
    layout = LocalCluster.create(tmp_path, brokers=1, design="zk-kip497").layout
    assert layout.zookeeper_links == ()
    text = layout.properties(layout.nodes[0], {})
    assert f"zookeeper.connect={layout.zookeeper_connect}\n" in text
