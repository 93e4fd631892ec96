"""A terminal's screen as SVG: text, so that it is small and can be searched."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from tests.recordings.screen import Screen, Style

__all__ = ["svg"]

_CELL_WIDTH, _CELL_HEIGHT, _FONT_SIZE = 8.4, 18, 14
_MARGIN, _BAR, _TITLE_X = 14, 34, 76
_BACK, _FRONT, _TITLE = "#161b22", "#e6edf3", "#8b949e"
_COLOURS = ("#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", _FRONT)
_FONTS = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def svg(screen: Screen, title: str) -> str:
    width = screen.columns * _CELL_WIDTH + 2 * _MARGIN
    rows = max((row for row, *_ in screen.runs()), default=0) + 1
    height = rows * _CELL_HEIGHT + _BAR + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"'
        f' viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{_BACK}"/>',
        *(f'<circle cx="{20 + 18 * place}" cy="17" r="5" fill="#484f58"/>' for place in range(3)),
        f'<g font-family="{_FONTS}" font-size="{_FONT_SIZE}" fill="{_FRONT}">',
        f'<text x="{_TITLE_X}" y="22" fill="{_TITLE}">{escape(title)}</text>',
        *_drawn(screen),
        "</g>",
        "</svg>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _drawn(screen: Screen) -> Iterator[str]:
    for row, column, text, style in screen.runs():
        blank = 0 if style.is_reverse else len(text) - len(text.lstrip())
        x = _MARGIN + (column + blank) * _CELL_WIDTH
        y = _BAR + row * _CELL_HEIGHT
        shown = text if style.is_reverse else text.strip()
        length = len(shown) * _CELL_WIDTH
        if style.is_reverse:
            yield (
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{_CELL_HEIGHT}"'
                f' fill="{_FRONT}"/>'
            )
        yield (
            f'<text x="{x:.1f}" y="{y + _FONT_SIZE}" textLength="{length:.1f}"{_look(style)}'
            f' xml:space="preserve">{escape(shown)}</text>'  # browsers do not inherit it
        )


def _look(style: Style) -> str:
    colour = _FRONT if style.colour is None else _COLOURS[style.colour]
    if style.is_reverse:
        colour = _BACK
    look = "" if colour == _FRONT else f' fill="{colour}"'
    look += ' font-weight="bold"' if style.is_bold else ""
    return look + (' opacity="0.7"' if style.is_dim else "")
