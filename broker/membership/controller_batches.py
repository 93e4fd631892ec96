"""A broker asks the active controller for many partitions in one request at a time.

What is wanted while a request is in flight goes into the next one, for all partitions together. A
kind of request says what is in it, and what its answer means for what was asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, Response

__all__ = ["ControllerBatches"]

Place = TypeVar("Place")
Wish = TypeVar("Wish")


@dataclass(kw_only=True, eq=False)
class ControllerBatches(Generic[Place, Wish]):
    channel: ClassVar[str]
    batch_max: ClassVar[int]  # wishes in one request

    incarnation: Incarnation
    controller: ControllerChannel
    retry_backoff_ms: int
    timeout_ms: int
    _wanted: dict[Place, Wish] = field(default_factory=dict, init=False)
    _in_flight: dict[Place, Wish] | None = field(default=None, init=False)
    _next_send_ms: int = field(default=0, init=False)

    def tick(self, now_ms: int) -> None:
        if self._in_flight is not None or not self._wanted or now_ms < self._next_send_ms:
            return
        self._wanted = {place: wish for place, wish in self._wanted.items() if self._holds(wish)}
        batch = dict(list(self._wanted.items())[: self.batch_max])
        if not batch:
            return
        sent = self.controller.ask(
            self._request(batch),
            channel=self.channel,
            timeout_ms=self.timeout_ms,
            answered=self._answered,
        )
        if sent:
            self._in_flight = batch
        else:
            self._retry(now_ms)

    def deadline_ms(self) -> int | None:
        return self._next_send_ms if self._wanted and self._in_flight is None else None

    def _answered(self, event: Event, now_ms: int) -> None:
        assert self._in_flight is not None
        asked, self._in_flight = self._in_flight, None
        self._conclude(asked, event.body if isinstance(event, Response) else None, now_ms)

    def _retry(self, now_ms: int) -> None:
        self._next_send_ms = now_ms + self.retry_backoff_ms

    def _forget(self, place: Place, wish: Wish) -> None:
        """The wish is settled, unless another has taken its place."""
        if self._wanted.get(place) is wish:
            del self._wanted[place]

    # --- of each kind ---------------------------------------------------------------------------

    def _holds(self, wish: Wish) -> bool:
        """Is it still wanted?"""
        return True

    def _request(self, batch: Mapping[Place, Wish]) -> object:
        raise NotImplementedError

    def _conclude(self, asked: Mapping[Place, Wish], body: object, now_ms: int) -> None:
        """`body` is the answer; None if there is none."""
        raise NotImplementedError
