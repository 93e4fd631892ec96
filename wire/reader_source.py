"""The source of a reader, generated from a layout and a canonical class.

Straight-line code: neighbours of fixed size, and the count or length behind them, are unpacked
together; nested structs are read in place. Fields are matched by name. A field that the layout has
and the class lacks is read and dropped; one that the class has and the layout lacks takes its
default. The steps that are called by name are in `wire.reading`.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from struct import Struct, calcsize, unpack_from
from typing import Any

from wire.layout import (
    ELEMENTS_MAX,
    FIXED_FORMATS,
    STRING_BYTES_MAX,
    EntityLayout,
    FieldLayout,
    element_size_min,
)
from wire.message import element_type, fields_of
from wire.reading import READING, Reader
from wire.rules import Rules
from wire.source import Source

__all__ = ["compiled_reader", "reader_source"]


def compiled_reader(layout: EntityLayout, canonical: type, rules: Rules) -> Reader:
    """The reader of a layout as messages of a class, see `wire.reading`."""
    source = reader_source(layout, canonical, rules)
    read: Reader = source.compiled("read", f"read {layout.name} version {layout.version}")
    return read


def reader_source(layout: EntityLayout, canonical: type, rules: Rules) -> Source:
    """The function `read(buffer, position)`: a message, and the position behind it."""
    source = Source()
    source.names.update(READING)
    generator = _ReaderSource(source, rules)
    for name in ("buffer", "position", "size", "end", "count", "length", "error"):
        source.local(name)
    with source.block("def read(buffer, position):"):
        source.line("size = len(buffer)")
        with source.block("try:"):
            message = generator.entity(layout, canonical)
            source.line(f"message = {message}")
        with source.block("except NOT_WHOLE as error:"):
            source.line("raise unreadable(buffer, error) from error")
        with source.block("if position > size:"):
            source.line("raise ended(size)")
        source.line("return message, position")
    return source


class _ReaderSource:
    """Adds the code that reads a value, and returns the expression for what was read."""

    def __init__(self, source: Source, rules: Rules) -> None:
        self._source = source
        self._rules = rules
        self._run: list[tuple[str, str]] = []  # struct format and local name; "" is dropped

    # --- structs ----------------------------------------------------------------------------

    def entity(self, layout: EntityLayout, canonical: Any) -> str:
        """A value of `canonical`; if that is None, it is read and dropped."""
        known = {} if canonical is None else fields_of(canonical)
        adjust = self._rules.of(layout.name).read
        wanted = {
            field.name
            for field in layout.fields + layout.tagged
            if field.name in known or (adjust is not None and canonical is not None)
        }
        values = {
            field.name: self._field(field, layout, known, is_kept=field.name in wanted)
            for field in layout.fields
        }
        if layout.flexible:
            values |= self._tagged_fields(layout, known, wanted)
        self._flush()
        if canonical is None:
            return "None"
        given = {name: value for name, value in values.items() if name in wanted}
        if adjust is not None:
            return self._adjusted(layout, canonical, adjust, given)
        arguments = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"{self._source.constant(canonical.__name__, canonical)}({arguments})"

    def _adjusted(
        self, layout: EntityLayout, canonical: Any, adjust: Any, given: Mapping[str, str]
    ) -> str:
        lacking = [name for name in given if name not in fields_of(canonical)]

        def adjusted(**values: Any) -> Any:
            values |= adjust(values)
            for name in lacking:
                values.pop(name, None)
            return canonical(**values)

        arguments = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"{self._source.constant(f'adjusted_{layout.name}', adjusted)}({arguments})"

    def _tagged_fields(
        self, layout: EntityLayout, known: Mapping[str, Any], wanted: set[str]
    ) -> dict[str, str]:
        source = self._source
        tags = source.local("tags")
        self._run.append(("B", tags))
        self._flush()
        if not layout.tagged:
            with source.block(f"if {tags}:"):
                if self._rules.skips_unknown_tags:
                    source.line("position = skip_tags(buffer, position - 1)")
                else:
                    source.line(f"raise UnknownTag({layout.name!r})")
            return {}
        values = {}
        for field in layout.tagged:
            if field.name in wanted:
                values[field.name] = local = source.local(field.name)
                default = known[field.name].default if field.name in known else field.default
                source.line(f"{local} = {self._source.literal(field.name, default)}")
        with source.block(f"if {tags}:"):
            with source.block(f"if {tags} > 127:"):
                source.line(f"{tags}, position = read_uvarint(buffer, position - 1)")
            with source.block(f"for _ in range({tags}):"):
                self._tagged_field(layout, known, values)
        return values

    def _tagged_field(
        self, layout: EntityLayout, known: Mapping[str, Any], values: Mapping[str, str]
    ) -> None:
        source = self._source
        tag, end = source.local("tag"), source.local("tag_end")
        source.line(f"{tag}, {end} = buffer[position], position + 2 + buffer[position + 1]")
        source.line("position += 2")
        with source.block(f"if {tag} > 127 or {end} > position + 127 or {end} > size:"):
            source.line(f"{tag}, position, {end} = read_tag(buffer, position - 2)")
        word = "if"
        for field in layout.tagged:
            with source.block(f"{word} {tag} == {field.tag}:"):
                is_kept = field.name in values
                value = self._field(field, layout, known, is_kept=is_kept)
                self._flush()
                if is_kept:
                    source.line(f"{values[field.name]} = {value}")
                with source.block(f"if position != {end}:"):
                    source.line(f"raise bad_tag({field.name!r}, position, {end})")
            word = "elif"
        with source.block("else:"):
            if self._rules.skips_unknown_tags:
                source.line(f"position = {end}")
            else:
                source.line(f"raise UnknownTag({layout.name!r})")

    # --- fields -----------------------------------------------------------------------------

    def _field(
        self, field: FieldLayout, layout: EntityLayout, known: Mapping[str, Any], *, is_kept: bool
    ) -> str:
        element = self._rules.of(layout.name).elements.get(field.name)
        if field.name in known:
            element = element_type(known[field.name].type)
        if not is_kept:
            element = None
        if field.is_array:
            return self._array(field, layout.flexible, element)
        if field.has_marker:
            return self._nullable_entity(field, element)
        return self._element(field, layout.flexible, element, is_kept=is_kept)

    def _element(self, field: FieldLayout, flexible: bool, element: Any, *, is_kept: bool) -> str:
        if field.entity is not None:
            return self.entity(field.entity, element)
        if field.is_sized:
            return self._sized(field, flexible)
        local = self._source.local(field.name) if is_kept else ""
        if field.kind == "uuid":
            self._run.append(("16s", local))
            return f"uuid({local})"
        self._run.append((FIXED_FORMATS[field.kind], local))
        if field.kind == "error_code":
            return f"ERROR_CODES.get({local}, UNKNOWN_ERROR)"
        return local

    def _sized(self, field: FieldLayout, flexible: bool) -> str:
        source = self._source
        is_text = field.kind == "string"
        local = source.local(field.name)
        self._length("length", flexible, "h" if is_text else "i")
        with ExitStack() as stack:
            if field.nullable and not field.is_array:
                with source.block("if length == -1:"):
                    source.line(f"{local} = None")
                stack.enter_context(source.block("else:"))
            source.line("end = position + length")
            bounds = f"0 <= length <= {STRING_BYTES_MAX}" if is_text else "0 <= length"
            with source.block(f"if not {bounds} or end > size:"):
                source.line(f"raise bad_size({field.name!r}, length, size - position)")
            decode = ".decode()" if is_text else ""
            source.line(f"{local} = buffer[position:end]{decode}")
            source.line("position = end")
        return local

    def _nullable_entity(self, field: FieldLayout, element: Any) -> str:
        source = self._source
        assert field.entity is not None, field
        local = source.local(field.name)
        self._run.append(("b", local))
        self._flush()
        with source.block(f"if {local} < 0:"):
            source.line(f"{local} = None")
        with source.block("else:"):
            source.line(f"{local} = {self.entity(field.entity, element)}")
        return local

    def _array(self, field: FieldLayout, flexible: bool, element: Any) -> str:
        source = self._source
        local = source.local(field.name)
        self._length("count", flexible, "i")
        with ExitStack() as stack:
            if field.nullable:
                with source.block("if count == -1:"):
                    source.line(f"{local} = None")
                stack.enter_context(source.block("else:"))
            size = max(element_size_min(field), 1)
            taken = "count" if size == 1 else f"{size} * count"
            with source.block(f"if not 0 <= count <= {ELEMENTS_MAX} or {taken} > size - position:"):
                source.line(f"raise bad_count({field.name!r}, count, size - position)")
            if field.kind in FIXED_FORMATS:
                self._numbers(field, local)
            else:
                self._elements(field, flexible, element, local)
        return local

    def _numbers(self, field: FieldLayout, local: str) -> None:
        code = FIXED_FORMATS[field.kind]
        unpack = self._source.constant("unpack_from", unpack_from)
        self._source.line(f'{local} = {unpack}(f">{{count}}{code}", buffer, position)')
        self._source.line(f"position += {calcsize('>' + code)} * count")
        if field.kind == "error_code":
            codes = f"ERROR_CODES.get(code, UNKNOWN_ERROR) for code in {local}"
            self._source.line(f"{local} = tuple([{codes}])")

    def _elements(self, field: FieldLayout, flexible: bool, element: Any, local: str) -> None:
        source = self._source
        source.line(f"{local} = []")
        with source.block("for _ in range(count):"):
            value = self._element(field, flexible, element, is_kept=True)
            self._flush()
            source.line(f"{local}.append({value})")
        source.line(f"{local} = tuple({local})")

    # --- runs of fixed size -----------------------------------------------------------------

    def _length(self, local: str, flexible: bool, code: str) -> None:
        """Lengths count from one if flexible and are plain if not: -1 is null in both."""
        self._run.append(("B" if flexible else code, local))
        self._flush()
        if flexible:
            with self._source.block(f"if {local} > 127:"):
                self._source.line(f"{local}, position = read_uvarint(buffer, position - 1)")
            self._source.line(f"{local} -= 1")

    def _flush(self) -> None:
        """Unpack what is waiting."""
        run, self._run = self._run, []
        if not run:
            return
        if [code for code, _ in run] == ["B"]:
            self._source.line(f"{run[0][1]} = buffer[position]")
            self._source.line("position += 1")
            return
        codes = "".join(code if local else f"{calcsize('>' + code)}x" for code, local in run)
        unpack, width = _unpacker(codes)
        locals_ = [local for _, local in run if local]
        if locals_:
            name = self._source.constant(f"unpack_{codes.replace('?', 'o')}", unpack)
            targets = ", ".join(locals_) + ("," if len(locals_) == 1 else "")
            self._source.line(f"{targets} = {name}(buffer, position)")
        self._source.line(f"position += {width}")


@cache
def _unpacker(codes: str) -> tuple[Any, int]:
    """The function, and how many bytes it takes."""
    struct = Struct(">" + codes)
    return struct.unpack_from, struct.size
