"""Every kind of fault on real processes has an injector, or says why it has none."""

from functools import partial
from pathlib import Path

from jepsen_like.faults.kinds import KINDS
from jepsen_like.real.credentials import Credentials
from jepsen_like.real.injection.local_injectors import Gear, injectors
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.proxy import ProxyMesh


def test_what_processes_cannot_do_is_what_the_vocabulary_says(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path, controllers=1, brokers=1)
    gear = Gear(disks={}, switch=None)
    known = injectors(cluster, ProxyMesh(cluster.layout.proxied), gear)
    assert known.keys() == KINDS.keys()
    missing = [kind for kind in KINDS if not isinstance(known[kind].inject, partial)]
    assert {kind: known[kind].why_not for kind in missing} == {
        kind: each.not_on_processes for kind, each in KINDS.items() if each.not_on_processes
    }


def test_a_plain_cluster_has_no_certificates_and_a_secured_one_no_messages(tmp_path: Path) -> None:
    gear = Gear(disks={}, switch=None)
    plain = LocalCluster.create(tmp_path / "plain", controllers=1, brokers=1, proxies=True)
    known = injectors(plain, ProxyMesh(()), gear)
    assert "--security" in known["rotate-certificates"].why_not
    assert known["hold-rpc"].why_not == ""
    secured = LocalCluster.create(tmp_path / "secured", proxies=True, security="ssl")
    secured.credentials = Credentials(issue=lambda node_id: b"")
    known = injectors(secured, ProxyMesh(()), gear)
    assert known["rotate-certificates"].why_not == ""
    assert "TLS" in known["hold-rpc"].why_not
