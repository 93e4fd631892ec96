"""Producers get ids from blocks that the controller grants (InitProducerId).

This module decides when to ask for the next block; requests wait while there is none, but not for
ever, since their clients do not. Idempotent producers are answered here; the coordinators of
transactional ids take ids for theirs.

Source: KIP-98, KIP-730; Kafka's RPCProducerIdManager.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from broker.waiting import Deadlines
from quorum.core.effects import Event, Reply, Request, body_of
from quorum.core.outbox import Outbox
from wire.errors import ErrorCode
from wire.messages.producing import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

__all__ = ["ProducerIds", "TakenId", "refused_producer"]

_NONE = -1  # no id, no epoch
_WAITING_MAX = 1000
_WAIT_MAX_MS = 30_000
_RETRY_BACKOFF_MS = 50
_PREFETCH_BELOW = 100  # of a block of 1000: the next is there before this one is used up


TakenId = Callable[[int | None, int], None]  # (the id, or None if there is none in time; now_ms)


@dataclass(slots=True, eq=False)
class Waiting:
    taken: TakenId
    is_done: bool = False


class ProducerIds:
    def __init__(
        self,
        *,
        incarnation: Incarnation,
        controller: ControllerChannel,
        outbox: Outbox,
        deadlines: Deadlines,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` is for an answer of the controller; then it is asked again."""
        self._incarnation = incarnation
        self._controller = controller
        self._outbox = outbox
        self._deadlines = deadlines
        self._timeout_ms = timeout_ms
        self._ids = range(0)
        self._next_ids = range(0)
        self._waiting: dict[Waiting, None] = {}  # in order
        self._is_asking = False
        self._next_ask_ms = 0

    def handle(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, InitProducerIdRequest), body
        assert body.transactional_id is None, "its coordinator answers"
        if (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
            self._reply(request.token, refused_producer(ErrorCode.INVALID_REQUEST))
        else:
            self.take(partial(self._taken, request.token), now_ms)

    def _taken(self, token: int, producer_id: int | None, _now_ms: int) -> None:
        if producer_id is None:
            self._reply(token, refused_producer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            self._reply(token, InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    def take(self, taken: TakenId, now_ms: int) -> None:
        """Call `taken` with an id that nobody has, perhaps at once."""
        if len(self._waiting) >= _WAITING_MAX:
            taken(None, now_ms)
        else:
            self._wait(Waiting(taken), now_ms)
            self.tick(now_ms)

    def _wait(self, waiting: Waiting, now_ms: int) -> None:
        self._waiting[waiting] = None
        self._serve(now_ms)
        if waiting.is_done:
            return
        if not self._deadlines.add(waiting, now_ms + _WAIT_MAX_MS, partial(self._expire, waiting)):
            self._expire(waiting, now_ms)

    def _expire(self, waiting: Waiting, now_ms: int) -> None:
        waiting.is_done = True
        del self._waiting[waiting]
        waiting.taken(None, now_ms)

    def tick(self, now_ms: int) -> None:
        is_low = len(self._ids) < _PREFETCH_BELOW and not self._next_ids
        is_wanted = bool(self._waiting) or (is_low and bool(self._ids))
        if is_wanted and is_low and not self._is_asking and now_ms >= self._next_ask_ms:
            self._ask(now_ms)

    def deadline_ms(self) -> int | None:
        return self._next_ask_ms if self._waiting and not self._is_asking else None

    def _serve(self, now_ms: int) -> None:
        while self._waiting and (self._ids or self._next_ids):
            if not self._ids:
                self._ids, self._next_ids = self._next_ids, range(0)
            producer_id, self._ids = self._ids[0], self._ids[1:]
            waiting = next(iter(self._waiting))
            del self._waiting[waiting]
            waiting.is_done = True
            waiting.taken(producer_id, now_ms)

    def _reply(self, token: int, body: InitProducerIdResponse) -> None:
        self._outbox.emit(Reply(token=token, body=body))

    def _ask(self, now_ms: int) -> None:
        request = AllocateProducerIdsRequest(
            broker_id=self._incarnation.node_id, broker_epoch=self._incarnation.broker_epoch
        )
        self._is_asking = self._controller.ask(
            request, channel="producer-ids", timeout_ms=self._timeout_ms, answered=self._answered
        )
        if not self._is_asking:
            self._next_ask_ms = now_ms + _RETRY_BACKOFF_MS

    def _answered(self, event: Event, now_ms: int) -> None:
        self._is_asking = False
        body = body_of(event)
        if isinstance(body, AllocateProducerIdsResponse) and body.error_code is ErrorCode.NONE:
            start = body.producer_id_start
            self._next_ids = range(start, start + body.producer_id_len)
            self._serve(now_ms)
        else:
            self._next_ask_ms = now_ms + _RETRY_BACKOFF_MS
        self.tick(now_ms)


def refused_producer(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=_NONE)
