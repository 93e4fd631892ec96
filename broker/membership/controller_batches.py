"""A broker asks the active controller for many partitions in one request at a time.

What is wanted while a request is in flight goes into the next one, for all partitions together.
Each kind of request extends `ControllerBatches`: it makes the request, and takes the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, Response

__all__ = ["ControllerBatches"]

Key = TypeVar("Key")
Wanted = TypeVar("Wanted")


@dataclass(kw_only=True, eq=False)
class ControllerBatches(Generic[Key, Wanted]):
    channel: ClassVar[str]
    batch_max: ClassVar[int]  # keys in one request

    incarnation: Incarnation
    controller: ControllerChannel
    retry_backoff_ms: int
    timeout_ms: int
    _wanted: dict[Key, Wanted] = field(default_factory=dict, init=False)
    _in_flight: dict[Key, Wanted] | None = field(default=None, init=False)
    _next_send_ms: int = field(default=0, init=False)

    def tick(self, now_ms: int) -> None:
        if self._in_flight is not None or not self._wanted or now_ms < self._next_send_ms:
            return
        self._wanted = {key: each for key, each in self._wanted.items() if self._is_wanted(each)}
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

    def _forget(self, key: Key, asked: Wanted) -> None:
        """What was asked is settled, unless something else is wanted by now."""
        if self._wanted.get(key) is asked:
            del self._wanted[key]

    # --- what a kind of request decides ---------------------------------------------------------

    def _is_wanted(self, each: Wanted) -> bool:
        """Is it still wanted?"""
        return True

    def _request(self, batch: Mapping[Key, Wanted]) -> object:
        raise NotImplementedError

    def _conclude(self, asked: Mapping[Key, Wanted], body: object, now_ms: int) -> None:
        """Take the answer, which is None if there is none."""
        raise NotImplementedError
