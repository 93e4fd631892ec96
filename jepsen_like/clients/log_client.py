"""The client of the log workload: a producer and a consumer of one process."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from jepsen_like.clients.consumer import Consumer
from jepsen_like.clients.known_leaders import Leaders
from jepsen_like.clients.producer import Producer
from jepsen_like.clients.steps import Clock, Steps
from jepsen_like.histories.history import Kind
from jepsen_like.workloads.workload import Done, Wish

__all__ = ["LogClient"]


class LogClient:
    def __init__(
        self,
        brokers: Sequence[int],
        *,
        clock: Clock,
        random: Random,
        timeout_ms: int,
        is_idempotent: bool,
    ) -> None:
        """`timeout_ms`: of an operation; a request has a third, so that another can be asked."""
        request_timeout_ms = max(1, timeout_ms // 3)
        self.leaders = leaders = Leaders(
            brokers, random, timeout_ms=max(1, timeout_ms // 8), backoff_ms=max(1, timeout_ms // 50)
        )
        self._producer = Producer(
            leaders=leaders,
            clock=clock,
            is_idempotent=is_idempotent,
            timeout_ms=timeout_ms,
            request_timeout_ms=request_timeout_ms,
        )
        self._consumer = Consumer(
            leaders=leaders,
            request_timeout_ms=request_timeout_ms,
            wait_ms=max(1, timeout_ms // 20),
        )

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="send", value=[["send", key, value]]):
                in_next_epoch = wish.extra.get("epoch") == "next"
                sending = self._producer.send(key, b"%d" % value, in_next_epoch=in_next_epoch)
                done = yield from sending
                if done.kind is not Kind.OK:
                    return done
                return replace(done, value=[["send", key, [done.value, value]]])
            case Wish(f="poll"):
                done = yield from self._consumer.poll(until_caught_up="until" in wish.extra)
                return done
            case Wish(f="assign", value=keys):
                from_zero = wish.extra.get("seek") == "beginning"
                return self.assign(keys, dict.fromkeys(keys, 0) if from_zero else None)
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")

    def assign(self, keys: Sequence[str], at: Mapping[str, int | None] | None = None) -> Done:
        return self._consumer.assign(keys, at)
