"""Readers and writers: compiled from generated source, as `dataclasses` does for its methods.

`python -m wire.generated Fetch 17` prints the source.
"""

from typing import Any

from wire.layout import EntityLayout
from wire.reader_source import reader_source
from wire.reading import Reader
from wire.rules import Rules
from wire.source import Source
from wire.writer_source import writer_source
from wire.writing import Writer

__all__ = ["compiled_reader", "compiled_writer"]


def compiled_reader(layout: EntityLayout, canonical: type, rules: Rules) -> Reader:
    """The reader of a layout as messages of a class, see `wire.reading`."""
    read: Reader = _compiled(reader_source(layout, canonical, rules), "read", layout)
    return read


def compiled_writer(layout: EntityLayout, canonical: type, rules: Rules) -> Writer:
    """The writer of a layout, from messages of a class, see `wire.writing`."""
    write: Writer = _compiled(writer_source(layout, canonical, rules), "write", layout)
    return write


def _compiled(source: Source, name: str, layout: EntityLayout) -> Any:
    place = f"<{name} {layout.name} version {layout.version}>"
    names = dict(source.names)
    exec(compile(str(source), place, "exec"), names)  # noqa: S102  # source of our own making
    return names[name]
