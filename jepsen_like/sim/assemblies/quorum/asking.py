"""Requests of a simulated client, each with a function that is given the answer.

Every request is answered once, by a body or by None if there was no answer.
"""

from collections.abc import Callable

from jepsen_like.sim.world.client_releases import NEWEST, ClientRelease
from quorum.core.effects import Effect, Event, RequestFailed, Response, Send
from quorum.core.outbox import EffectQueue
from quorum.core.types import Endpoint

__all__ = ["CLIENT_CHANNEL", "Answered", "Asking", "AskingCore"]

Answered = Callable[[object, int], None]  # (body or None, now_ms)
CLIENT_CHANNEL = "client"


class Asking:
    __slots__ = ("_answered", "_outbox", "release")

    def __init__(self, release: ClientRelease = NEWEST) -> None:
        self.release = release  # of the client's software
        self._answered: dict[int, Answered] = {}  # by token
        self._outbox = EffectQueue("client")

    @property
    def is_quiet(self) -> bool:
        """Is nothing under way?"""
        return not self._answered

    def ask(self, node: int, body: object, timeout_ms: int, answered: Answered) -> None:
        token = self._outbox.token()
        self._answered[token.number] = answered
        self._outbox.emit(
            Send(
                token=token,
                to=Endpoint(node, f"node-{node}", 9092),
                channel=f"{CLIENT_CHANNEL}-{token.number}",  # a connection each: nobody waits
                body=self.release.says(body),
                timeout_ms=timeout_ms,
            )
        )

    def receive(self, event: Event, now_ms: int) -> None:
        match event:
            case Response(token=token, body=body):
                self._answered.pop(token.number)(body, now_ms)
            case RequestFailed(token=token):
                self._answered.pop(token.number)(None, now_ms)
            case _:
                raise AssertionError(f"nobody asks a client: {event}")

    def take(self) -> list[Effect]:
        return self._outbox.take()


class AskingCore:
    """A core that only asks: what its user says, and each question on a connection of its own."""

    def __init__(self, *, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._asking = Asking()

    def ask(self, node: int, body: object, answered: Answered) -> None:
        self._asking.ask(node, body, self._timeout_ms, answered)

    def receive(self, event: Event, now_ms: int) -> None:
        self._asking.receive(event, now_ms)

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        pass

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return self._asking.take()
