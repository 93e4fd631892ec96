"""A broker asks the active controller about many partitions in one request at a time.

Whatever is wanted while a request is in flight goes into the next one, for all partitions together.
`ControllerBatches` keeps the wishes, the request in flight and the pause before the next; its owner
makes the request of a batch, and reads the answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, Response

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
    request: Callable[[Mapping[Key, Wanted]], object]
    # Is given what was asked, the body of the answer, None if there is none, and the time.
    answered: Callable[[Mapping[Key, Wanted], object, int], None]
    is_wanted: Callable[[Wanted], bool] = lambda _: True  # still, when the request is made
    wanted: dict[Key, Wanted] = field(default_factory=dict, init=False)
    _in_flight: Mapping[Key, Wanted] | None = field(default=None, init=False)
    _next_send_ms: int = field(default=0, init=False)

    def tick(self, now_ms: int) -> None:
        """Send the next request, unless one is in flight or the pause is not over."""
        if self._in_flight is not None or not self.wanted or now_ms < self._next_send_ms:
            return
        self.wanted = {key: each for key, each in self.wanted.items() if self.is_wanted(each)}
        batch = dict(islice(self.wanted.items(), self.batch_max))
        if not batch:
            return
        sent = self.controller.ask(
            self.request(batch),
            channel=self.channel,
            timeout_ms=self.timeout_ms,
            answered=self._answered,
        )
        if sent:
            self._in_flight = batch
        else:
            self.retry(now_ms)

    def _answered(self, event: Event, now_ms: int) -> None:
        assert self._in_flight is not None
        asked, self._in_flight = self._in_flight, None
        self.answered(asked, event.body if isinstance(event, Response) else None, now_ms)

    def settle(self, key: Key, asked: Wanted) -> None:
        """Forget a wish that was answered, unless another has taken its place by now."""
        if self.wanted.get(key) is asked:
            del self.wanted[key]

    def retry(self, now_ms: int) -> None:
        """Pause before the next request."""
        self._next_send_ms = now_ms + self.retry_backoff_ms

    def deadline_ms(self) -> int | None:
        return self._next_send_ms if self.wanted and self._in_flight is None else None
