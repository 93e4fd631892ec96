"""Carries out the authentication of one served connection: its clock and its limits.

What may come when, `wire.security.authentication` decides.
"""

import asyncio
import time
from collections.abc import Callable

from wire.apis import DecodedRequest
from wire.security.authentication import (
    SASL_KEYS,
    Authentication,
    Outcome,
    SaslListener,
)

__all__ = ["ConnectionAuthentication"]

_SASL_AUTHENTICATE_KEY = 36


class ConnectionAuthentication:
    """`sasl` is what the listener asks now. `refuse` closes the connection, and is told why."""

    def __init__(
        self, sasl: Callable[[], SaslListener | None], refuse: Callable[[str], None]
    ) -> None:
        self._sasl = sasl()
        self._refuse = refuse
        self._state = Authentication(sasl)
        self._loop = asyncio.get_running_loop()
        self._clock_offset = time.time() - self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The time for it runs from now on."""
        if self._sasl is not None and self._state.is_at_work and self._timer is None:
            self._timer = self._loop.call_later(
                self._sasl.timeout_seconds, self._refuse, "it did not authenticate in time"
            )

    def cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    @property
    def failure_delay_seconds(self) -> float:
        return 0.0 if self._sasl is None else self._sasl.failure_delay_seconds

    def frame_bytes_max(self, otherwise: int) -> int:
        """The limit of the next frame: smaller until the client is known."""
        if self._sasl is None or self._state.is_done:
            return otherwise
        return min(self._sasl.received_bytes_max, otherwise)

    def bare_token(self, frame: bytes) -> DecodedRequest | None:
        """The frame as a request, if it is a token without a header."""
        if not self._state.awaits_token:
            return None
        return DecodedRequest(
            api_key=_SASL_AUTHENTICATE_KEY,
            api_version=0,
            correlation_id=0,
            client_id=None,
            body=frame,
        )

    def looks_at(self, request: DecodedRequest) -> bool:
        """Must it be asked whether the request may be served?"""
        return self._state.looks_at_all or request.api_key in SASL_KEYS

    def receive(self, request: DecodedRequest) -> Outcome:
        now_ms = int((self._loop.time() + self._clock_offset) * 1000)
        if isinstance(request.body, bytes):
            outcome = self._state.receive_token(request.body, now_ms)
        else:
            outcome = self._state.receive(request.body, request.api_version, now_ms)
        if self._state.is_at_work:
            self.begin()
        else:
            self.cancel()
        return outcome
