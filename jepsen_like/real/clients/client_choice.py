"""Which client a process gets: by workload, and by the implementation that was asked for.

The simulator's clients run on sockets here: their steps are carried out one after the other, over
connections that are kept. A request is sent once; one that gets no answer may have been carried
out.
"""

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, TypeVar

from jepsen_like.clients.bank_client import BankClient
from jepsen_like.clients.log_client import LogClient
from jepsen_like.clients.steps import Ask, Pause, Steps
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.kafka_admin import AdminClient, OperatorClient
from jepsen_like.real.clients.leader import LeaderClient
from jepsen_like.real.clients.target import Nodes, Target
from jepsen_like.real.layout import ClusterError
from jepsen_like.workloads.log_workloads import OPERATIONS
from jepsen_like.workloads.workload import Client, Done, Wish

__all__ = ["IMPLEMENTATIONS", "OpenClient", "client_opener", "play", "require_client", "wall_clock"]

_CONNECT_SECONDS = 1.0
Result = TypeVar("Result")


def wall_clock() -> int:
    """Records are stamped with it."""
    return time.time_ns() // 1_000_000


def play(steps: Steps[Result], nodes: Nodes) -> Result:
    """Carry out one step after the other."""
    told: object = None
    while True:
        try:
            step = steps.send(told)
        except StopIteration as end:
            result: Result = end.value
            return result
        match step:
            case Pause(ms=ms):
                time.sleep(ms / 1000)
                told = None
            case Ask(node=node, body=body, timeout_ms=timeout_ms):
                try:
                    told = nodes.ask(body, object, node=node, timeout_seconds=timeout_ms / 1000)
                except ClusterError:
                    told = None


class _SteppedClient:
    """A client of the simulator, on sockets."""

    def __init__(self, target: Target, perform: Callable[[Wish], Steps[Done]]) -> None:
        self._nodes = target.of_brokers(_CONNECT_SECONDS)
        self._perform = perform

    def invoke(self, wish: Wish) -> Done:
        return play(self._perform(wish), self._nodes)

    def close(self) -> None:
        self._nodes.close()


if TYPE_CHECKING:  # each needs a package that may be missing
    from jepsen_like.real.clients.aiokafka_client import AiokafkaClient
    from jepsen_like.real.clients.confluent import ConfluentClient


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
        case "bank":
            return lambda: _SteppedClient(
                target,
                BankClient(
                    sorted(target.brokers),
                    clock=wall_clock,
                    random=Random(),
                    timeout_ms=int(timeout_seconds * 1000),
                ).perform,
            )
        case "kafka" | "transactions":
            is_read_committed = workload == "transactions"

            def clients() -> Client:
                client = LogClient(
                    sorted(target.brokers),
                    clock=wall_clock,
                    random=Random(),
                    timeout_ms=int(timeout_seconds * 1000),
                    is_idempotent=idempotent,
                    is_read_committed=is_read_committed,
                )
                return _SteppedClient(target, client.perform)

            return clients
    client = _implementation(implementation)

    def log() -> Client:
        return client(target, idempotent=idempotent, timeout_seconds=timeout_seconds)

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
