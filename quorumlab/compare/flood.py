"""A flood of client requests: more than a node can serve, so that a backlog waits there.

Every connection always has as many requests outstanding as the node accepts.
"""

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

from jepsen_like.real.layout import ClusterError

__all__ = ["CONNECTIONS", "METADATA_OF_ALL", "Flood"]

CONNECTIONS = 40
METADATA_OF_ALL = struct.pack(">hhihi", 3, 1, 1, -1, -1)  # costs the node most per byte of ours
_PAUSE_SECONDS = 0.005


class Flood:
    """One request again and again, on many connections, as fast as the node takes it.

    Ends with `ClusterError` if the node has closed a connection: there was less of a flood then.
    """

    def __init__(self, port: int, request: bytes = METADATA_OF_ALL) -> None:
        self._frames = (struct.pack(">i", len(request)) + request) * 100
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
        self._sent = dict.fromkeys(range(CONNECTIONS), 0)  # bytes, to go on within a frame
        self._stop = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        for connection in self._sockets:
            connection.setblocking(False)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        for connection in self._sockets:
            connection.close()
        if self._error is not None and error[0] is None:
            raise ClusterError(f"the flood has ended early: {self._error}")

    def _run(self) -> None:
        try:
            while not self._stop.wait(_PAUSE_SECONDS):
                for index, connection in enumerate(self._sockets):
                    self._go_on(index, connection)
        except OSError as error:
            self._error = error

    def _go_on(self, index: int, connection: socket.socket) -> None:
        with suppress(BlockingIOError):
            if not connection.recv(1 << 20):
                raise ConnectionError("the node has closed a connection")
        with suppress(BlockingIOError):
            at = self._sent[index] % len(self._frames)
            self._sent[index] += connection.send(self._frames[at:])
