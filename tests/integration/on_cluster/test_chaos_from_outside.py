"""Chaos on a cluster that somebody else runs."""

import json
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from tests.integration.test_chaos import chaos_run

pytestmark = pytest.mark.extra


def test_a_cluster_that_somebody_else_runs_is_driven_and_cut_off_from_its_clients(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    servers = cluster.layout.bootstrap_servers
    done = chaos_run(
        "--bootstrap-server", servers, "--faults", "reset,partition", "--seconds", "8", "--seed",
        "1", "--client", "aiokafka", "--out", str(tmp_path / "run"), "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["summary"], told["void"]) == ("valid", [])
    proven = {fault["kind"] for fault in told["faults"] if fault["bit"]}
    assert proven == {"reset", "partition"}
    again = chaos_run("--bootstrap-server", servers, "--out", str(tmp_path / "again"))
    assert again.returncode == 1
    assert "chaos cannot be created: TOPIC_ALREADY_EXISTS" in again.stderr
