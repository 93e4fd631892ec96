"""How many partitions a client may create and delete: the tokens that its requests may take.

A request that knows the error is refused topic by topic once its bucket is overdrawn (it is
strict). An older one is carried out, and its client has to wait all the same.

Source: KIP-599; Kafka's ControllerMutationQuotaManager.
"""

from typing import Protocol

from controller.metadata.configs import Refusal
from controller.quotas.limits import Limit, Limits, Quotas, Sharers
from controller.quotas.sampled_rate import Windows
from controller.quotas.token_bucket import TokenBucket
from wire.errors import ErrorCode

__all__ = ["UNBOUNDED", "Allowance", "BoundedAllowance", "MutationQuota"]

_KEY = "controller_mutation_rate"
_SWEEP_MIN = 1000  # buckets, before any is looked at
_EXCEEDED = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)


class Allowance(Protocol):
    """What one request may change."""

    def take(self, partition_count: int) -> Refusal | None:
        """Take tokens for so many partitions, unless there are none."""
        ...

    @property
    def throttle_ms(self) -> int:
        """How long the client has to wait after what was taken, or refused."""
        ...


class _Unbounded:
    throttle_ms = 0

    def take(self, partition_count: int) -> Refusal | None:
        return None


UNBOUNDED: Allowance = _Unbounded()


class BoundedAllowance:
    def __init__(
        self, bucket: TokenBucket, per_second: float, *, is_strict: bool, now_ms: int
    ) -> None:
        self._bucket = bucket
        self._per_second = per_second
        self._is_strict = is_strict
        self._now_ms = now_ms
        self.throttle_ms = 0

    def take(self, partition_count: int) -> Refusal | None:
        if self._is_strict:
            overdrawn_ms = self._bucket.overdrawn_ms(self._per_second, self._now_ms)
            if overdrawn_ms > 0:
                self.throttle_ms = max(self.throttle_ms, overdrawn_ms)
                return _EXCEEDED
        self._bucket.take(partition_count, self._per_second, self._now_ms)
        if not self._is_strict:
            self.throttle_ms = self._bucket.overdrawn_ms(self._per_second, self._now_ms)
        return None


class MutationQuota:
    """The buckets of a controller: they are not in the log, and a new leader's are full."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._limits = Limits({})
        self._buckets: dict[Sharers, tuple[TokenBucket, Limit]] = {}
        self._sweep_at = _SWEEP_MIN

    def allowance(
        self, quotas: Quotas, user: str, client_id: str, *, is_strict: bool, now_ms: int
    ) -> Allowance:
        if not quotas:
            return UNBOUNDED
        if self._limits.quotas is not quotas:
            self._limits = Limits(quotas)
        limit = self._limits.of(_KEY, user, client_id)
        if limit is None:
            return UNBOUNDED
        bucket = self._bucket(limit, now_ms)
        return BoundedAllowance(bucket, limit.bound, is_strict=is_strict, now_ms=now_ms)

    def _bucket(self, limit: Limit, now_ms: int) -> TokenBucket:
        known = self._buckets.get(limit.sharers)
        if known is None:
            self._sweep(now_ms)
        bucket = TokenBucket(self._windows) if known is None else known[0]
        self._buckets[limit.sharers] = (bucket, limit)
        return bucket

    def _sweep(self, now_ms: int) -> None:
        """Forget full buckets: they are like new ones."""
        if len(self._buckets) < self._sweep_at:
            return
        self._buckets = {
            sharers: (bucket, limit)
            for sharers, (bucket, limit) in self._buckets.items()
            if not bucket.is_full(limit.bound, now_ms)
        }
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._buckets))
