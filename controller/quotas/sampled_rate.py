"""A rate over the last windows of time, and how long until it is no more than its quota allows.

The windows of a rate begin when something is recorded, and the current one is not over: the rate is
taken over all but one of the windows, whole, and what has passed of the oldest beyond them.
Otherwise the first request after a pause would show a rate of its bytes in a millisecond.

Pure: the time is told.

Source: KIP-13, KIP-55; Kafka's SampledStat, Rate and QuotaUtils.
"""

from collections import deque
from dataclasses import dataclass

from wire.primitives import INT32_MAX

__all__ = ["SampledRate", "Windows", "delay_ms"]


@dataclass(frozen=True, slots=True)
class Windows:
    """`quota.window.num` and `quota.window.size.seconds`."""

    count: int = 11
    length_ms: int = 1000

    @property
    def span_ms(self) -> int:
        return self.count * self.length_ms


@dataclass(slots=True)
class _Sample:
    start_ms: int
    last_ms: int  # when something was last recorded in it
    amount: float


class SampledRate:
    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: deque[_Sample] = deque()  # the oldest first; one more than windows, at most

    def record(self, amount: float, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._windows.length_ms:
            samples.append(_Sample(now_ms, now_ms, amount))
            self._forget(now_ms)
        else:
            samples[-1].amount += amount
            samples[-1].last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        return self._amount(now_ms) * 1000 / self._elapsed_ms(now_ms)

    def excess_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing more may be recorded, for the rate to come down to `bound`."""
        rate = self.per_second(now_ms)
        if rate <= bound:
            return 0
        return delay_ms((rate - bound) * self._elapsed_ms(now_ms), bound)

    def is_idle(self, now_ms: int) -> bool:
        """Is nothing left of what was recorded?"""
        self._forget(now_ms)
        return not self._samples

    def _amount(self, now_ms: int) -> float:
        self._forget(now_ms)
        return sum(sample.amount for sample in self._samples)

    def _elapsed_ms(self, now_ms: int) -> int:
        length_ms = self._windows.length_ms
        elapsed_ms = now_ms - self._samples[0].start_ms if self._samples else 0
        missing = self._windows.count - 1 - elapsed_ms // length_ms
        return max(elapsed_ms + max(missing, 0) * length_ms, 1)

    def _forget(self, now_ms: int) -> None:
        """Drop samples in which nothing was recorded within the windows' span."""
        samples, span_ms = self._samples, self._windows.span_ms
        while samples and now_ms - samples[0].last_ms >= span_ms:
            samples.popleft()


def delay_ms(excess: float, per_ms: float) -> int:
    """How long it takes to make up for `excess`, within what a response can say."""
    return INT32_MAX if per_ms <= 0 else min(round(excess / per_ms), INT32_MAX)
