"""Apache Kafka's own controllers, three of them, asked as ours are: over their own listener.

They run from the jars that `tests/kafka/fetch.sh` brings, with the collector and the compiler that
Kafka's start scripts choose. Kafka answers one request of a connection at a time, so that every
request in flight has a connection of its own here.

Sources: KafkaRaftClient (a leader syncs before its batch counts, a follower before it fetches on),
BatchAccumulator and `controller.quorum.append.linger.ms` of Kafka's QuorumConfig: how long a leader
waits for more records before it appends; 25 ms by default.
"""

import selectors
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.peers.load import REQUESTS_PREPARED, Load, Sample, drive
from benchmarks.peers.quorum import Quorum, encoded_answer, encoded_request
from tests.kafka.kafka_jars import JavaServer, format_storage, missing_reason, version

__all__ = ["JVM_OPTIONS", "RELEASE", "Kafka", "KafkaWithoutLinger"]

_TIMEOUT_SECONDS = 15.0
RELEASE = ("--release-version", "4.0")  # whose metadata.version is ours
JVM_OPTIONS = (
    "-XX:-UseSerialGC",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:TieredStopAtLevel=4",
)
_LINGER = "controller.quorum.append.linger.ms"


class Kafka(Quorum):
    name = "kafka"
    warm_up_seconds = 6.0  # its code is compiled meanwhile
    linger_ms = 25

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, {_LINGER: str(self.linger_ms)})
        self._servers: list[JavaServer] = []

    @staticmethod
    def missing() -> str | None:
        return missing_reason()

    @staticmethod
    def version() -> str:
        return version()

    def start(self) -> None:
        layout = self.cluster.layout
        for node in layout.controllers:
            node.path.mkdir(parents=True)
            node.config.write_text(layout.properties(node, self.cluster.settings))
            arguments = [str(node.config)]
            server = JavaServer(
                "kafka.Kafka", arguments, node.log, heap="768m", jvm_options=JVM_OPTIONS
            )
            self._servers.append(server)
        with ThreadPoolExecutor(max_workers=2) as pool:
            configs = [node.config for node in layout.controllers]
            list(
                pool.map(
                    lambda config: format_storage(config, layout.cluster_id, *RELEASE), configs
                )
            )
        for server in self._servers:
            server.start()
        for server in self._servers:
            server.wait_ready()

    def stop(self) -> None:
        for server in self._servers:
            if server.running:
                server.kill()

    def processes(self) -> list[int]:
        return [server.pid for server in self._servers]

    def measure(self, load: Load) -> Sample:
        leader, _ = self.leader()
        client = _Connections(leader.host, leader.port, load)
        try:
            return drive(client, load)
        finally:
            client.close()


class KafkaWithoutLinger(Kafka):
    name = "kafka without linger"
    linger_ms = 0


class _Connections:
    """The Client of `drive`: each request has a connection to itself until it is answered."""

    def __init__(self, host: str, port: int, load: Load) -> None:
        numbers = range(REQUESTS_PREPARED)
        self._requests = [encoded_request(load, number) for number in numbers]
        self._answers = [encoded_answer(load, number) for number in numbers]
        self._selector = selectors.DefaultSelector()
        self._idle: list[socket.socket] = []
        self._asked: dict[socket.socket, int] = {}
        for _ in range(load.in_flight):
            connection = socket.create_connection((host, port), _TIMEOUT_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(connection, selectors.EVENT_READ)
            self._idle.append(connection)

    def send(self, number: int) -> None:
        connection = self._idle.pop()
        self._asked[connection] = number
        connection.sendall(self._requests[number % REQUESTS_PREPARED])

    def receive(self) -> list[int]:
        ready = self._selector.select(_TIMEOUT_SECONDS)
        assert ready, f"no answer within {_TIMEOUT_SECONDS:.0f} s"
        return [
            self._take(key.fileobj) for key, _ in ready if isinstance(key.fileobj, socket.socket)
        ]

    def close(self) -> None:
        for connection in (*self._idle, *self._asked):
            connection.close()
        self._selector.close()

    def _take(self, connection: socket.socket) -> int:
        """The whole answer. Kafka's has the topics in an order of its own."""
        number = self._asked.pop(connection)
        expected = self._answers[number % REQUESTS_PREPARED]
        answer = connection.recv(len(expected), socket.MSG_WAITALL)
        assert sorted(answer) == sorted(expected), f"refused: {answer!r}"
        self._idle.append(connection)
        return number
