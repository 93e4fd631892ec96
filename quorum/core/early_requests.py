"""Requests that come before a node can judge or serve them are held, in order and for a while.

A node accepts connections as soon as its process is up, so that clients find the port. Before it
knows the ACLs it can judge nobody, and before its broker is unfenced an image without brokers would
send clients away. What is held is bounded in number, in bytes and in time. A request that cannot be
held, or not any longer, costs its client the connection: silence could pass for a node that is
slow, and an error for an answer, while one whose connection ends asks another node.

Source: Kafka's BrokerServer.enableRequestProcessing, before which its sockets are not read.
"""

from collections import deque
from collections.abc import Callable

from quorum.core.effects import Effect, HangUp, Request

__all__ = ["HELD_BYTES_MAX", "HELD_MAX", "HOLD_MAX_MS", "EarlyRequests"]

HELD_MAX = 10_000  # a large cluster's clients, all of which have asked while the node was down
HELD_BYTES_MAX = 64 << 20  # as they came; nobody may be known yet
HOLD_MAX_MS = 30_000  # Kafka's request.timeout.ms of clients, who have given up by then


class EarlyRequests:
    def __init__(self, emit: Callable[[Effect], None], *, hold_max_ms: int = HOLD_MAX_MS) -> None:
        self._emit = emit
        self._hold_max_ms = hold_max_ms
        self._held: deque[tuple[int, Request]] = deque()  # by deadline, and in order
        self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, request: Request, now_ms: int) -> None:
        held_bytes = self._held_bytes + len(request.frame)
        if len(self._held) >= HELD_MAX or held_bytes > HELD_BYTES_MAX:
            self._emit(HangUp(token=request.token))
            return
        self._held_bytes = held_bytes
        self._held.append((now_ms + self._hold_max_ms, request))

    def release(self) -> list[Request]:
        held, self._held, self._held_bytes = self._held, deque(), 0
        return [request for _, request in held]

    def tick(self, now_ms: int) -> None:
        while self._held and self._held[0][0] <= now_ms:
            _, request = self._held.popleft()
            self._held_bytes -= len(request.frame)
            self._emit(HangUp(token=request.token))

    def deadline_ms(self) -> int | None:
        return self._held[0][0] if self._held else None
