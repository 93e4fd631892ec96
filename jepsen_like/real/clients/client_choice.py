"""Which client a process gets: by workload, and by the implementation that was asked for."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jepsen_like.clients.grouped_client import KafkaClient
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.kafka_admin import AdminClient
from jepsen_like.real.clients.leader import LeaderClient
from jepsen_like.real.clients.operator import OperatorClient
from jepsen_like.real.clients.stepped import stepped
from jepsen_like.real.clients.target import Target
from jepsen_like.real.layout import ClusterError
from jepsen_like.workloads.admin import OPERATIONS
from jepsen_like.workloads.workload import Client, Done, Wish

if TYPE_CHECKING:  # each needs a package that may be missing
    from jepsen_like.real.clients.aiokafka_client import AiokafkaClient
    from jepsen_like.real.clients.confluent import ConfluentClient

__all__ = ["IMPLEMENTATIONS", "OpenClient", "client_opener", "require_client"]

OpenClient = Callable[[], Client]
IMPLEMENTATIONS = ("confluent", "aiokafka")
_BY_IMPLEMENTATION = ("admin", "log", "observe")  # workloads that write records


def client_opener(
    workload: str,
    target: Target,
    *,
    implementation: str,
    idempotent: bool,
    timeout_seconds: float,
) -> OpenClient:
    """Raises ClusterError if the implementation is not installed."""
    match workload:
        case "register" | "set":
            return lambda: AdminClient(target, timeout_seconds=timeout_seconds)
        case "partition-epoch":
            return lambda: LeaderClient(target, timeout_seconds=timeout_seconds)
        case "cas-register":
            return lambda: Agent(target, timeout_seconds=timeout_seconds)
        case "kafka":
            return lambda: stepped(
                target, KafkaClient, idempotent=idempotent, timeout_seconds=timeout_seconds
            )
    client = _implementation(implementation)

    def log() -> Client:
        return client(
            target.bootstrap_servers, idempotent=idempotent, timeout_seconds=timeout_seconds
        )

    if workload != "admin":
        return log
    return lambda: _ByOperation(
        dict.fromkeys(OPERATIONS, OperatorClient(target, timeout_seconds=timeout_seconds)), log()
    )


def require_client(workload: str, implementation: str) -> None:
    """Raises ClusterError if the implementation is wanted and not installed."""
    if workload in _BY_IMPLEMENTATION:
        _implementation(implementation)


def _implementation(name: str) -> "type[AiokafkaClient | ConfluentClient]":
    try:
        if name == "aiokafka":
            from jepsen_like.real.clients.aiokafka_client import AiokafkaClient

            return AiokafkaClient
        from jepsen_like.real.clients.confluent import ConfluentClient

        return ConfluentClient
    except ImportError as error:
        package = {"confluent": "confluent-kafka"}.get(name, name)
        raise ClusterError(f"this needs {package}: pip install {package} ({error})") from error


class _ByOperation:
    """Some operations by one client, the rest by another."""

    def __init__(self, special: Mapping[str, Client], ordinary: Client) -> None:
        self._special = special
        self._ordinary = ordinary

    def invoke(self, wish: Wish) -> Done:
        return self._special.get(wish.f, self._ordinary).invoke(wish)

    def close(self) -> None:
        for client in (*self._special.values(), self._ordinary):
            client.close()
