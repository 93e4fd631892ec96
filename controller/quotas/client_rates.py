"""The rates at which clients use what one quota bounds, a rate for all who share a limit.

A client whom no limit holds is not measured. A rate whose windows are empty is like one that never
was, and is forgotten: clients choose their ids, and may choose a new one for every request.

Source: Kafka's ClientQuotaManager.
"""

from dataclasses import dataclass

from controller.quotas.limits import Limit, Sharers
from controller.quotas.sampled_rate import SampledRate, Windows
from wire.primitives import INT32_MAX

__all__ = ["ClientRates", "Throttling"]

_SWEEP_MIN = 1000  # rates, before any is looked at


@dataclass(slots=True)
class Throttling:
    """How often clients had to wait for one quota, and how long: for /metrics."""

    count: int = 0
    total_ms: int = 0

    def waited(self, throttle_ms: int) -> None:
        if throttle_ms > 0:
            self.count += 1
            self.total_ms += throttle_ms


class ClientRates:
    def __init__(self, windows: Windows, *, throttle_max_ms: int = INT32_MAX) -> None:
        self._windows = windows
        self._throttle_max_ms = throttle_max_ms
        self._rates: dict[Sharers, SampledRate] = {}
        self._sweep_at = _SWEEP_MIN

    def used(self, amount: float, limit: Limit | None, now_ms: int) -> int:
        """Record the use; returns how long the client has to wait."""
        if limit is None:
            return 0
        rate = self._rate(limit.sharers, now_ms)
        rate.record(amount, now_ms)
        return self._throttle_ms(rate, limit, now_ms)

    def tried(self, limit: Limit, now_ms: int) -> int:
        """One is to be let in: record it, unless it has to wait; returns how long."""
        rate = self._rate(limit.sharers, now_ms)
        rate.record(1, now_ms)
        throttle_ms = self._throttle_ms(rate, limit, now_ms)
        if throttle_ms > 0:
            rate.record(-1, now_ms)
        return throttle_ms

    def _rate(self, sharers: Sharers, now_ms: int) -> SampledRate:
        rate = self._rates.get(sharers)
        if rate is None:
            self._sweep(now_ms)
            rate = self._rates[sharers] = SampledRate(self._windows)
        return rate

    def _throttle_ms(self, rate: SampledRate, limit: Limit, now_ms: int) -> int:
        return min(rate.excess_ms(limit.bound, now_ms), self._throttle_max_ms)

    def __len__(self) -> int:
        return len(self._rates)

    def _sweep(self, now_ms: int) -> None:
        if len(self._rates) < self._sweep_at:
            return
        self._rates = {
            sharers: rate for sharers, rate in self._rates.items() if not rate.is_idle(now_ms)
        }
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._rates))
