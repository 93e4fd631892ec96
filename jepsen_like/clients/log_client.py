"""The client of the workloads on logs: a producer, with transactions or without, a consumer and a
member of groups in one process."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from jepsen_like.clients.consumer import Consumer
from jepsen_like.clients.groups import Groups
from jepsen_like.clients.producer import Producer
from jepsen_like.clients.steps import Clock, Leaders, Steps
from jepsen_like.clients.transactional import TransactionalProducer
from jepsen_like.histories.history import Kind, Value
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
        is_read_committed: bool = False,
        name: str = "chaos",
    ) -> None:
        """`timeout_ms`: of an operation; a request has a third, so that another can be asked.

        `name`: what its transactional id begins with.
        """
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
            is_read_committed=is_read_committed,
        )
        self._transactions = TransactionalProducer(
            transactional_id=f"{name}-{random.getrandbits(48):x}",
            leaders=leaders,
            clock=clock,
            timeout_ms=timeout_ms,
            request_timeout_ms=request_timeout_ms,
        )
        self._groups = Groups(
            leaders=leaders,
            clock=clock,
            timeout_ms=timeout_ms,
            request_timeout_ms=request_timeout_ms,
        )

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="send", value=[["send", key, value]]):
                in_next_epoch = wish.extra.get("epoch") == "next"
                sending = self._producer.send(key, b"%d" % value, in_next_epoch=in_next_epoch)
                done = yield from sending
                if done.kind is Kind.OK:
                    done = replace(done, value=[["send", key, [done.value, value]]])
            case Wish(f="txn", value=sends):
                done = yield from self._together(wish, sends)
            case Wish(f="poll"):
                done = yield from self._consumer.poll(until_caught_up="until" in wish.extra)
            case Wish(f="assign", value=keys, extra={"group": group}):
                done = yield from self._resume(group, keys)
            case Wish(f="assign", value=keys):
                from_zero = wish.extra.get("seek") == "beginning"
                done = self._consumer.assign(keys, dict.fromkeys(keys, 0) if from_zero else None)
            case Wish(f="join", extra={"group": group}):
                done = yield from self._groups.join(group)
            case Wish(f="commit", value=offsets, extra={"group": group}):
                done = yield from self._groups.commit(group, offsets)
            case Wish(f="committed" | "committed-stale", value=keys, extra={"group": group}):
                done = yield from self._groups.committed(group, keys)
            case _:
                done = Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")
        return done

    def _together(self, wish: Wish, sends: Sequence[Sequence[Value]]) -> Steps[Done]:
        records = [(key, b"%d" % value) for _, key, value in sends]
        commits = wish.extra.get("end") != "abort"
        done = yield from self._transactions.perform(records, commits=commits)
        if done.kind is not Kind.OK:
            return done
        told = [
            ["send", key, [offset, value]]
            for (_, key, value), offset in zip(sends, done.value, strict=True)
        ]
        return replace(done, value=told)

    def _resume(self, group: str, keys: Sequence[str]) -> Steps[Done]:
        """Begin where the group has committed: all keys, or none."""
        told = yield from self._groups.committed(group, keys)
        if told.kind is not Kind.OK:
            return told
        if None in told.value.values():
            return Done(kind=Kind.FAIL, error="not all have an offset committed")
        return self._consumer.assign(keys, told.value)
