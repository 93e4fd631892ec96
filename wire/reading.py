"""The steps that generated readers call, and errors that say which field is wrong.

A reader takes the bytes of a frame and a position, and returns a message and the position behind
it. It accepts what Kafka accepts: unknown tagged fields are skipped (KIP-482), unknown error codes
become UNKNOWN_SERVER_ERROR. It allocates nothing on the word of a length that the bytes left could
not hold. Anything else that does not fit raises `Malformed`.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import error as struct_error
from typing import Any
from uuid import UUID

from wire.errors import ErrorCode
from wire.layout import ELEMENTS_MAX, STRING_BYTES_MAX
from wire.primitives import METADATA_TOPIC_ID, ZERO_UUID
from wire.varint import Malformed, read_uvarint

__all__ = ["READING", "Reader", "UnknownTag"]

Reader = Callable[[bytes, int], tuple[Any, int]]

# What a generated reader fails with where bytes run out, or are no text.
NOT_WHOLE = (struct_error, IndexError, UnicodeDecodeError)


def unreadable(buffer: bytes, error: Exception) -> Malformed:
    """A reader raises this instead of an error of `NOT_WHOLE`."""
    if isinstance(error, UnicodeDecodeError):
        return Malformed(f"a string is not UTF-8: {error}")
    return _ended(len(buffer))


def _ended(size: int) -> Malformed:
    return Malformed(f"the message ends early, after {size} bytes")


def _bad_size(name: str, length: int, left: int) -> Malformed:
    """Says what is wrong with the length of a string or of bytes."""
    if length == -1:
        return Malformed(f"{name} is null, where no null may be")
    if length < 0:
        return Malformed(f"{name} has the length {length}")
    if length <= left:
        return Malformed(f"{name} has {length} bytes, above {STRING_BYTES_MAX}")
    return Malformed(f"{name} has {length} bytes, {left} are left")


def _bad_count(name: str, count: int, left: int) -> Malformed:
    if count == -1:
        return Malformed(f"{name} is null, where no null may be")
    if count < 0:
        return Malformed(f"{name} has {count} elements")
    if count > ELEMENTS_MAX:
        return Malformed(f"{name} has {count} elements, above {ELEMENTS_MAX}")
    return Malformed(f"{name} has {count} elements, {left} bytes are left")


def _bad_tag(name: str, position: int, end: int) -> Malformed:
    return Malformed(f"{name} ends at {position}, its tag at {end}")


_CONSTANTS = {each.bytes: each for each in (ZERO_UUID, METADATA_TOPIC_ID)}


@lru_cache(maxsize=4096)  # the ids of topics and directories come again in every fetch
def _uuid(content: bytes) -> UUID:
    """The constants themselves where it is one of them: what is identical is equal at no cost."""
    return _CONSTANTS.get(content) or UUID(bytes=content)


def _read_tag(buffer: bytes, position: int) -> tuple[int, int, int]:
    """A tag, where its value begins, and where that ends."""
    tag, size = buffer[position], buffer[position + 1]
    position += 2
    if tag > 127 or size > 127:
        tag, position = read_uvarint(buffer, position - 2)
        size, position = read_uvarint(buffer, position)
    end = position + size
    if end > len(buffer):
        raise Malformed(f"tag {tag} has {size} bytes, {len(buffer) - position} are left")
    return tag, position, end


def _skip_tags(buffer: bytes, position: int) -> int:
    """Skips tagged fields none of which is known; `position` is that of their count."""
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, _, position = _read_tag(buffer, position)
    return position


class UnknownTag(Malformed):
    """A tagged field that this release does not know, for readers that must not skip it."""


# The names by which generated readers call these.
READING = {
    "ERROR_CODES": {code.value: code for code in ErrorCode},
    "NOT_WHOLE": NOT_WHOLE,
    "UnknownTag": UnknownTag,
    "UNKNOWN_ERROR": ErrorCode.UNKNOWN_SERVER_ERROR,
    "bad_count": _bad_count,
    "bad_size": _bad_size,
    "bad_tag": _bad_tag,
    "ended": _ended,
    "read_tag": _read_tag,
    "read_uvarint": read_uvarint,
    "skip_tags": _skip_tags,
    "unreadable": unreadable,
    "uuid": _uuid,
}
