"""What is said of nodes that do not come up; the processes are stand-ins."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster, orderly_stop_seconds
from tests.integration.waiting import wait


@contextmanager
def cluster_of(directory: Path, script: str) -> Iterator[LocalCluster]:
    """A cluster of one node, which runs a script."""
    cluster = LocalCluster.create(directory, controllers=1, brokers=1, combined=True)
    cluster.command = (sys.executable, "-c", script)
    try:
        yield cluster
    finally:
        for node_id in cluster.running():
            cluster.kill(node_id)


def test_the_last_words_of_a_node_are_those_of_its_last_run(tmp_path: Path) -> None:
    with cluster_of(tmp_path, "raise SystemExit('no disk')") as cluster:
        node = cluster.layout.node(1)
        node.path.mkdir()
        node.log.write_text("all was well, the last time\n")
        cluster.start(1)
        with pytest.raises(ClusterError) as raised:
            cluster.wait_ready(timeout_seconds=10)
    assert str(raised.value) == "node 1 ended while starting:\n  no disk"


def test_who_is_waited_for_in_vain_is_named_with_the_reason(tmp_path: Path) -> None:
    told: list[str] = []
    with cluster_of(tmp_path, "import time; time.sleep(60)") as cluster:
        cluster.start(1)
        with pytest.raises(ClusterError) as raised:
            cluster.wait_ready(timeout_seconds=0.1, nodes=(1,), progress=told.append)
    log = cluster.layout.node(1).log
    text = f"not ready after 0 s:\n  node 1: it has not said a word yet; see {log}"
    assert str(raised.value) == text
    assert told[0] == "0 of 1 ready; node 1: it has not said a word yet"


ANSWERING = """
import http.server

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write({"/livez": b"ok", "/v1/node": b'{"node_id": 1}'}[self.path])

http.server.HTTPServer(("127.0.0.1", %d), Answers).serve_forever()
"""


def test_page_that_is_no_json_is_an_answer_all_the_same(tmp_path: Path) -> None:
    with cluster_of(tmp_path, "") as cluster:
        node = cluster.layout.node(1)
        assert cluster.ask(node, "/livez") == (0, None)
        cluster.command = (sys.executable, "-c", ANSWERING % node.http_port)
        cluster.start(1)
        wait(lambda: cluster.ask(node, "/livez") == (200, None), "an answer")
        assert cluster.ask(node, "/v1/node") == (200, {"node_id": 1})


def test_node_with_many_logs_may_take_long_to_stop_in_order(tmp_path: Path) -> None:
    """It syncs each that was written to: 15 s, and 30 ms a log."""
    with cluster_of(tmp_path, "") as cluster:
        node = cluster.layout.node(1)
        assert orderly_stop_seconds(node) == 15.0
        for number in range(100):
            (node.data / f"t-{number}").mkdir(parents=True)
        assert orderly_stop_seconds(node) == pytest.approx(18.0)


def test_broker_may_wait_for_its_controller_as_long_as_its_file_says(tmp_path: Path) -> None:
    with cluster_of(tmp_path, "") as cluster:
        node = cluster.layout.node(1)
        node.path.mkdir(parents=True, exist_ok=True)
        node.config.write_text(cluster.layout.properties(node, cluster.settings))
        assert orderly_stop_seconds(node) == 15.0 + 3.0
        with node.config.open("a") as config:
            config.write("quorumlab.controlled.shutdown.timeout.ms = 40000\n")
        assert orderly_stop_seconds(node) == 15.0 + 40.0
        node.config.write_text("quorumlab.controlled.shutdown.timeout.ms: 50000")
        assert orderly_stop_seconds(node) == 15.0 + 50.0
        for content in (b"", b"\xff"):
            node.config.write_bytes(content)
            assert orderly_stop_seconds(node) == 15.0 + 300.0
