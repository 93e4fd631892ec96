"""The directory of a local cluster: what is planned, kept, and refused."""

import re
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.layout import ClusterError, ClusterLayout
from jepsen_like.real.shape import Shape
from quorumlab.config import node_config, parse_properties
from wire.zk.designs import DESIGNS


def layout(directory: Path, **wanted: Any) -> ClusterLayout:
    return Shape(**wanted).lay_out(directory, count(20_000))


def test_brokers_count_from_1_and_controllers_from_101(tmp_path: Path) -> None:
    planned = layout(tmp_path)
    assert [node.id for node in planned.brokers] == [1, 2, 3]
    assert [node.id for node in planned.controllers] == [101, 102, 103]
    assert planned.bootstrap_servers == "127.0.0.1:20000,127.0.0.1:20001,127.0.0.1:20002"


@pytest.mark.parametrize(("controllers", "brokers"), [(1, 3), (3, 1), (3, 3), (1, 1)])
def test_combined_nodes_share_processes(tmp_path: Path, controllers: int, brokers: int) -> None:
    planned = layout(tmp_path, controllers=controllers, brokers=brokers, combined=True)
    assert len(planned.nodes) == max(controllers, brokers)
    assert len(planned.controllers) == controllers
    assert len(planned.brokers) == brokers


def test_nodes_of_a_network_have_addresses_there(tmp_path: Path) -> None:
    planned = layout(tmp_path, controllers=2, brokers=1, network="198.18.7")
    assert {node.id: node.host for node in planned.nodes} == {
        1: "198.18.7.1",
        101: "198.18.7.2",
        102: "198.18.7.3",
    }
    planned.save()
    assert ClusterLayout.load(tmp_path) == planned
    with pytest.raises(ClusterError, match=r"through namespaces in 198.18.7.0/24, not direct"):
        planned.refuse_changes(layout(tmp_path, controllers=2, brokers=1))


@pytest.mark.parametrize("proxies", [False, True])
@pytest.mark.parametrize("combined", [False, True])
def test_no_port_is_given_twice_and_what_is_saved_is_loaded(
    tmp_path: Path, combined: bool, proxies: bool
) -> None:
    planned = layout(tmp_path, combined=combined, proxies=proxies)
    ports = [
        port
        for node in planned.nodes
        for port in {node.port, node.controller_port or node.port, node.http_port}
    ]
    ports += [link.port for link in planned.links]
    assert len(ports) == len(set(ports))
    planned.save()
    assert ClusterLayout.load(tmp_path) == planned


def test_a_moved_directory_is_refused_with_what_mends_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "1").mkdir(parents=True)
    planned = layout(made)
    planned.save()
    planned.node(1).config.write_text(planned.properties(planned.node(1), {}))
    moved = made.rename(tmp_path / "moved")
    with pytest.raises(ClusterError, match=f"was made as {made}") as refused:
        ClusterLayout.load(moved)
    (command,) = re.findall("`(.*)`", str(refused.value))
    subprocess.run(["bash", "-c", command], check=True)
    node = ClusterLayout.load(moved).node(1)
    assert parse_properties(node.config.read_text())["log.dirs"] == str(moved / "1" / "data")


def test_proxies_of_a_secured_cluster_lead_to_the_listener_that_the_asker_wants(
    tmp_path: Path,
) -> None:
    """Who is told where a listener is, dials the proxy before it."""
    planned = layout(tmp_path, controllers=1, brokers=2, proxies=True, security="sasl_plaintext")
    told = parse_properties(planned.properties(planned.node(1), {}))
    to_2 = {link.source: link for link in planned.links if link.target == 2}
    assert to_2[CLIENTS].target_port == planned.node(2).port
    assert to_2[1].target_port == planned.node(2).broker_port
    own_port = planned.advertised_port(planned.node(1))
    assert told["advertised.listeners"] == (
        f"CLIENTS://127.0.0.1:{own_port},BROKERS://127.0.0.1:{planned.node(1).broker_port}"
    )
    dialed = f"127.0.0.1:{planned.node(2).broker_port}=127.0.0.1:{to_2[1].port}"
    assert dialed in told["quorumlab.dial.overrides"].split(",")
    in_the_clear = {link.source for link in planned.links if not link.tls}
    assert in_the_clear == {CLIENTS}


@pytest.mark.parametrize("combined", [False, True])
def test_every_node_gets_a_configuration_that_the_node_accepts(
    tmp_path: Path, combined: bool
) -> None:
    planned = layout(tmp_path, combined=combined)
    for node in planned.nodes:
        config = node_config(parse_properties(planned.properties(node, {})))
        assert config.node_id == node.id
        assert config.roles == set(node.roles)
        assert [voter.node_id for voter in config.voters] == [c.id for c in planned.controllers]
        assert config.warnings == ()


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"combined": True},
        {"first_voters": 3},
        {"proxies": True},
        {"proxies": True, "security": "sasl_ssl"},
        {"network": "198.18.7"},
        {"engine": "raftos"},
        *(
            {"design": design, "zookeeper_connect": "127.0.0.1:2181", "brokers": 3}
            for design in DESIGNS
        ),
    ],
    ids=lambda wanted: str(wanted.get("design", "-".join(wanted) or "plain")),
)
def test_every_node_is_told_where_all_of_them_serve_http(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    planned = layout(tmp_path, **wanted)
    expected = {node.id: (node.host, node.http_port) for node in planned.nodes}
    assert len(expected) >= 3
    for node in planned.nodes:
        config = node_config(parse_properties(planned.properties(node, {})))
        assert config.http_nodes == expected
        assert config.http_nodes[node.id] == (config.http_host, config.http_port)
        assert config.warnings == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": 4}, "number of brokers is 3, not 4"),
        ({"controllers": 1}, "number of controllers is 3, not 1"),
        ({"combined": True}, "combined roles is False, not True"),
    ],
)
def test_a_cluster_on_disk_is_what_it_is(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClusterError, match=words):
        layout(tmp_path).refuse_changes(layout(tmp_path, **change))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"nodes": 3}', '{"nodes": []}'])
def test_a_broken_description_is_an_error_that_names_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(ClusterError, match=r"cluster\.json"):
        ClusterLayout.load(tmp_path)
