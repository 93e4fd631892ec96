"""The screen of a terminal, as far as our output needs one: what stands where, and in which style.

Lines that ran over the right edge are known: a terminal breaks them anywhere.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

__all__ = ["PLAIN", "Screen", "Style"]

_PIECE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([\r\n\b])|([^\x1b\r\n\b]+)|\x1b(.)")
_SECOND = "?1049"  # the screen that `top` draws on
_TAB = 8


@dataclass(frozen=True, slots=True)
class Style:
    is_bold: bool = False
    is_dim: bool = False
    is_reverse: bool = False
    colour: int | None = None  # 1 red, 2 green, 3 yellow, ... as SGR 30 to 37 have them


PLAIN = Style()
_Row = list[tuple[str, Style]]


@dataclass(slots=True)
class Screen:
    columns: int = 80
    rows: int = 24
    overrun: set[int] = field(default_factory=set)  # rows that go on in the next one, not scrolled
    cells: list[_Row] = field(default_factory=list)
    _row: int = 0
    _column: int = 0
    _style: Style = PLAIN
    _first: tuple[list[_Row], int, int] | None = None  # while the second one is shown

    def __post_init__(self) -> None:
        self.cells = self._empty(self.rows)

    def feed(self, text: str) -> None:
        for parameters, command, control, words, other in _PIECE.findall(text):
            if command:
                self._obey(parameters, command)
            elif control:
                self._control(control)
            elif not other:
                for character in words:
                    self._write(character)

    def lines(self) -> list[str]:
        return ["".join(character for character, _ in row).rstrip() for row in self.cells]

    def runs(self) -> Iterator[tuple[int, int, str, Style]]:
        """Row, column, text and style of everything that is not blank."""
        for number, row in enumerate(self.cells):
            column = 0
            for style, some in groupby(row, key=lambda cell: cell[1]):
                text = "".join(character for character, _ in some)
                if text.strip() or style.is_reverse:
                    yield number, column, text, style
                column += len(text)

    def _empty(self, count: int) -> list[_Row]:
        return [[(" ", PLAIN)] * self.columns for _ in range(count)]

    def _write(self, character: str) -> None:
        if character == "\t":
            self._column = min((self._column // _TAB + 1) * _TAB, self.columns - 1)
            return
        if not character.isprintable():
            return
        if self._column == self.columns:
            self.overrun.add(self._row)
            self._column = 0
            self._down()
        self.cells[self._row][self._column] = (character, self._style)
        self._column += 1

    def _control(self, control: str) -> None:
        match control:
            case "\r":
                self._column = 0
            case "\n":
                self._down()
            case _:
                self._column = max(self._column - 1, 0)

    def _down(self) -> None:
        if self._row == self.rows - 1:
            self.cells = [*self.cells[1:], *self._empty(1)]
        else:
            self._row += 1

    def _obey(self, parameters: str, command: str) -> None:
        if parameters == _SECOND:
            self._turn(to_second=command == "h")
            return
        numbers = [int(number) for number in parameters.split(";") if number.isdecimal()]
        obey = _COMMANDS.get(command)
        if obey is not None:
            obey(self, numbers)

    def _turn(self, *, to_second: bool) -> None:
        if to_second:
            self._first = self.cells, self._row, self._column
            self.cells, self._row, self._column = self._empty(self.rows), 0, 0
        elif self._first is not None:
            self.cells, self._row, self._column = self._first
            self._first = None

    def _move(self, numbers: list[int]) -> None:
        row, column = [*numbers, 1, 1][:2]
        self._row, self._column = min(row, self.rows) - 1, min(column, self.columns) - 1

    def _up(self, numbers: list[int]) -> None:
        self._row = max(self._row - (numbers or [1])[0], 0)

    def _wipe_line(self, numbers: list[int]) -> None:
        begin = 0 if numbers == [2] else self._column
        self.overrun.discard(self._row)
        self.cells[self._row][begin:] = [(" ", PLAIN)] * (self.columns - begin)

    def _wipe(self, numbers: list[int]) -> None:
        self._wipe_line(numbers)
        begin = 0 if numbers == [2] else self._row + 1
        self.cells[begin:] = self._empty(self.rows - begin)

    def _dress(self, numbers: list[int]) -> None:
        for number in numbers or [0]:
            self._style = _dressed(self._style, number)


def _dressed(style: Style, number: int) -> Style:
    match number:
        case 0:
            return PLAIN
        case 1:
            return replace(style, is_bold=True)
        case 2:
            return replace(style, is_dim=True)
        case 7:
            return replace(style, is_reverse=True)
        case _ if number in range(30, 38):
            return replace(style, colour=number - 30)
        case _:
            return style


_COMMANDS: dict[str, Callable[[Screen, list[int]], None]] = {
    "A": Screen._up,
    "H": Screen._move,
    "J": Screen._wipe,
    "K": Screen._wipe_line,
    "m": Screen._dress,
}
