"""Tables in text, with the columns under each other."""

from collections.abc import Sequence

__all__ = ["table"]


def table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Without blanks at the ends of lines; an empty line would end a block."""
    cells = [list(heading), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
