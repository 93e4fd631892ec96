"""Fressian, the notation in which Jepsen's store keeps values: bytes to values.

A byte says what follows: a small number itself, or a string, a list, a tag with its parts.

    nil true 1 1.5 bigint "text"    None, bool, int, float, str
    bytes, lists, arrays            bytes, list
    keywords, symbols               their names: "name", "space/name"
    sets                            a list in an order that is the same for equal sets
    maps, records of Clojure        dict; a key is made hashable: a list in it becomes a tuple
    characters, uuids, uris, dates  str
    any other tag                   (tag, parts): block references, ratios, decimals

What was written before may be said again by its number: tags, and values that the writer chose.
Nothing is believed: neither a length, nor that what is said again stays small when it is told in
full. What tags stand for, see `fressian_tags`. Source: github.com/Datomic/fressian.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from jepsen_like.histories.history import MalformedHistory

__all__ = ["Fressian", "Tags"]

_DEPTH_MAX = 120  # a map in a map is two deeper
_IN_FULL = 64  # how many times longer a text may be that says nothing by its number
_OPEN = object()

_CLOSED_LIST, _OPEN_LIST, _END = 0xED, 0xEE, 0xFD
_BYTES_CHUNK, _BYTES = 0xD8, 0xD9
_STRINGS, _STRING_CHUNK, _STRING = range(0xDA, 0xE2), 0xE2, 0xE3
_LISTS, _LIST = range(0xE4, 0xEC), 0xEC

# By tag: how many parts it has, and what they make. Raises TypeError and ValueError.
Tags = Mapping[str, tuple[int, Callable[..., Any]]]


class Fressian:
    """Values one after the other, which share what may be said again.

    `where` and `begins` are for messages: what the bytes are, and at which byte of a file they
    begin. All methods raise `MalformedHistory`.
    """

    def __init__(self, data: bytes, tags: Tags, where: str = "Fressian", begins: int = 0) -> None:
        self._data = data
        self._tags = tags
        self._where = where
        self._begins = begins
        self._at = 0
        self._depth = 0
        self._values: list[tuple[Any, int]] = []  # with their length in full
        self._structs: list[tuple[Any, int]] = []
        self._again = 0  # bytes that are said by their number, as if they stood there

    def values(self) -> Iterator[Any]:
        """All, to the end of the bytes."""
        while self._at < len(self._data):
            yield self.value()

    def items(self) -> Iterator[Any]:
        """Of a list that is all that there is, as they are read."""
        code = self._code()
        if code in _LISTS or code == _LIST:
            for _ in range(self._count(code, _LISTS)):
                yield self.value()
        elif code in (_CLOSED_LIST, _OPEN_LIST):
            while not self._has_ended(code):
                yield self.value()
        else:
            self._fail("not a list")
        if self._at < len(self._data):
            self._fail("something follows the list")

    def value(self) -> Any:
        at = self._at
        code = self._data[at] if at < len(self._data) else self._code()
        self._at = at + 1
        if code < 0x40:
            return code
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            self._fail(f"nested deeper than {_DEPTH_MAX}")
        value = _READ[code](self, code)
        self._depth -= 1
        return value

    def _code(self) -> int:
        if self._at >= len(self._data):
            self._fail("it ends within a value")
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            self._fail("it ends within a value")
        self._at += count
        return found

    def _whole(self) -> int:
        """A number that must be one: a length, or a place."""
        value = self.value()
        if type(value) is not int or value < 0:
            self._fail(f"not a length: {value!r:.40}")
        return int(value)

    def _count(self, code: int, short: range) -> int:
        """What has no byte for each of its parts is refused before anything is made of it."""
        count = code - short.start if code in short else self._whole()
        if count > len(self._data) - self._at:
            self._fail(f"{count} parts are said, and there are not so many bytes")
        return count

    def _packed(self, code: int) -> int:
        size, zero = _PACKED[code]
        return (code - zero << 8 * size) | int.from_bytes(self._bytes(size))

    def _constant(self, code: int) -> Any:
        return _CONSTANTS[code]

    def _unpacked(self, code: int) -> Any:
        layout = _LAYOUTS[code]
        return layout.unpack(self._bytes(layout.size))[0]

    def _text(self, code: int) -> str:
        told = bytearray()
        while code == _STRING_CHUNK:
            told += self._bytes(self._count(code, _STRINGS))
            code = self._code()
            if code not in _STRINGS and code not in (_STRING, _STRING_CHUNK):
                self._fail("a string has no end")
        told += self._bytes(self._count(code, _STRINGS))
        try:
            return told.decode()
        except UnicodeDecodeError:
            return self._of_halves(told)

    def _of_halves(self, told: bytearray) -> str:
        """Java writes each half of a character on its own that is two halves in UTF-16."""
        try:
            halves = told.decode(errors="surrogatepass")
            return halves.encode("utf-16", errors="surrogatepass").decode("utf-16")
        except UnicodeError:
            self._fail("not text")

    def _blob(self, code: int) -> bytes:
        told = bytearray()
        while code == _BYTES_CHUNK:
            told += self._bytes(self._whole())
            code = self._code()
            if code not in (_BYTES, _BYTES_CHUNK):
                self._fail("a string of bytes has no end")
        return bytes(told + self._bytes(self._count(code, range(0xD0, _BYTES_CHUNK))))

    def _list(self, code: int) -> list[Any]:
        return [self.value() for _ in range(self._count(code, _LISTS))]

    def _unsized_list(self, code: int) -> list[Any]:
        values = []
        while not self._has_ended(code):
            values.append(self.value())
        return values

    def _has_ended(self, code: int) -> bool:
        """Only an open list may end where all ends."""
        if code == _OPEN_LIST and self._at == len(self._data):
            return True
        has_ended = self._data[self._at : self._at + 1] == bytes([_END])
        self._at += has_ended
        return has_ended

    def _array(self, code: int) -> list[Any]:
        return [self.value() for _ in range(self._count(code, range(0)))]

    def _name(self, _: int) -> str:
        space, name = self.value(), self.value()
        if type(name) is not str or (space is not None and type(space) is not str):
            self._fail(f"not a name: {space!r:.40}, {name!r:.40}")
        return name if space is None else f"{space}/{name}"

    def _well_known(self, code: int) -> Any:
        return self._tagged(*_TAG_CODES[code])

    def _named_tag(self, _: int) -> Any:
        tag, count = self.value(), self._whole()
        self._structs.append((tag, count))
        return self._tagged(tag, count)

    def _same_tag(self, code: int) -> Any:
        number = self._whole() if code == 0xF0 else code - 0xA0
        if number >= len(self._structs):
            self._fail(f"no tag has the number {number}")
        return self._tagged(*self._structs[number])

    def _tagged(self, tag: Any, count: int) -> Any:
        wanted, made = self._tags.get(tag, (count, None)) if type(tag) is str else (count, None)
        if wanted != count or count > len(self._data) - self._at:
            self._fail(f"{tag!r:.40} has {count} parts")
        parts = [self.value() for _ in range(count)]
        if made is None:
            return (tag, parts)
        try:
            return made(*parts)
        except (TypeError, ValueError, OverflowError) as error:
            self._fail(f"not as {tag!r:.40} is: {error}")

    def _put(self, _: int) -> Any:
        begin, number = self._at + self._again, len(self._values)
        self._values.append((_OPEN, 0))
        value = self.value()
        self._values[number] = (value, self._at + self._again - begin)
        return value

    def _get(self, code: int) -> Any:
        number = self._whole() if code == 0xCC else code - 0x80
        if number >= len(self._values) or self._values[number][0] is _OPEN:
            self._fail(f"no value has the number {number}")
        value, length = self._values[number]
        self._again += length
        if self._again > _IN_FULL * (len(self._data) + 1000):
            self._fail(f"told in full it is more than {_IN_FULL} times as long")
        return value

    def _forget(self, _: int) -> Any:
        if any(value is _OPEN for value, _ in self._values):
            self._fail("numbers begin anew within a value that has one")
        self._values.clear()
        self._structs.clear()
        return self.value()

    def _unknown(self, code: int) -> NoReturn:
        self._at -= 1
        self._fail(f"no value begins with {code:#x}")

    def _fail(self, what: str) -> NoReturn:
        raise MalformedHistory(f"{self._where}, byte {self._begins + self._at}: {what}")


_TAG_CODES = {
    0xC0: ("map", 1),
    0xC1: ("set", 1),
    0xC3: ("uuid", 1),
    0xC4: ("regex", 1),
    0xC5: ("uri", 1),
    0xC6: ("bigint", 1),
    0xC7: ("bigdec", 2),
    0xC8: ("inst", 1),
}
_LAYOUTS = {0xF8: struct.Struct(">q"), 0xF9: struct.Struct(">f"), 0xFA: struct.Struct(">d")}
_CONSTANTS = {0xF5: True, 0xF6: False, 0xF7: None, 0xFB: 0.0, 0xFC: 1.0, 0xFF: -1}
# The codes of numbers of several bytes: how many follow, and the code of those from 0 on.
_PACKED = {
    code: (size, (codes.start + codes.stop) // 2)
    for size, codes in enumerate(
        (
            range(0x40, 0x60),
            range(0x60, 0x70),
            range(0x70, 0x74),
            range(0x74, 0x78),
            range(0x78, 0x7C),
            range(0x7C, 0x80),
        ),
        1,
    )
    for code in codes
}
_F = Fressian
_READ: list[Callable[[Fressian, int], Any]] = [_F._unknown] * 256
for _codes, _method in (
    (_PACKED, _F._packed),
    ((*range(0x80, 0xA0), 0xCC), _F._get),
    ((*range(0xA0, 0xB0), 0xF0), _F._same_tag),
    (range(0xB0, 0xB6), _F._array),
    (_TAG_CODES, _F._well_known),
    ((0xC9, 0xCA), _F._name),
    ((0xCD,), _F._put),
    (range(0xD0, 0xDA), _F._blob),
    (range(0xDA, 0xE4), _F._text),
    (range(0xE4, 0xED), _F._list),
    ((_CLOSED_LIST, _OPEN_LIST), _F._unsized_list),
    ((0xEF,), _F._named_tag),
    (_LAYOUTS, _F._unpacked),
    (_CONSTANTS, _F._constant),
    ((0xFE,), _F._forget),
):
    for _each in _codes:
        _READ[_each] = _method
