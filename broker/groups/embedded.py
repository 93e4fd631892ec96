"""Subscriptions and assignments that classic consumers exchange, in bytes that the group hands on.

A coordinator that assigns reads their subscriptions, and writes their assignments.

Source: Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

from broker.coordination.fields import Fields, sized_string
from wire.varint import Malformed

__all__ = ["Embedded", "read_assignment", "read_subscription", "write_assignment"]

_INT16, _INT32 = Struct(">h"), Struct(">i")
_NEWEST = 3
_NO_BYTES = _INT32.pack(-1)

Places = tuple[tuple[str, int], ...]  # topic and partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A subscription."""

    version: int
    topics: tuple[str, ...]
    owned: Places = ()
    rack_id: str | None = None


def read_subscription(content: bytes) -> Embedded | None:
    """None if it is none."""
    fields = Fields(content)
    try:
        version = fields.int16()
        topics = tuple(fields.string() for _ in range(fields.count()))
        fields.sized()  # what else they tell each other
        owned = _places(fields) if version >= 1 else ()
        if version >= 2:
            fields.int32()  # the generation in which it had them
        rack_id = fields.nullable_string() if version >= 3 else None
    except (Malformed, struct_error, IndexError, UnicodeDecodeError):
        return None
    return Embedded(version=version, topics=topics, owned=owned, rack_id=rack_id)


def read_assignment(content: bytes) -> Places | None:
    """None if it is none; a member without an assignment has no bytes at all."""
    if not content:
        return ()
    fields = Fields(content)
    try:
        fields.int16()  # its version: all begin alike
        return _places(fields)
    except (Malformed, struct_error, IndexError, UnicodeDecodeError):
        return None


def _places(fields: Fields) -> Places:
    found: list[tuple[str, int]] = []
    for _ in range(fields.count()):
        topic = fields.string()
        found += ((topic, fields.int32()) for _ in range(fields.count()))
    return tuple(found)


def write_assignment(version: int, partitions: Mapping[str, Iterable[int]]) -> bytes:
    """In the version of the member's subscription."""
    parts = [_INT16.pack(min(version, _NEWEST)), _INT32.pack(len(partitions))]
    for topic, indexes in sorted(partitions.items()):
        numbers = [_INT32.pack(index) for index in sorted(indexes)]
        parts += (sized_string(topic), _INT32.pack(len(numbers)), *numbers)
    return b"".join((*parts, _NO_BYTES))
