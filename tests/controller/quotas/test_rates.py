"""Rates and buckets against slow twins, and what a client gets that waits as it is told."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.quotas.client_rates import ClientRates
from controller.quotas.limits import Limit
from controller.quotas.sampled_rate import SampledRate, Windows
from controller.quotas.token_bucket import TokenBucket
from wire.primitives import INT32_MAX

WINDOWS = Windows(count=4, length_ms=1000)
T0 = 1_700_000_000_000


@dataclass
class Slot:
    start: int
    last: int = 0
    total: float = 0.0


class SlowRate:
    """Kafka's SampledStat and Rate as they are written: a ring, all of it looked at each time."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.ring: list[Slot] = []
        self.current = 0

    def record(self, amount: float, now: int) -> None:
        if not self.ring:
            self.ring.append(Slot(now))
        slot = self.ring[self.current]
        if now - slot.start >= self.windows.length_ms:
            self.current = (self.current + 1) % (self.windows.count + 1)
            slot = Slot(now)
            self.ring[self.current : self.current + 1] = [slot]
        slot.total += amount
        slot.last = now

    def measure(self, now: int) -> tuple[float, int]:
        """The rate, and the milliseconds that it is taken over."""
        for slot in self.ring:
            if now - slot.last >= self.windows.count * self.windows.length_ms:
                slot.start, slot.last, slot.total = now, 0, 0.0
        elapsed = now - min(slot.start for slot in self.ring)
        while elapsed // self.windows.length_ms < self.windows.count - 1:
            elapsed += self.windows.length_ms
        elapsed = max(elapsed, 1)
        return sum(slot.total for slot in self.ring) * 1000 / elapsed, elapsed


@given(
    st.lists(st.tuples(st.integers(0, 2500), st.integers(0, 1000)), min_size=1, max_size=60),
    st.integers(1, 500),
)
def test_rate_and_delay_are_those_of_the_slow_twin(uses: list[tuple[int, int]], bound: int) -> None:
    rate, slow, now = SampledRate(WINDOWS), SlowRate(WINDOWS), T0
    for pause, amount in uses:
        now += pause
        rate.record(amount, now)
        slow.record(amount, now)
        value, elapsed = slow.measure(now)
        assert rate.per_second(now) == pytest.approx(value)
        excess = max(value - bound, 0) / bound * elapsed
        assert abs(rate.excess_ms(bound, now) - excess) <= 1


def test_first_use_is_measured_over_all_windows_but_one() -> None:
    rate = SampledRate(WINDOWS)
    rate.record(6000, T0)
    assert rate.per_second(T0) == 2000
    assert rate.excess_ms(1000, T0) == 3000
    assert rate.per_second(T0 + 3000) == 2000  # three windows have passed, as was assumed
    assert rate.per_second(T0 + 3999) < 2000
    assert rate.per_second(T0 + 4000) == 0


@given(st.integers(10, 1000), st.lists(st.floats(0, 1), min_size=30, max_size=60))
def test_client_that_waits_gets_what_its_quota_allows_in_the_long_run(
    bound: int, seconds: list[float]
) -> None:
    """For requests that are worth a second, at most: larger ones gain from what is assumed of the
    windows before the first."""
    rates, limit, now, used = ClientRates(WINDOWS), Limit(bound, (None, "c")), T0, 0.0
    for amount in seconds:
        used += amount * bound
        now += rates.used(amount * bound, limit, now)
    assert used <= bound * (now - T0 + WINDOWS.span_ms) / 1000


def test_delay_has_room_in_a_response() -> None:
    rate = SampledRate(WINDOWS)
    rate.record(1e15, T0)
    assert rate.excess_ms(1, T0) == INT32_MAX
    assert rate.excess_ms(0, T0) == INT32_MAX


def test_delay_may_be_bounded() -> None:
    rates = ClientRates(WINDOWS, throttle_max_ms=WINDOWS.length_ms)
    assert rates.used(1e9, Limit(1, (None, "c")), T0) == 1000


def test_rates_of_clients_that_are_gone_are_forgotten() -> None:
    rates = ClientRates(WINDOWS)
    for number in range(5000):
        rates.used(1, Limit(1, (None, f"c{number}")), T0 + 10 * number)
    assert len(rates) < 2000


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 30)), max_size=20), st.integers(1, 10)
)
def test_bucket_is_that_of_the_slow_twin(takes: list[tuple[int, int]], rate: int) -> None:
    """In thousandths of a token, millisecond by millisecond."""
    bucket, now = TokenBucket(WINDOWS), T0
    burst = rate * WINDOWS.span_ms
    slow = burst
    for pause, count in takes:
        for _ in range(pause):
            slow = min(slow + rate, burst)
        now += pause
        assert bucket.tokens(rate, now) == pytest.approx(slow / 1000)
        bucket.take(count, rate, now)
        slow -= count * 1000
        overdrawn = bucket.overdrawn_ms(rate, now)
        assert (overdrawn > 0) is (slow < 0)
        assert abs(overdrawn - max(-slow / rate, 0)) <= 1
