"""A core that only asks: simulated clients are made of it.

Each question goes out on a connection of its own, so that none waits for another. It is answered
once, by a body or by None if there was no answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from jepsen_like.sim.world.client_releases import NEWEST, ClientRelease
from quorum.core.effects import Effect, Event, RequestFailed, Response, Send
from quorum.core.outbox import EffectQueue
from quorum.core.types import Endpoint

__all__ = ["CLIENT_CHANNEL", "Answered", "AskingCore"]

Answered = Callable[[object, int], None]  # (body or None, now_ms)
CLIENT_CHANNEL = "client"


@dataclass(slots=True, kw_only=True, eq=False)
class AskingCore:
    """Subclasses ask, and say when they are due."""

    timeout_ms: int
    release: ClientRelease = NEWEST  # of the client's software
    _answered: dict[int, Answered] = field(default_factory=dict)  # by token
    _outbox: EffectQueue = field(default_factory=partial(EffectQueue, CLIENT_CHANNEL))

    @property
    def is_quiet(self) -> bool:
        """Is nothing under way?"""
        return not self._answered

    def ask(
        self, node: int, body: object, answered: Answered, timeout_ms: int | None = None
    ) -> None:
        """The usual time-out holds where none is given."""
        token = self._outbox.token()
        self._answered[token.number] = answered
        self._outbox.emit(
            Send(
                token=token,
                to=Endpoint(node, f"node-{node}", 9092),
                channel=f"{CLIENT_CHANNEL}-{token.number}",
                body=self.release.says(body),
                timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms,
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

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        pass

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()
