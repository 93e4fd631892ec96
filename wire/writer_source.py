"""The source of a writer, generated from a layout and a canonical class.

Straight-line code: neighbours of fixed size and constants are packed together; nested structs are
written in place, but for those of arrays whose bytes are kept (`wire.kept_arrays`). The steps that
are called by name are in `wire.writing`.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from itertools import takewhile
from struct import Struct, calcsize, pack
from typing import Any

from wire.kept_arrays import may_be_kept, write_kept
from wire.layout import FIXED_FORMATS, EntityLayout, FieldLayout
from wire.message import REQUIRED, element_type, fields_of, is_nullable
from wire.primitives import ZERO_UUID
from wire.rules import Rules
from wire.source import Source
from wire.varint import uvarint
from wire.writing import WRITING, Writer, misfit, number_arrays

__all__ = ["compiled_writer", "writer_source"]

_NO_TAGS = b"\0"  # their count


def compiled_writer(layout: EntityLayout, canonical: type, rules: Rules) -> Writer:
    """The writer of a layout, from messages of a class, see `wire.writing`."""
    source = writer_source(layout, canonical, rules)
    write: Writer = source.compiled("write", f"write {layout.name} version {layout.version}")
    return write


def writer_source(layout: EntityLayout, canonical: type, rules: Rules) -> Source:
    """The function `write(out, message)`. It raises CannotExpress for what does not fit."""
    source = Source()
    source.names.update(WRITING)
    for name in ("out", "message", "error"):
        source.local(name)
    generator = _WriterSource(source, rules)

    def why_not(message: Any) -> str:
        return misfit(message, layout, rules)

    with source.block("def write(out, message):"):
        with source.block("try:"):
            generator.entity(layout, canonical, "message")
            generator.flush()
        with source.block("except NOT_FITTING as error:"):
            told = source.constant("why_not", why_not)
            source.line(f"raise CannotExpress({told}(message)) from error")
    return source


class _WriterSource:
    def __init__(self, source: Source, rules: Rules) -> None:
        self._source = source
        self._rules = rules
        self._out = "out"  # the name of what is appended to
        self._run: list[tuple[str, str]] = []  # struct format and expression; "" for zeros

    # --- structs ----------------------------------------------------------------------------

    def entity(self, layout: EntityLayout, canonical: Any, value: str) -> None:
        """Write `value`, which is the name of a variable with a `canonical`."""
        known = fields_of(canonical)
        self._checks(layout, canonical, value)
        fields = list(layout.fields)
        while fields:
            arrays = list(takewhile(self._is_numbers(layout, canonical), fields))
            if arrays:
                self._number_arrays(arrays, layout.flexible, value)
                fields = fields[len(arrays) :]
                continue
            field = fields.pop(0)
            source = self._rules.of(layout.name).write.get(field.name)
            if source is None and field.name not in known:
                self._constant(_default_bytes(field, layout.flexible))
                continue
            self._field(field, layout, canonical, self._value(field, source, value))
        if layout.flexible:
            self._tagged_fields(layout, canonical, value)

    def _checks(self, layout: EntityLayout, canonical: Any, value: str) -> None:
        known = fields_of(canonical)
        sent = {field.name for field in layout.fields + layout.tagged}
        for name in self._rules.checked(layout.name, [name for name in known if name not in sent]):
            default = self._source.literal(name, known[name].default)
            with self._source.block(f"if {value}.{name} != {default}:"):
                said = f"{layout.name} version {layout.version} has no {name}, here "
                self._source.line(f"raise CannotExpress({said!r} + repr({value}.{name}))")

    def _value(self, field: FieldLayout, source: Callable[[Any], Any] | None, value: str) -> str:
        """The expression for what is written as a field."""
        if source is None:
            return f"{value}.{field.name}"
        local = self._source.local(field.name)
        self._source.line(f"{local} = {self._source.constant(f'{field.name}_of', source)}({value})")
        return local

    def _tagged_fields(self, layout: EntityLayout, canonical: Any, value: str) -> None:
        known = fields_of(canonical)
        sent = [
            (field, self._value(field, self._rules.of(layout.name).write.get(field.name), value))
            for field in layout.tagged
            if field.name in known
        ]
        if not sent:
            self._constant(_NO_TAGS)
            return
        self.flush()
        source = self._source
        conditions = [self._is_given(each, known[each.name].default, said) for each, said in sent]
        with source.block(f"if {' or '.join(conditions)}:"):
            count, section = source.local("tags"), source.local("section")
            source.line(f"{count} = 0")
            source.line(f"{section} = bytearray()")
            for (field, said), condition in zip(sent, conditions, strict=True):
                with source.block(f"if {condition}:"):
                    source.line(f"{count} += 1")
                    self._tagged_field(field, layout, canonical, said, section)
            source.line(f"{self._out} += uvarint({count})")
            source.line(f"{self._out} += {section}")
        with source.block("else:"):
            source.line(f"{self._out} += {_NO_TAGS!r}")

    def _is_given(self, field: FieldLayout, default: Any, value: str) -> str:
        """The condition under which a tagged field is sent: it has not its default."""
        absent = field.default if default is REQUIRED else default
        literal = self._source.literal(field.name, absent)
        if absent is None:
            return f"{value} is not None"
        differs = f"{value} != {literal}"
        if literal in self._source.names:  # to compare objects costs a call
            return f"({value} is not {literal} and {differs})"
        return differs

    def _tagged_field(
        self, field: FieldLayout, layout: EntityLayout, canonical: Any, value: str, section: str
    ) -> None:
        source = self._source
        body, outer = source.local("body"), self._out
        source.line(f"{body} = bytearray()")
        self._out = body
        self._field(field, layout, canonical, value)
        self.flush()
        self._out = outer
        source.line(f"{section} += {uvarint(field.tag or 0)!r} + uvarint(len({body})) + {body}")

    # --- fields -----------------------------------------------------------------------------

    def _field(self, field: FieldLayout, layout: EntityLayout, canonical: Any, value: str) -> None:
        """A null where the version knows none is sent as an empty value."""
        known = fields_of(canonical).get(field.name)
        element = self._rules.of(layout.name).elements.get(field.name)
        if known is not None:
            element = element_type(known.type)
        with ExitStack() as stack:
            if field.has_null:
                value = self._held(field, value)
                self.flush()
                with self._source.block(f"if {value} is None:"):
                    self._constant(_null_bytes(field, layout.flexible))
                    self.flush()
                stack.enter_context(self._source.block("else:"))
            elif known is None or is_nullable(known.type):
                value = self._or_empty(field, value)
            if known is not None and may_be_kept(known.type):
                self._kept_array(field, layout.flexible, element, value)
            elif field.is_array:
                self._array(field, layout.flexible, element, value)
            else:
                if field.has_marker:
                    self._constant(b"\1")
                self._element(field, layout.flexible, element, value)
            if field.has_null:
                self.flush()

    def _held(self, field: FieldLayout, value: str) -> str:
        """A variable, so that the value is looked up once."""
        if "." not in value:
            return value
        local = self._source.local(field.name)
        self._source.line(f"{local} = {value}")
        return local

    def _or_empty(self, field: FieldLayout, value: str) -> str:
        if field.is_array:
            return f"({value} or ())"
        if field.is_sized:
            return f"({value} or {'' if field.kind == 'string' else b''!r})"
        if field.kind == "uuid":
            return f"({value} or {self._source.constant('ZERO_UUID', ZERO_UUID)})"
        return value

    def _element(self, field: FieldLayout, flexible: bool, element: Any, value: str) -> None:
        if field.entity is not None:
            assert element is not None, field
            self.entity(field.entity, element, self._held(field, value))
        elif field.is_sized:
            self._sized(field, flexible, value)
        elif field.kind == "uuid":
            self._run.append(("16s", f"{value}.int.to_bytes(16)"))
        else:
            self._run.append((FIXED_FORMATS[field.kind], value))

    def _sized(self, field: FieldLayout, flexible: bool, value: str) -> None:
        self.flush()
        form = "compact" if flexible else "legacy"
        if field.kind == "string":
            self._source.line(f"{self._out} += {form}_string({value})")
            return
        value = self._held(field, value)
        self._source.line(f"{self._out} += {_length_of(value, flexible)}")
        if field.kind == "records":
            self._source.line(f"{self._out}.splice({value})")
        else:
            self._source.line(f"{self._out} += {value}")

    def _array(self, field: FieldLayout, flexible: bool, element: Any, value: str) -> None:
        self.flush()
        source = self._source
        if field.kind in FIXED_FORMATS:
            source.line(f"{self._out} += {self._numbers_writer([field], flexible)}({value})")
            return
        items = self._counted(field, flexible, value)
        self._elements(field, flexible, element, items)

    def _kept_array(self, field: FieldLayout, flexible: bool, element: Any, value: str) -> None:
        """The elements have a function of their own, whose bytes `wire.kept_arrays` may have."""
        assert self._out == "out", field  # in a tagged field, no buffer could be spliced in
        self.flush()
        source = self._source
        items = self._counted(field, flexible, value)
        write, array = source.local(f"write_{field.name}"), source.local("array")
        with source.function(f"def {write}(out, {array}):"):
            self._elements(field, flexible, element, array)
        kept = source.constant("write_kept", write_kept)
        source.line(f"{kept}(out, {items}, {write})")

    def _counted(self, field: FieldLayout, flexible: bool, value: str) -> str:
        """Write the number of elements; returns a variable that holds them."""
        source = self._source
        items = source.local(field.name)
        if items != value:
            source.line(f"{items} = {value}")
        source.line(f"{self._out} += {_length_of(items, flexible)}")
        return items

    def _elements(self, field: FieldLayout, flexible: bool, element: Any, items: str) -> None:
        one = self._source.local(f"one_of_{field.name}")
        with self._source.block(f"for {one} in {items}:"):
            self._element(field, flexible, element, one)
            self.flush()

    def _is_numbers(self, layout: EntityLayout, canonical: Any) -> Callable[[FieldLayout], bool]:
        """Which fields are arrays of numbers, and neither null nor made of something else?"""
        known = fields_of(canonical)

        def is_numbers(field: FieldLayout) -> bool:
            return (
                field.is_array
                and field.kind in FIXED_FORMATS
                and field.name in known
                and not field.nullable
                and not is_nullable(known[field.name].type)
                and self._rules.of(layout.name).write.get(field.name) is None
            )

        return is_numbers

    def _number_arrays(self, fields: list[FieldLayout], flexible: bool, value: str) -> None:
        self.flush()
        name = self._numbers_writer(fields, flexible)
        arrays = ", ".join(f"{value}.{field.name}" for field in fields)
        self._source.line(f"{self._out} += {name}({arrays})")

    def _numbers_writer(self, fields: list[FieldLayout], flexible: bool) -> str:
        form = "compact" if flexible else "legacy"
        codes = "".join(FIXED_FORMATS[field.kind] for field in fields)
        return self._source.constant(f"{form}_arrays_{codes}", number_arrays(codes, flexible))

    # --- runs of fixed size -----------------------------------------------------------------

    def _constant(self, content: bytes) -> None:
        if any(content):
            self.flush()
            self._source.line(f"{self._out} += {content!r}")
        else:
            self._run.append((f"{len(content)}x", ""))

    def flush(self) -> None:
        """Pack what is waiting."""
        run, self._run = self._run, []
        codes = "".join(code for code, _ in run)
        values = [value for _, value in run if value]
        if values:
            name = self._source.constant(f"pack_{codes.replace('?', 'o')}", _packer(codes))
            self._source.line(f"{self._out} += {name}({', '.join(values)})")
        elif run:
            self._source.line(f"{self._out} += {bytes(calcsize('>' + codes))!r}")


@cache
def _packer(codes: str) -> Callable[..., bytes]:
    return Struct(">" + codes).pack


def _length_of(value: str, flexible: bool) -> str:
    return f"uvarint(len({value}) + 1)" if flexible else f"legacy_length(len({value}))"


def _null_bytes(field: FieldLayout, flexible: bool) -> bytes:
    """A struct that is not there follows a byte that says so (KIP-893)."""
    if field.has_marker:
        return b"\xff"
    if flexible:
        return b"\0"
    return b"\xff\xff" if field.kind == "string" and not field.is_array else b"\xff\xff\xff\xff"


def _default_bytes(field: FieldLayout, flexible: bool) -> bytes:
    """A field that the canonical message lacks is sent with Kafka's default."""
    default = field.default
    if field.is_array or field.is_sized:
        if default is None:
            return _null_bytes(field, flexible)
        content = default.encode() if isinstance(default, str) else bytes(default)
        if flexible:
            return uvarint(len(content) + 1) + content
        is_text = field.kind == "string" and not field.is_array
        return pack(">h" if is_text else ">i", len(content)) + content
    if field.kind == "uuid":
        content = default.bytes
        assert isinstance(content, bytes), field
        return content
    if field.entity is not None:
        assert default is None, field
        return _null_bytes(field, flexible)
    return pack(">" + FIXED_FORMATS[field.kind], default)
