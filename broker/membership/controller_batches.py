"""A broker asks the active controller about many partitions in one request at a time.

Whatever is wanted while a request is in flight goes into the next one, for all partitions together.
`ControllerBatches` keeps the wishes, the request in flight and the pause before the next. A
subclass makes the request of a batch, and reads the answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Generic, TypeVar

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, Response

__all__ = ["ControllerBatches"]

Key = TypeVar("Key")
Wanted = TypeVar("Wanted")


@dataclass(eq=False)
class ControllerBatches(ABC, Generic[Key, Wanted]):
    CHANNEL: ClassVar[str]
    BATCH_MAX: ClassVar[int]  # keys in one request

    incarnation: Incarnation
    controller: ControllerChannel
    retry_backoff_ms: int = field(kw_only=True)
    timeout_ms: int = field(kw_only=True)
    wanted: dict[Key, Wanted] = field(default_factory=dict, init=False)
    _in_flight: Mapping[Key, Wanted] | None = field(default=None, init=False)
    _next_send_ms: int = field(default=0, init=False)

    def is_wanted(self, wanted: Wanted) -> bool:
        """Is it still wanted when the request is made?"""
        return True

    @abstractmethod
    def request(self, batch: Mapping[Key, Wanted]) -> object: ...

    @abstractmethod
    def answered(self, asked: Mapping[Key, Wanted], body: object, now_ms: int) -> None:
        """`body` answers what was `asked`; it is None if there is no answer."""

    def tick(self, now_ms: int) -> None:
        """Send the next request, unless one is in flight or the pause is not over."""
        if self._in_flight is not None or not self.wanted or now_ms < self._next_send_ms:
            return
        self.wanted = {key: each for key, each in self.wanted.items() if self.is_wanted(each)}
        batch = dict(islice(self.wanted.items(), self.BATCH_MAX))
        if not batch:
            return
        sent = self.controller.ask(
            self.request(batch),
            channel=self.CHANNEL,
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
