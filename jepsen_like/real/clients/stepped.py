"""The simulator's clients on sockets: their steps are carried out one after the other.

Connections are kept. A request is sent once; one that gets no answer may have been carried out.
"""

import time
from collections.abc import Mapping
from random import Random
from typing import Protocol, TypeVar

from jepsen_like.clients.steps import Ask, Clock, Pause, Steps
from jepsen_like.real.clients.node_requests import Nodes
from jepsen_like.real.clients.target import Address, Target
from jepsen_like.real.layout import ClusterError
from jepsen_like.workloads.workload import Client, Done, Wish

__all__ = ["Sockets", "stepped"]

_CONNECT_SECONDS = 1.0
Result = TypeVar("Result")


class _Performing(Protocol):
    def perform(self, wish: Wish) -> Steps[Done]: ...


class Sockets:
    def __init__(self, addresses: Mapping[int, Address]) -> None:
        self._nodes = Nodes(addresses, _CONNECT_SECONDS)

    @staticmethod
    def clock() -> int:
        """Records are stamped with it."""
        return time.time_ns() // 1_000_000

    def play(self, steps: Steps[Result]) -> Result:
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
                case Ask():
                    told = self._ask(step)

    def close(self) -> None:
        self._nodes.close()

    def _ask(self, step: Ask) -> object:
        try:
            return self._nodes.ask(
                step.body, object, node=step.node, timeout_seconds=step.timeout_ms / 1000
            )
        except ClusterError:
            return None


class _Stepped:
    def __init__(self, sockets: Sockets, client: _Performing) -> None:
        self._sockets = sockets
        self._client = client

    def invoke(self, wish: Wish) -> Done:
        return self._sockets.play(self._client.perform(wish))

    def close(self) -> None:
        self._sockets.close()


class _Opening(Protocol):
    def __call__(
        self,
        brokers: list[int],
        *,
        clock: Clock,
        random: Random,
        timeout_ms: int,
        is_idempotent: bool,
    ) -> _Performing: ...


def stepped(
    target: Target, opening: _Opening, *, idempotent: bool, timeout_seconds: float
) -> Client:
    sockets = Sockets(target.brokers)
    client = opening(
        sorted(target.brokers),
        clock=sockets.clock,
        random=Random(),  # whom to ask first, and how long to pause: nobody makes that again
        timeout_ms=int(timeout_seconds * 1000),
        is_idempotent=idempotent,
    )
    return _Stepped(sockets, client)
