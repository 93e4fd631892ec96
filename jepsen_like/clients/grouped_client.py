"""The client of the kafka workload: a log's client that is a member of groups, too."""

from collections.abc import Sequence
from random import Random

from jepsen_like.clients.groups import Groups
from jepsen_like.clients.log_client import LogClient
from jepsen_like.clients.steps import Clock, Steps
from jepsen_like.histories.history import Kind
from jepsen_like.workloads.workload import Done, Wish

__all__ = ["KafkaClient"]


class KafkaClient:
    def __init__(
        self,
        brokers: Sequence[int],
        *,
        clock: Clock,
        random: Random,
        timeout_ms: int,
        is_idempotent: bool,
    ) -> None:
        self._log = LogClient(
            brokers,
            clock=clock,
            random=random,
            timeout_ms=timeout_ms,
            is_idempotent=is_idempotent,
        )
        self._groups = Groups(
            leaders=self._log.leaders,
            clock=clock,
            timeout_ms=timeout_ms,
            request_timeout_ms=max(1, timeout_ms // 3),
        )

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="join", extra={"group": group}):
                done = yield from self._groups.join(group)
            case Wish(f="commit", value=offsets, extra={"group": group}):
                done = yield from self._groups.commit(group, offsets)
            case Wish(f="committed" | "committed-stale", value=keys, extra={"group": group}):
                done = yield from self._groups.committed(group, keys)
            case Wish(f="assign", value=keys, extra={"group": group}):
                done = yield from self._resume(group, keys)
            case _:
                done = yield from self._log.perform(wish)
        return done

    def _resume(self, group: str, keys: Sequence[str]) -> Steps[Done]:
        """Where the group has committed; all keys, or none."""
        told = yield from self._groups.committed(group, keys)
        if told.kind is not Kind.OK:
            return told
        if None in told.value.values():
            return Done(kind=Kind.FAIL, error="not all have an offset committed")
        return self._log.assign(keys, told.value)
