"""What shows that file descriptors ran out, and what does not."""

import os
import signal
import sys
from pathlib import Path

import pytest

from jepsen_like.faults.fault import Fault, Proof
from jepsen_like.real.injection.process_faults import exhaust
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import end, spawn
from tests.integration.waiting import wait

FAULT = Fault(kind="fd-exhaustion")
ANSWERING = """
import http.server, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


def proof_after(directory: Path, also: signal.Signals | None) -> Proof:
    """The proof for a process that answers nobody, and that another fault strikes as well."""
    cluster = LocalCluster.create(directory / "cluster", controllers=1, brokers=1)
    node = cluster.layout.nodes[0]
    node.path.mkdir(parents=True, exist_ok=True)
    process = spawn(
        [sys.executable, "-c", ANSWERING, str(node.http_port)], log=directory / "node.log"
    )
    process.save(node.pid_file)
    try:
        wait(lambda: cluster.ask(node, "/livez", 1.0)[0] == 200, "an answer")
        injected = exhaust(cluster, FAULT, [node.id])
        if also is signal.SIGKILL:
            end(process, how=also, timeout_seconds=5.0)
        elif also is not None:
            os.kill(process.pid, also)
            os.waitpid(process.pid, os.WUNTRACED)
        injected.heal()
        return injected.proof()
    finally:
        end(process, how=signal.SIGKILL, timeout_seconds=5.0)


def test_node_that_is_only_starting_is_left_alone(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path / "cluster", controllers=1, brokers=1)
    node = cluster.layout.nodes[0]
    node.path.mkdir(parents=True, exist_ok=True)
    process = spawn(
        [sys.executable, "-c", "import signal; signal.pause()"], log=tmp_path / "node.log"
    )
    process.save(node.pid_file)
    try:
        with pytest.raises(ClusterError, match="starting"):
            exhaust(cluster, FAULT, [node.id])
    finally:
        end(process, how=signal.SIGKILL, timeout_seconds=5.0)


def test_node_that_answers_nobody_new_has_run_out(tmp_path: Path) -> None:
    assert proof_after(tmp_path, None).bit


@pytest.mark.parametrize("also", [signal.SIGKILL, signal.SIGSTOP])
def test_node_that_another_fault_keeps_from_answering_proves_nothing(
    tmp_path: Path, also: signal.Signals
) -> None:
    assert not proof_after(tmp_path, also).bit
