"""The smallest application with a state: the values of all records, which a snapshot holds too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from quorum.core.application import State
from quorum.core.effects import Effect, Event
from quorum.core.types import OffsetAndEpoch
from wire.batch import data_batch, headers, records_of

__all__ = ["Ledger", "batches_of", "values_of"]

_RECORDS_MAX = 3  # in a batch of a snapshot


def values_of(batches: bytes) -> list[bytes]:
    """The values in data batches; control batches count, but are no part of a state."""
    return [
        record.value or b""
        for position, header in headers(batches)
        if not header.is_control
        for record in records_of(batches[position : position + header.size_bytes])
    ]


def batches_of(values: Sequence[bytes]) -> Iterator[bytes]:
    for at in range(0, len(values), _RECORDS_MAX):
        yield data_batch(values[at : at + _RECORDS_MAX], timestamp_ms=0)


@dataclass
class Ledger:
    """Asserts that what it is told makes sense."""

    values: list[bytes] = field(default_factory=list)
    next_offset: int = 0
    loads: list[OffsetAndEpoch] = field(default_factory=list)
    states: int = 0  # that it was asked for
    is_in_transaction: bool = False
    leads: bool = False
    _loading: list[bytes] | None = None

    def serves(self, body: object) -> bool:
        return False

    def lead(self, epoch: int, now_ms: int) -> None:
        assert self._loading is None, "leads an epoch without knowing the state"
        self.leads = True

    def resign(self, now_ms: int) -> None:
        self.leads = False

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        assert self._loading is None, "records in the middle of a snapshot"
        first = next(header.base_offset for _, header in headers(batches))
        assert first == self.next_offset, (first, self.next_offset)
        self.values += values_of(batches)
        self.next_offset = next_offset

    def load(self, batches: bytes, *, is_first: bool) -> None:
        assert not self.leads, "a leader has all that is committed"
        if is_first:
            self._loading = []
        assert self._loading is not None
        self._loading += values_of(batches)

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        assert self._loading is not None
        assert end.offset > self.next_offset, (end, self.next_offset)
        self.values, self._loading = self._loading, None
        self.next_offset = end.offset
        self.loads.append(end)

    def state(self) -> State | None:
        self.states += 1
        if self.is_in_transaction:
            return None
        return State(end_offset=self.next_offset, batches=batches_of(tuple(self.values)))

    def receive(self, event: Event, now_ms: int) -> None:
        raise AssertionError(f"never asked for: {event}")

    def tick(self, now_ms: int) -> None:
        pass

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return []
