"""What observers count over HTTP, from nodes that come and go."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from jepsen_like.histories.history import Header
from jepsen_like.real.clients.target import Target
from jepsen_like.real.runs.observers import Observers
from jepsen_like.real.runs.worker_threads import Recording
from tests.integration.waiting import wait

LEADER = json.dumps({"quorum": {"epoch": 3, "role": "leader"}}).encode()


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(LEADER)))
        self.end_headers()
        self.wfile.write(LEADER)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def leader(port: int = 0) -> Iterator[int]:
    with HTTPServer(("127.0.0.1", port), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_elections_are_not_forgotten_while_every_controller_is_down(tmp_path: Path) -> None:
    """A run with one controller, dead in the end, had seen -2 elections of it."""
    with Recording(tmp_path / "history.msgpack", Header(workload="log", seed=0)) as recording:
        with leader() as port:
            target = Target(brokers={}, http={101: ("127.0.0.1", port)})
            observers = Observers(target, [], recording, interval_seconds=0.01)
            observers.start()
            wait(lambda: observers.elections()[0] == 3, "the first look", 10)
        wait(lambda: observers.controller() == (None, -1), "a look at what is gone", 10)
        assert observers.elections()[0] == 3
        observers.stop()
