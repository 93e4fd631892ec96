"""One node of ours and one of Apache Kafka's, with the same settings, asked side by side."""

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import RELEASE, KafkaBesideUs

__all__ = ["BROKER", "CONTROLLER", "SETTINGS", "Closed", "Side", "Silent", "both_sides"]

BROKER, CONTROLLER = "broker", "controller"
NODE_ID = 1
ANSWER_SECONDS = 4.0  # longer than any request of the test may wait

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "18000",  # a loaded machine must not fence the only broker
    "controller.quorum.election.timeout.ms": "30000",  # nor let the only voter stand twice
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.retention.ms": "-1",  # records are older than any other
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
}


class Closed(Exception):
    """The node ended the connection instead of answering."""


class Silent(Exception):
    """No answer came."""


@dataclass(slots=True)
class Side:
    """A node, and a connection to each of its listeners."""

    name: str
    node: NodeLayout
    cluster_id: str
    _sockets: dict[str, socket.socket] = field(default_factory=dict)
    _correlation_id: int = 0

    def port(self, listener: str) -> int:
        port = self.node.port if listener == BROKER else self.node.controller_port
        assert port is not None
        return port

    @property
    def log(self) -> str:
        """What the node has printed."""
        name = "node.log" if self.name == "ours" else "kafka.log"
        return (self.node.path / name).read_text(errors="replace")

    def send(self, listener: str, key: int, version: int, body: bytes, flexible: bool) -> None:
        """`flexible`: the header ends with tagged fields."""
        self._correlation_id += 1
        head = struct.pack(">hhi", key, version, self._correlation_id)
        head += struct.pack(">h", 4) + b"diff" + (b"\0" if flexible else b"")
        frame = head + body
        with suppress(OSError):  # what was closed is found when the answer is read
            self._socket(listener).sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, listener: str, seconds: float = ANSWER_SECONDS) -> bytes:
        """The next answer's frame. Raises Closed, and Silent after so many seconds."""
        connection = self._socket(listener)
        connection.settimeout(seconds)
        try:
            (size,) = struct.unpack(">i", self._exactly(connection, 4))
            frame = self._exactly(connection, size)
        except TimeoutError as error:
            self.hang_up(listener)
            raise Silent from error
        except OSError as error:
            self.hang_up(listener)
            raise Closed from error
        assert struct.unpack_from(">i", frame) == (self._correlation_id,), "answers another"
        return frame

    def hang_up(self, listener: str) -> None:
        connection = self._sockets.pop(listener, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        for listener in (BROKER, CONTROLLER):
            self.hang_up(listener)

    def _socket(self, listener: str) -> socket.socket:
        if listener not in self._sockets:
            address = (self.node.host, self.port(listener))
            self._sockets[listener] = socket.create_connection(address, timeout=ANSWER_SECONDS)
        return self._sockets[listener]

    @staticmethod
    def _exactly(connection: socket.socket, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = connection.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return bytes(data)


@contextmanager
def both_sides(
    directory: Path, settings: Mapping[str, str] = SETTINGS
) -> Iterator[tuple[Side, Side]]:
    """Ours and Kafka's: broker and controller in one, node 1 of a cluster with the same id."""
    clusters = [
        LocalCluster.create(
            directory / name,
            controllers=1,
            brokers=1,
            combined=True,
            settings=settings,
            release_version=RELEASE,
        )
        for name in ("ours", "kafka")
    ]
    cluster_id = clusters[0].layout.cluster_id
    clusters[1].layout = replace(clusters[1].layout, cluster_id=cluster_id)
    ours, kafka = KafkaBesideUs(clusters[0], []), KafkaBesideUs(clusters[1], [NODE_ID])
    with ThreadPoolExecutor(1) as pool:
        formatted = pool.submit(kafka.format)  # while ours starts
        with ours.running(NODE_ID):
            formatted.result()
            with kafka.running(NODE_ID):
                yield _sides(cluster_id, clusters)


def _sides(cluster_id: str, clusters: Sequence[LocalCluster]) -> tuple[Side, Side]:
    ours, kafka = (
        Side(name=name, node=cluster.layout.node(NODE_ID), cluster_id=cluster_id)
        for name, cluster in zip(("ours", "kafka"), clusters, strict=True)
    )
    return ours, kafka
