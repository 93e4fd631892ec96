"""What a component asks on its way to the driver, and who waits for which answer.

The components of a core share one outbox: it numbers tokens, keeps the order of effects, and routes
an answer to the function that asked. Holds no rule of Kafka's.
"""

from collections.abc import Callable

from quorum.core.effects import Effect, Event, Send, Token, Trace
from quorum.core.types import Endpoint

__all__ = ["Answered", "Outbox"]

Answered = Callable[[Event, int], None]  # (the answer, now_ms)


class Outbox:
    """`owner` names the core in its tokens."""

    __slots__ = ("_effects", "_number", "_owner", "_waiting")

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._effects: list[Effect] = []
        self._number = 0
        self._waiting: dict[int, Answered] = {}

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def trace(self, event: str, **fields: object) -> None:
        self._effects.append(Trace(event=event, fields=tuple(fields.items())))

    def token(self) -> Token:
        """A token for an effect that is not answered, or whose answer nobody needs."""
        self._number += 1
        return Token(self._owner, self._number)

    def expect(self, answered: Answered) -> Token:
        """A token for an effect that is answered once, by calling `answered`."""
        self._number += 1
        self._waiting[self._number] = answered
        return Token(self._owner, self._number)

    def ask(
        self, to: Endpoint, body: object, *, channel: str, timeout_ms: int, answered: Answered
    ) -> None:
        """Send a request, of which `answered` hears once: the answer, or that there is none."""
        token = self.expect(answered)
        self.emit(Send(token=token, to=to, channel=channel, body=body, timeout_ms=timeout_ms))

    def deliver(self, token: Token, event: Event, now_ms: int) -> None:
        """Pass an answer on. Nobody may be waiting: then it is dropped."""
        answered = self._waiting.pop(token.number, None)
        if answered is not None:
            answered(event, now_ms)

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
