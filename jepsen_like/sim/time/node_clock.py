"""A simulated node's own clock, which may be off and run too fast or too slowly."""

from dataclasses import dataclass

__all__ = ["Clock"]

_EPOCH_MS = 1_700_000_000_000  # virtual time begins at a plausible wall clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A node's own clock: offset and rate against virtual time."""

    offset_ms: int = 0
    drift_ppm: int = 0

    def local_ms(self, world_us: int) -> int:
        elapsed_us = world_us + world_us * self.drift_ppm // 1_000_000
        return _EPOCH_MS + self.offset_ms + elapsed_us // 1000

    def world_us(self, local_ms: int) -> int:
        """The first moment at which the local clock shows `local_ms` or more."""
        elapsed_us = (local_ms - _EPOCH_MS - self.offset_ms) * 1000
        return elapsed_us * 1_000_000 // (1_000_000 + self.drift_ppm) + 1
