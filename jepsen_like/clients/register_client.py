"""The client of the plain register on the quorum: it asks whoever leads."""

from collections.abc import Sequence
from random import Random
from typing import Any

from jepsen_like.clients.steps import Ask, Steps
from jepsen_like.histories.history import Kind
from jepsen_like.workloads.workload import Done, Wish
from quorum.node.register import RegisterRequest, RegisterResponse

__all__ = ["RegisterClient"]


class RegisterClient:
    def __init__(self, voters: Sequence[int], *, random: Random, timeout_ms: int) -> None:
        self._voters = tuple(voters)
        self._random = random
        self._timeout_ms = timeout_ms
        self._leader: int | None = None  # as it was last told

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="read" | "write" as f, value=[key, value]):
                asked = RegisterRequest(f=f, key=key, value=value, timeout_ms=self._timeout_ms)
            case Wish(f="cas", value=[key, [old, new]]):
                asked = RegisterRequest(
                    f="cas", key=key, old=old, value=new, timeout_ms=self._timeout_ms
                )
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")
        node = self._random.choice(self._voters) if self._leader is None else self._leader
        told: Any = yield Ask(node=node, body=asked, timeout_ms=self._timeout_ms)
        if not isinstance(told, RegisterResponse):
            self._leader = None
            kind = Kind.FAIL if asked.f == "read" else Kind.INFO
            return Done(kind=kind, error="no answer")
        if told.outcome != "ok":
            self._leader = told.leader_id if not told.has_seen else self._leader
            extra = {"seen": told.seen} if told.has_seen else {}
            return Done(kind=Kind(told.outcome), error=told.error, extra=extra)
        self._leader = node
        value = [asked.key, told.value] if asked.f == "read" else wish.value
        return Done(kind=Kind.OK, value=value, extra={"node": node})
