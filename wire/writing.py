"""Canonical messages to bytes: a writer is compiled once for a layout and a canonical class.

The counterpart of `wire.reading`: a field that the class lacks is sent with Kafka's default, one
that the version lacks is left out. Whether it may be left out is decided in `wire.differences`.
"""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from itertools import groupby
from operator import attrgetter
from struct import Struct
from typing import Any
from uuid import UUID

from wire.differences import Rules
from wire.primitives import ZERO_UUID
from wire.schema import FIXED_FORMATS, EntityLayout, FieldLayout, element_type
from wire.struct_arrays import RowsWriter, rows_writer
from wire.varint import uvarint

__all__ = ["CannotExpress", "Sink", "Writer", "entity_writer"]

_SPLICE_BYTES_MIN = 4096  # below that, copying records costs less than one more buffer
_INT16 = Struct(">h")
_INT32 = Struct(">i")


class Sink(bytearray):
    """What has been written: `buffers()` gives it without having copied large record batches."""

    def __init__(self, start: bytes = b"") -> None:
        super().__init__(start)
        self._full: list[bytes] = []

    def splice(self, records: bytes) -> None:
        """Add a buffer as it is."""
        self._full.append(bytes(self))
        self._full.append(records)
        self.clear()

    def buffers(self) -> list[bytes]:
        """All of it, in order. Ends the use of the sink."""
        return [*self._full, bytes(self)] if self else self._full


Writer = Callable[[Sink, Any], None]
_Source = Callable[[Any], Any]


class CannotExpress(ValueError):
    """The version lacks a field that changes the meaning of this message."""


def entity_writer(layout: EntityLayout, canonical: Any, rules: Rules) -> Writer:
    """A writer of `canonical`; it raises CannotExpress for what the version cannot say."""
    known = {field.name: field for field in fields(canonical)}

    def writer_of(field: FieldLayout) -> Writer:
        element = rules.element(layout.name, field.name)
        if field.name in known:
            element = element_type(known[field.name].type)
        return _field_writer(field, layout.flexible, element, rules)

    def source_of(field: FieldLayout) -> _Source | None:
        replaced = rules.source(layout.name, field.name)
        if replaced is not None:
            return replaced
        return attrgetter(field.name) if field.name in known else None

    def is_plain(field: FieldLayout) -> bool:
        return field.name in known and rules.source(layout.name, field.name) is None

    tagged = [
        (field.tag or 0, source, writer_of(field), _absent_value(field, known[field.name]))
        for field in layout.tagged
        if (source := source_of(field)) is not None
    ]
    steps = (
        *_checks(layout, known, rules.must_arrive(layout.name)),
        *_steps(layout, writer_of, source_of, is_plain),
    )
    return _join(steps, tagged, layout.flexible)


def _checks(layout: EntityLayout, known: dict[str, Any], names: Sequence[str]) -> list[Writer]:
    sent = {field.name for field in layout.fields + layout.tagged}
    return [_check(layout, name, known[name].default) for name in names if name not in sent]


def _check(layout: EntityLayout, name: str, default: Any) -> Writer:
    def check(_: Sink, message: Any) -> None:
        value = getattr(message, name)
        if value != default:
            raise CannotExpress(f"this version of {layout.name} has no {name}, here {value!r}")

    return check


def _join(steps: Sequence[Writer], tagged: Sequence[Any], flexible: bool) -> Writer:
    def write(out: Sink, message: Any) -> None:
        for step in steps:
            step(out, message)

    def write_flexible(out: Sink, message: Any) -> None:
        for step in steps:
            step(out, message)
        out.append(0)

    def write_tagged(out: Sink, message: Any) -> None:
        for step in steps:
            step(out, message)
        _append_tagged_fields(out, message, tagged)

    if not flexible:
        return write
    return write_tagged if tagged else write_flexible


def _absent_value(field: FieldLayout, known: Any) -> Any:
    """A tagged field with this value is not sent: its default, in canonical form."""
    return field.default if known.default is MISSING else known.default


def _append_tagged_fields(out: Sink, message: Any, tagged: Sequence[Any]) -> None:
    count = 0
    body = bytearray()
    for tag, source, write, absent in tagged:
        value = source(message)
        if value is absent or value == absent:
            continue
        count += 1
        one = Sink()
        write(one, value)
        body += uvarint(tag)
        body += uvarint(len(one))
        body += one
    out += uvarint(count)
    out += body


def _steps(
    layout: EntityLayout,
    writer_of: Callable[[FieldLayout], Writer],
    source_of: Callable[[FieldLayout], _Source | None],
    is_plain: Callable[[FieldLayout], bool],
) -> tuple[Writer, ...]:
    """Neighbours of fixed size that are plain attributes are packed together."""

    def is_packed(field: FieldLayout) -> bool:
        return field.fixed_format is not None and is_plain(field)

    steps: list[Writer] = []
    for is_run, group in groupby(layout.fields, is_packed):
        run = list(group)
        if is_run:
            steps.append(_run_step(run))
        else:
            steps += [_field_step(field, writer_of(field), source_of(field)) for field in run]
    return tuple(steps)


def _run_step(run: list[FieldLayout]) -> Writer:
    pack = Struct(">" + "".join(field.fixed_format or "" for field in run)).pack
    if len(run) == 1:
        get_one = attrgetter(run[0].name)

        def step_one(out: Sink, message: Any) -> None:
            out += pack(get_one(message))

        return step_one

    get_all = attrgetter(*(field.name for field in run))

    def step(out: Sink, message: Any) -> None:
        out += pack(*get_all(message))

    return step


def _field_step(field: FieldLayout, write: Writer, source: _Source | None) -> Writer:
    if source is None:
        constant = Sink()
        write(constant, field.default)
        sent = bytes(constant)

        def step_constant(out: Sink, _: Any) -> None:
            out += sent

        return step_constant

    def step(out: Sink, message: Any) -> None:
        write(out, source(message))

    return step


# --- one field -----------------------------------------------------------------------------


def _field_writer(field: FieldLayout, flexible: bool, element: Any, rules: Rules) -> Writer:
    one = _element_writer(field, flexible, element, rules)
    if field.is_array:
        return _array_writer(field, flexible, _rows_writer(field, element, rules) or _each(one))
    if field.kind == "entity" and field.nullable and field.tag is None:
        return _nullable_entity_writer(one)
    return one


def _element_writer(field: FieldLayout, flexible: bool, element: Any, rules: Rules) -> Writer:
    match field.kind:
        case "entity":
            assert field.entity is not None, field
            if element is None:  # only its default is ever sent: null, or no elements
                return _never
            return entity_writer(field.entity, element, rules)
        case "uuid":
            return _append_uuid
        case "string":
            return _string_writer(field, flexible)
        case "bytes" | "records":
            return _bytes_writer(field, flexible)
        case kind:
            return _fixed_writer(kind)


def _never(_: Sink, value: Any) -> None:
    raise AssertionError(f"no canonical form for {value!r}")


def _fixed_writer(kind: str) -> Writer:
    pack = Struct(">" + FIXED_FORMATS[kind]).pack

    def write(out: Sink, value: Any) -> None:
        out += pack(value)

    return write


def _append_uuid(out: Sink, value: UUID | None) -> None:
    out += (value or ZERO_UUID).bytes


def _string_writer(field: FieldLayout, flexible: bool) -> Writer:
    """A null where the version knows none is sent as the empty string."""
    nullable = field.nullable and not field.is_array

    def write(out: Sink, value: str | None) -> None:
        if value is None and nullable:
            out += b"\0" if flexible else b"\xff\xff"
            return
        text = (value or "").encode()
        if flexible:
            out += uvarint(len(text) + 1)
        else:
            out += _INT16.pack(len(text))
        out += text

    return write


def _bytes_writer(field: FieldLayout, flexible: bool) -> Writer:
    nullable = field.nullable and not field.is_array

    def write(out: Sink, value: bytes | None) -> None:
        if value is None and nullable:
            out += b"\0" if flexible else b"\xff\xff\xff\xff"
            return
        content = value or b""
        if flexible:
            out += uvarint(len(content) + 1)
        else:
            out += _INT32.pack(len(content))
        if len(content) >= _SPLICE_BYTES_MIN:
            out.splice(content)
        else:
            out += content

    return write


def _rows_writer(field: FieldLayout, element: Any, rules: Rules) -> RowsWriter | None:
    """The fast way for long arrays of small structs, if this is one."""
    if field.entity is None or element is None or rules.must_arrive(field.entity.name):
        return None
    entity = field.entity.name
    known = {member.name for member in fields(element)}
    return rows_writer(
        field.entity,
        lambda member: member.name in known and rules.source(entity, member.name) is None,
    )


def _each(one: Writer) -> Writer:
    def write(out: Sink, elements: Sequence[Any]) -> None:
        for element in elements:
            one(out, element)

    return write


def _array_writer(field: FieldLayout, flexible: bool, rows: Any) -> Writer:
    """Likewise a null array is sent as an empty one where the version knows no null."""

    def write(out: Sink, elements: Sequence[Any] | None) -> None:
        if elements is None and field.nullable:
            out += b"\0" if flexible else b"\xff\xff\xff\xff"
            return
        elements = elements or ()
        if flexible:
            out += uvarint(len(elements) + 1)
        else:
            out += _INT32.pack(len(elements))
        rows(out, elements)

    return write


def _nullable_entity_writer(one: Writer) -> Writer:
    def write(out: Sink, value: Any) -> None:
        if value is None:
            out += b"\xff"
            return
        out.append(1)
        one(out, value)

    return write
