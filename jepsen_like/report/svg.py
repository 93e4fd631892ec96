"""A picture as one SVG that needs nothing else: texts, bars and lines, from top to bottom. Pure.

Nobody measures text here, so it is taken to be as wide as in DejaVu Sans, which is wider than what
a browser, an office program or resvg is likely to have in its place: what fits by this measure fits
there. Longer texts are wrapped, and a word that is longer than a line is cut. Colours are those of
the pages on a light ground, since a picture cannot know where it is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["COLOURS", "Drawing", "lines_of", "shortened", "width_of"]

COLOURS: Mapping[str, str] = {
    "page": "#f7f7f5",
    "text": "#1a1d21",
    "soft": "#59616b",
    "line": "#d8dce0",
    "grid": "#e8ebee",
    "head": "#12355b",
    "bad": "#c0152f",
    "good": "#1f7a45",
    "warn": "#8a5a00",
}
_FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
_NARROW, _WIDE = frozenset(" .,:;!|'ijl()[]/-"), frozenset("mwMWOQ@%+=<>~#&^")
_OF_AN_EM = 0.66  # other small letters, and digits
_OF_AN_EM_NARROW, _OF_AN_EM_LARGE, _OF_AN_EM_WIDE = 0.42, 0.79, 1.01
_BOLD = 1.13
_LINE = 1.3  # of the size


def width_of(text: str, size: float, *, is_bold: bool = False) -> float:
    """At most so wide, in the units of the size."""
    return sum(map(_of_an_em, text)) * size * (_BOLD if is_bold else 1.0)


def _of_an_em(sign: str) -> float:
    if sign in _NARROW:
        return _OF_AN_EM_NARROW
    if sign in _WIDE or not sign.isascii():
        return _OF_AN_EM_WIDE
    return _OF_AN_EM_LARGE if sign.isupper() else _OF_AN_EM


def lines_of(text: str, width: float, size: float, *, is_bold: bool = False) -> list[str]:
    """Wraps at spaces; none of the lines is wider than `width`, which a letter fits into."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}".lstrip()
        if width_of(longer, size, is_bold=is_bold) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *whole, line = _pieces(word, width, size, is_bold)
        lines += whole
    return [*lines, line] if line else lines


def _pieces(word: str, width: float, size: float, is_bold: bool) -> Iterator[str]:
    piece = ""
    for sign in word:
        if piece and width_of(piece + sign, size, is_bold=is_bold) > width:
            yield piece
            piece = ""
        piece += sign
    yield piece


def shortened(text: str, width: float, size: float, *, is_bold: bool = False) -> str:
    """The first line of it, with an ellipsis if that is not all."""
    text = " ".join(text.split())
    if width_of(text, size, is_bold=is_bold) <= width:
        return text
    room = width - width_of("...", size, is_bold=is_bold)
    return next(_pieces(text, room, size, is_bold)).rstrip() + "..."


@dataclass(slots=True)
class Drawing:
    """`y` is where the next thing begins; who draws at a place of their own moves it."""

    width: float
    margin: float = 40.0
    y: float = 40.0
    _parts: list[str] = field(default_factory=list)

    @property
    def room(self) -> float:
        return self.width - 2 * self.margin

    def paragraph(
        self, text: str, size: float, *, colour: str = "text", is_bold: bool = False
    ) -> None:
        for line in lines_of(text, self.room, size, is_bold=is_bold):
            self.y += size * _LINE
            self.text(line, self.margin, self.y - 0.3 * size, size, colour=colour, is_bold=is_bold)
        self.y += 0.3 * size

    def text(
        self, text: str, x: float, y: float, size: float, *, colour: str = "text",
        is_bold: bool = False, anchor: str = "start",
    ) -> None:  # fmt: skip
        """`y` is the base line."""
        weight = ' font-weight="bold"' if is_bold else ""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{_colour(colour)}"'
            f"{weight}{end}>{escape(_plain(text))}</text>"
        )

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{height:.1f}" '
            f'fill="{_colour(colour)}"/>'
        )

    def hollow_bar(self, x: float, y: float, width: float, height: float) -> None:
        self._parts.append(
            f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{max(1.0, width - 2):.1f}" '
            f'height="{height - 2:.1f}" fill="#ffffff" stroke="{_colour("soft")}" '
            'stroke-width="1.5" stroke-dasharray="4 3"/>'
        )

    def path(self, path: str, colour: str = "text") -> None:
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{_colour(colour)}" stroke-width="1.5"/>'
        )

    def rule(self) -> None:
        """A line across, and room around it."""
        self.y += 14
        self.path(f"M{self.margin:.0f} {self.y:.0f}H{self.width - self.margin:.0f}", "line")
        self.y += 10

    def key(self, entries: Sequence[tuple[str, str]]) -> None:
        """A legend: names and colours; an empty colour is a hollow bar."""
        size, x = 13.0, self.margin
        self.y += 8
        for name, colour in entries:
            end = x + 30 + width_of(name, size) + 18
            if end > self.width - self.margin and x > self.margin:
                x, self.y = self.margin, self.y + 20
            if colour:
                self.bar(x, self.y, 24, 12, colour)
            else:
                self.hollow_bar(x, self.y, 24, 12)
            self.text(name, x + 30, self.y + 11, size, colour="soft")
            x += end - x
        self.y += 24

    def svg(self, title: str) -> str:
        height = self.y + self.margin
        whole = f'width="{self.width:.0f}" height="{height:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {whole} role="img" '
            f'viewBox="0 0 {self.width:.0f} {height:.0f}" font-family="{_FONT}">'
            f"<title>{escape(_plain(title))}</title>"
            f'<rect {whole} fill="{_colour("page")}"/>{"".join(self._parts)}</svg>\n'
        )


def _colour(name: str) -> str:
    return COLOURS.get(name, name)


def _plain(text: str) -> str:
    """Without what XML does not allow, even as a reference."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
