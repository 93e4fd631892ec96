"""A broker asks the active controller about many partitions in one request at a time.

Whatever is wanted while a request is in flight goes into the next one, for all partitions together.
`ControllerBatches` keeps the wishes, the request in flight and the pause before the next. Its owner
takes the next batch and has the request for it sent. The owner is told of the answer, asks here
what it is an answer to, and says which wishes it settles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from broker.membership.controller_channel import ControllerChannel
from quorum.core.outbox import Answered

__all__ = ["ControllerBatches"]

Key = TypeVar("Key")
Wanted = TypeVar("Wanted")


@dataclass(kw_only=True, eq=False)
class ControllerBatches(Generic[Key, Wanted]):
    controller: ControllerChannel
    channel: str
    batch_max: int  # keys in one request
    retry_backoff_ms: int
    timeout_ms: int
    wanted: dict[Key, Wanted] = field(default_factory=dict, init=False)
    _in_flight: Mapping[Key, Wanted] | None = field(default=None, init=False)
    _next_send_ms: int = field(default=0, init=False)

    def is_due(self, now_ms: int) -> bool:
        """Is something wanted, no request in flight, and the pause over?"""
        return self._in_flight is None and bool(self.wanted) and now_ms >= self._next_send_ms

    def keep(self, is_wanted: Callable[[Wanted], bool]) -> None:
        """Forget the wishes that are not wanted any more."""
        self.wanted = {key: each for key, each in self.wanted.items() if is_wanted(each)}

    def next_batch(self) -> Mapping[Key, Wanted]:
        """The wishes that go into the next request."""
        return dict(islice(self.wanted.items(), self.batch_max))

    def send(
        self, batch: Mapping[Key, Wanted], body: object, answered: Answered, now_ms: int
    ) -> None:
        """Ask for the batch, or pause if no controller is known."""
        sent = self.controller.ask(
            body, channel=self.channel, timeout_ms=self.timeout_ms, answered=answered
        )
        if sent:
            self._in_flight = batch
        else:
            self.retry(now_ms)

    def take_asked(self) -> Mapping[Key, Wanted]:
        """What the request that has been answered asked for; the next may be sent."""
        assert self._in_flight is not None
        asked, self._in_flight = self._in_flight, None
        return asked

    def settle(self, key: Key, asked: Wanted) -> None:
        """Forget a wish that was answered, unless another has taken its place by now."""
        if self.wanted.get(key) is asked:
            del self.wanted[key]

    def retry(self, now_ms: int) -> None:
        """Pause before the next request."""
        self._next_send_ms = now_ms + self.retry_backoff_ms

    def deadline_ms(self) -> int | None:
        return self._next_send_ms if self.wanted and self._in_flight is None else None
