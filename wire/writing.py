"""What generated writers call, and what they raise.

A writer appends a message to bytes. The counterpart of `wire.reading`: a field that the class lacks
is sent with Kafka's default, one that the version lacks is left out. Whether it may be left out is
decided in `wire.differences`. A value that its field has no room for raises `CannotExpress`, which
names the field, before anything of the message can have been sent.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Any

from wire.layout import STRING_BYTES_MAX
from wire.varint import uvarint

__all__ = ["NOT_FITTING", "WRITING", "CannotExpress", "Sink", "Writer", "number_arrays"]

_SPLICE_BYTES_MIN = 4096  # below that, copying records costs less than one more buffer
_SHORT_CHARS = 64
_SHORT_ELEMENTS = 16
_ARRAYS_KEPT = 1 << 14  # combinations of replicas, ISR and so on
_INT16 = Struct(">h")
_INT32 = Struct(">i")

# What a generated writer fails with at a value that does not fit, or is of another type.
NOT_FITTING = (struct_error, TypeError, AttributeError, OverflowError, UnicodeEncodeError)


class CannotExpress(ValueError):
    """The version has no room for a value, or no field for one that changes the meaning."""


class Sink(bytearray):
    """What has been written: `buffers()` gives it without having copied large record batches."""

    _full: Sequence[bytes] = ()

    def splice(self, records: bytes) -> None:
        """Add a buffer, as it is if it is large."""
        if len(records) < _SPLICE_BYTES_MIN:
            self.extend(records)
            return
        self._full = [*self._full, bytes(self), records]
        self.clear()

    def buffers(self) -> list[bytes]:
        """All of it, in order. Ends the use of the sink."""
        return [*self._full, bytes(self)] if self else list(self._full)


Writer = Callable[[Sink, Any], None]


class _TooLong(OverflowError):
    """A string that no version has room for."""


def _compact_string(text: str) -> bytes:
    if len(text) < _SHORT_CHARS:
        return _short_compact_string(text)
    content = _encoded(text)
    return uvarint(len(content) + 1) + content


def _legacy_string(text: str) -> bytes:
    if len(text) < _SHORT_CHARS:
        return _short_legacy_string(text)
    content = _encoded(text)
    return _INT16.pack(len(content)) + content


# Names of topics, hosts and listeners come again in every message.
@lru_cache(maxsize=4096)
def _short_compact_string(text: str) -> bytes:
    content = text.encode()
    return uvarint(len(content) + 1) + content


@lru_cache(maxsize=4096)
def _short_legacy_string(text: str) -> bytes:
    content = text.encode()
    return _INT16.pack(len(content)) + content


def _encoded(text: str) -> bytes:
    content = text.encode()
    if len(content) > STRING_BYTES_MAX:
        raise _TooLong(f"{len(content)} bytes, above {STRING_BYTES_MAX}")
    return content


@cache
def number_arrays(codes: str, flexible: bool) -> Callable[..., bytes]:
    """The writer of neighbouring arrays of numbers, one for each format in `codes`.

    The replicas and ISR of partitions repeat from partition to partition, so the bytes are kept,
    except those of a long array that stands alone.
    """

    def written(*arrays: Sequence[Any]) -> bytes:
        out = bytearray()
        for code, numbers in zip(codes, arrays, strict=True):
            count = len(numbers)
            out += uvarint(count + 1) if flexible else _INT32.pack(count)
            out += Struct(f">{count}{code}").pack(*numbers)
        return bytes(out)

    kept = lru_cache(maxsize=_ARRAYS_KEPT)(written)
    if len(codes) > 1:
        return kept
    return lambda numbers: (kept if len(numbers) < _SHORT_ELEMENTS else written)(numbers)


# The names by which generated writers call these.
WRITING = {
    "CannotExpress": CannotExpress,
    "NOT_FITTING": NOT_FITTING,
    "compact_string": _compact_string,
    "legacy_length": _INT32.pack,
    "legacy_string": _legacy_string,
    "uvarint": uvarint,
}
