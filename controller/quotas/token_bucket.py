"""A bucket of tokens that fills up at the rate of its quota: bursts pass, the average is bounded.

What is asked for is granted as long as the bucket is not overdrawn, however much it is: a topic of
a thousand partitions can be created at ten a second, and whoever comes after it waits.

Source: KIP-599; Kafka's TokenBucket and ControllerMutationQuotaManager.
"""

from controller.quotas.sampled_rate import Windows, delay_ms

__all__ = ["TokenBucket"]


class TokenBucket:
    __slots__ = ("_refilled_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens: float | None = None  # None: it has never been asked for any, and is full
        self._refilled_ms = 0

    def tokens(self, per_second: float, now_ms: int) -> float:
        """What it holds now; negative if it is overdrawn."""
        burst = per_second * self._windows.span_ms / 1000
        if self._tokens is None:
            self._tokens = burst
        else:
            gained = per_second * max(now_ms - self._refilled_ms, 0) / 1000
            self._tokens = min(self._tokens + gained, burst)
        self._refilled_ms = now_ms
        return self._tokens

    def take(self, count: float, per_second: float, now_ms: int) -> None:
        self._tokens = self.tokens(per_second, now_ms) - count

    def overdrawn_ms(self, per_second: float, now_ms: int) -> int:
        """How long until it is overdrawn no more."""
        tokens = self.tokens(per_second, now_ms)
        return 0 if tokens >= 0 else max(delay_ms(-tokens * 1000, per_second), 1)

    def is_full(self, per_second: float, now_ms: int) -> bool:
        return self.tokens(per_second, now_ms) >= per_second * self._windows.span_ms / 1000
