"""Requests of Kafka's protocol to nodes, one at a time, over connections that are kept.

A request is sent once. What comes of it says whether it may have been carried out: a refusal that
is definite, an answer, or a doubt.
"""

from collections.abc import Mapping
from typing import TypeVar

from jepsen_like.histories.history import Kind
from jepsen_like.real.clients.target import Address
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError
from wire.errors import ErrorCode

__all__ = ["Nodes", "kind_of"]

Answer = TypeVar("Answer")

# Said before anything is decided. Whatever else a cluster says may come after the deed: the node
# that decided can lose its leadership before it knows what becomes of that (NOT_CONTROLLER), and a
# broker that passes a request on may have passed it on twice (TOPIC_ALREADY_EXISTS).
_DEFINITE = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.INVALID_CONFIG,
    ErrorCode.INVALID_PARTITIONS,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
)


def kind_of(code: ErrorCode) -> Kind:
    """How a change has ended that was answered so."""
    if code is ErrorCode.NONE:
        return Kind.OK
    return Kind.FAIL if code in _DEFINITE else Kind.INFO


class Nodes:
    """Raises NotConnected if nothing was sent, NoAnswer or another ClusterError if it was."""

    def __init__(self, addresses: Mapping[int, Address], timeout_seconds: float) -> None:
        self._addresses = addresses
        self._timeout_seconds = timeout_seconds
        self._open: dict[int | None, Client] = {}

    def ask(
        self,
        request: object,
        expected: type[Answer],
        *,
        node: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """Ask one node; or any one, always the same while it answers."""
        client = self._open.get(node)
        if client is None:
            addresses = list(self._addresses.values()) if node is None else [self._addresses[node]]
            client = Client(addresses, self._timeout_seconds)
            client.__enter__()
            self._open[node] = client
        try:
            return client.ask(
                request, expected, timeout_seconds=timeout_seconds or self._timeout_seconds
            )
        except ClusterError:
            self._forget(node)
            raise

    def close(self) -> None:
        for node in list(self._open):
            self._forget(node)

    def _forget(self, node: int | None) -> None:
        self._open.pop(node).__exit__(None, None, None)
