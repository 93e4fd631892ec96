"""Which client a process gets: by workload, and by the implementation that was asked for."""

from collections.abc import Callable, Mapping

from jepsen_like.clients.kafka import KafkaClient
from jepsen_like.real.clients.admin import AdminClient
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.leader import LeaderClient
from jepsen_like.real.clients.operator import OperatorClient
from jepsen_like.real.clients.stepped import stepped
from jepsen_like.real.clients.target import Target
from jepsen_like.real.layout import ClusterError
from jepsen_like.workload import Client, Done, Wish
from jepsen_like.workloads.admin import OPERATIONS

__all__ = ["IMPLEMENTATIONS", "OpenClient", "client_opener"]

OpenClient = Callable[[], Client]
IMPLEMENTATIONS = ("confluent", "aiokafka")


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
    log = _log_client(implementation, target.bootstrap_servers, idempotent, timeout_seconds)
    if workload != "admin":
        return log
    return lambda: _ByOperation(
        dict.fromkeys(OPERATIONS, OperatorClient(target, timeout_seconds=timeout_seconds)), log()
    )


def _log_client(
    implementation: str, servers: str, idempotent: bool, timeout_seconds: float
) -> OpenClient:
    try:
        if implementation == "aiokafka":
            from jepsen_like.real.clients.aiokafka_client import AiokafkaClient

            return lambda: AiokafkaClient(
                servers, idempotent=idempotent, timeout_seconds=timeout_seconds
            )
        from jepsen_like.real.clients.confluent import ConfluentClient

        return lambda: ConfluentClient(
            servers, idempotent=idempotent, timeout_seconds=timeout_seconds
        )
    except ImportError as error:
        package = {"confluent": "confluent-kafka"}.get(implementation, implementation)
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
