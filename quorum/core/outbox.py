"""What a component asks on its way to the driver, and who waits for which answer.

Every core queues its effects in an `EffectQueue`, which numbers its tokens. The components of a
broker, or of a controller in the older designs, share an `Outbox`: it also routes an answer to the
function that asked. Holds no rule of Kafka's.
"""

from collections.abc import Callable

from quorum.core.effects import Effect, Event, Send, Stop, Token, Trace
from quorum.core.types import Endpoint

__all__ = ["Answered", "EffectQueue", "Outbox"]

Answered = Callable[[Event, int], None]  # (the answer, now_ms)


class EffectQueue:
    """`owner` names the core in its tokens."""

    __slots__ = ("_number", "_owner", "effects")

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._number = 0  # of the last token
        self.effects: list[Effect] = []  # since they were last taken; also for others to add to

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def trace(self, event: str, **fields: object) -> None:
        self.effects.append(Trace(event=event, fields=tuple(fields.items())))

    def stop(self, reason: str, exit_code: int) -> None:
        self.effects.append(Stop(reason=reason, exit_code=exit_code))

    def token(self) -> Token:
        """A token for an effect; whoever takes it looks for the answer, if there is one."""
        self._number += 1
        return Token(self._owner, self._number)

    def take(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects


class Outbox(EffectQueue):
    """An answer is given to the function that was named when its token was taken."""

    __slots__ = ("_waiting",)

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._waiting: dict[int, Answered] = {}

    def expect(self, answered: Answered) -> Token:
        """A token for an effect that is answered once, by calling `answered`."""
        token = self.token()
        self._waiting[token.number] = answered
        return token

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
