"""What clients of a cluster and their judges agree on: topics, and acknowledged batches."""

from dataclasses import dataclass
from uuid import UUID

__all__ = ["TOPIC", "WIDE", "Acknowledged", "Key"]

Key = tuple[UUID, int]  # topic id, partition
TOPIC = "orders"
WIDE = "wide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    base_offset: int
    values: tuple[bytes, ...]
