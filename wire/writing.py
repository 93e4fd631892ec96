"""The steps that generated writers call, and the errors that they raise.

A writer appends a message to bytes, as a reader (`wire.reading`) takes one from them: a field that
the class lacks is sent with Kafka's default, one that the version lacks is left out. Whether it may
be left out is decided in `wire.differences`. A value that its field has no room for raises
`CannotExpress`, which names the field, before anything of the message can have been sent.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from struct import Struct, pack
from struct import error as struct_error
from typing import Any
from uuid import UUID

from wire.layout import FIXED_FORMATS, STRING_BYTES_MAX, EntityLayout, FieldLayout
from wire.rules import Rules
from wire.varint import uvarint

__all__ = ["WRITING", "CannotExpress", "Sink", "Writer", "misfit", "number_arrays"]

_SPLICE_BYTES_MIN = 4096  # below that, copying bytes costs less than one more buffer
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
    """The bytes written so far; `buffers()` does not copy large record batches or kept arrays."""

    _full: list[bytes] | None = None

    def splice(self, content: bytes) -> None:
        """Add a buffer, as it is if it is large."""
        if len(content) < _SPLICE_BYTES_MIN:
            self.extend(content)
            return
        if self._full is None:
            self._full = []
        self._full += (bytes(self), content)
        self.clear()

    def buffers(self) -> list[bytes]:
        """Returns all of it, in order, and ends the use of the sink."""
        full = self._full or []
        return [*full, bytes(self)] if self else full


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


# --- why a value does not fit ----------------------------------------------------------------


def misfit(message: Any, layout: EntityLayout, rules: Rules) -> str:
    """Explains a failure as "topics[0].partition is 2147483648, not an int32"."""
    found = next(_in_entity(message, layout, rules, ""), "a value is of another type")
    return f"{layout.name} version {layout.version}: {found}"


def _in_entity(value: Any, layout: EntityLayout, rules: Rules, path: str) -> Iterator[str]:
    for field in layout.fields + layout.tagged:
        source = rules.of(layout.name).write.get(field.name)
        if source is None and not hasattr(value, field.name):
            continue
        one = source(value) if source is not None else getattr(value, field.name)
        if one is not None or field.kind in FIXED_FORMATS:
            yield from _in_field(one, field, rules, f"{path}{field.name}")


def _in_field(value: Any, field: FieldLayout, rules: Rules, path: str) -> Iterator[str]:
    if not field.is_array:
        yield from _in_element(value, field, rules, path)
        return
    if not isinstance(value, tuple | list):
        yield f"{path} is {value!r}, not an array"
        return
    for index, element in enumerate(value):
        yield from _in_element(element, field, rules, f"{path}[{index}]")


def _in_element(value: Any, field: FieldLayout, rules: Rules, path: str) -> Iterator[str]:
    if field.entity is not None:
        yield from _in_entity(value, field.entity, rules, f"{path}.")
    elif field.kind == "string" and isinstance(value, str):
        size = len(value.encode(errors="replace"))
        if size > STRING_BYTES_MAX:
            yield f"{path} has {size} bytes, above {STRING_BYTES_MAX}"
    elif not _fits(value, field.kind):
        yield f"{path} is {value!r}, not of type {field.kind}"


def _fits(value: Any, kind: str) -> bool:
    if kind in FIXED_FORMATS:
        try:
            pack(">" + FIXED_FORMATS[kind], value)
        except struct_error:
            return False
        return True
    return isinstance(value, {"uuid": UUID, "string": str}.get(kind, bytes))
