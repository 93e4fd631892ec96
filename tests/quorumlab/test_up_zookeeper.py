"""`up` and ZooKeeper: one of the cluster's own, or another; what cannot be is refused."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorumlab.arguments import UsageError
from quorumlab.config import node_config, parse_properties
from quorumlab.verbs.up_cluster import cluster_asked_for, refuse_what_cannot_be
from wire.zk.switches import switched_off

ASKED: dict[str, object] = {
    "design": "zk-redesign",
    "engine": "native",
    "security": None,
    "controllers": None,
    "brokers": None,
    "combined": False,
    "dynamic": False,
    "release_version": None,
    "zookeepers": None,
    "zookeeper_connect": None,
    "without": None,
    "port": None,
    "set": [],
}


def asked(**options: object) -> SimpleNamespace:
    return SimpleNamespace(**ASKED | options)


def test_cluster_on_another_zookeeper_has_none_of_its_own(tmp_path: Path) -> None:
    wanted = asked(zookeeper_connect="one:2181,two:2182")
    refuse_what_cannot_be(wanted, tmp_path)
    cluster = cluster_asked_for(wanted, tmp_path)
    assert cluster.zookeeper is None
    written = cluster.layout.properties(cluster.layout.nodes[0], {})
    assert "zookeeper.connect=one:2181,two:2182\n" in written
    again = cluster_asked_for(asked(design=None), tmp_path)
    assert again.layout.zookeeper_connect == "one:2181,two:2182", "the directory knows"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"design": "quorum", "zookeeper_connect": "h:1"}, "has no ZooKeeper"),
        ({"zookeepers": 3, "zookeeper_connect": "h:1"}, "leave one out"),
        ({"zookeeper_connect": "somewhere"}, "expected HOST:PORT"),
        ({"zookeeper_connect": "h:1,"}, "expected HOST:PORT"),
        ({"set": ["zookeeper.connect=h:1"], "zookeeper_connect": "h:1"}, "each node has its own"),
        ({"design": "quorum", "without": "guarded-writes"}, "has no ZooKeeper"),
        ({"without": "guarded-writes"}, "--without guarded-writes: zk-redesign has no guarded-wr"),
        ({"without": "generation-checks"}, "did you mean 'generation-check'?"),
        ({"set": ["quorumlab.zk.without=x"], "zookeeper_connect": "h:1"}, "no switch 'x'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_what_cannot_be(asked(**options), tmp_path)
    assert words in str(caught.value)


def test_switches_are_written_into_the_files_of_a_new_cluster(tmp_path: Path) -> None:
    wanted = asked(zookeeper_connect="h:1", without="generation-check,batched-commands")
    refuse_what_cannot_be(wanted, tmp_path)
    cluster = cluster_asked_for(wanted, tmp_path)
    assert cluster.settings["quorumlab.zk.without"] == "batched-commands,generation-check"
    node = cluster.layout.nodes[0]
    written = cluster.layout.properties(node, cluster.settings)
    node.path.mkdir(exist_ok=True)
    node.config.write_text(written)
    design = node_config(parse_properties(written)).design
    assert design is not None
    assert switched_off(design) == ("batched-commands", "generation-check")
    refuse_what_cannot_be(asked(without="batched-commands,generation-check"), tmp_path)
    with pytest.raises(UsageError, match=r"quorumlab.zk.without=batched-commands is for a new one"):
        refuse_what_cannot_be(asked(without="batched-commands"), tmp_path)


def test_design_whose_client_is_missing_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kazoo", None)
    with pytest.raises(UsageError, match=r"zk-redesign: .*kazoo.*pip install -e '\.\[zk\]'"):
        refuse_what_cannot_be(asked(), tmp_path)
    assert list(tmp_path.iterdir()) == []
