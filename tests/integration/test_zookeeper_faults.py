"""Faults between brokers and their ZooKeeper: they bite, they say so, and they are healed."""

from pathlib import Path

import pytest

from jepsen_like.faults.fault import Fault
from jepsen_like.real.injection.local_injectors import injectors, prepared
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh
from jepsen_like.real.zookeeper import missing_reason
from quorumlab import cluster_status as status
from tests.integration.waiting import wait

NO_ZOOKEEPER = missing_reason()
pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or ""),
]


def test_broker_that_is_cut_off_from_zookeeper_loses_its_session_and_comes_back(
    tmp_path: Path,
) -> None:
    cluster = LocalCluster.create(tmp_path, brokers=2, design="zk-kip497", proxies=True)
    zookeeper = cluster.zookeeper
    assert zookeeper is not None
    with prepared(cluster, ["cut-zookeeper"]) as gear, ProxyMesh(cluster.layout.proxied) as mesh:
        try:
            cluster.start_all()
            cluster.wait_ready()
            told = status.describe(cluster)["zookeepers"]
            assert [server["role"] for server in told] == ["standalone"]
            known = injectors(cluster, mesh, gear)
            assert known["cut-zookeeper"].why_not == ""
            before = zookeeper.sessions()
            assert before is not None
            assert len(before) == 2

            cut = known["cut-zookeeper"].inject(Fault(kind="cut-zookeeper"), [1])
            wait(lambda: len(zookeeper.sessions() or ()) == 1, "the end of its session")
            cut.heal()
            wait(lambda: len(zookeeper.sessions() or ()) == 2, "its next session")
            cluster.wait_ready()

            proof = cut.proof()
            assert proof.bit
            assert "the session of node 1 is connecting" in proof.evidence
            assert "of node 1" in proof.evidence.rpartition("ZooKeeper has ended session")[2]
        finally:
            cluster.stop_all()
