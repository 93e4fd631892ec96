"""Requests that arrive before the broker first runs are held, in order and for a limited time.

A broker accepts connections as soon as its process is up, so that clients find the port. It answers
nothing before the controller has unfenced it and it has read so in the metadata: an image without
brokers would send clients away. A request that cannot be held any longer gets no answer, so that
the client times out and asks another broker.

Source: Kafka's BrokerServer.enableRequestProcessing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from broker.waiting import Deadlines
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox

__all__ = ["EarlyRequests"]


@dataclass(slots=True, eq=False)
class Held:
    request: Request
    is_done: bool = False


class EarlyRequests:
    def __init__(self, *, outbox: Outbox, deadlines: Deadlines, hold_max_ms: int) -> None:
        self._outbox = outbox
        self._deadlines = deadlines
        self._hold_max_ms = hold_max_ms
        self._held: dict[Held, None] = {}  # in order

    def hold(self, request: Request, now_ms: int) -> None:
        held = Held(request)
        due_ms = now_ms + self._hold_max_ms
        if self._deadlines.add(held, due_ms, partial(self._expire, held)):
            self._held[held] = None
        else:
            self._expire(held, now_ms)

    def release(self) -> Iterator[Request]:
        held, self._held = self._held, {}
        for item in held:
            if not item.is_done:
                item.is_done = True
                yield item.request

    def _expire(self, held: Held, _now_ms: int) -> None:
        held.is_done = True
        self._held.pop(held, None)
        self._outbox.emit(Reply(token=held.request.token, body=None))
