"""Before a leader writes a producer's first batch of a transaction, the coordinator has to agree.

A producer may have died with a batch on its way. Written after the marker, the batch would begin a
transaction that nobody ends, and no reader of committed records would get past it. So whoever is
about to write it asks the coordinator first: is the transaction going on, and does the partition
belong to it? Producers of `transaction.version` 2 add partitions in this way; older ones have added
them before.

Source: KIP-890; Kafka's AddPartitionsToTxnManager.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from wire.errors import ErrorCode
from wire.message import Value

__all__ = ["Concluded", "Place", "Producer", "TransactionAsked", "Verifier"]

Place = tuple[str, int]  # topic and partition

Concluded = Callable[[Mapping[Place, ErrorCode], int], None]
"""Is called once, with the error of each place, and the time in milliseconds."""


class Producer(NamedTuple):
    """Kafka's ProducerIdAndEpoch."""

    id: int
    epoch: int


class TransactionAsked(Value):
    """A producer has a batch, or offsets, for these places in its transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    places: tuple[Place, ...]
    adds: bool  # the places are added; otherwise it is only verified that they are part of it

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)


class Verifier(Protocol):
    def verify(self, asked: TransactionAsked, concluded: Concluded, now_ms: int) -> None:
        """Ask the coordinator. `concluded` may be called at once, or much later."""
