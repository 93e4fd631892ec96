"""Histories as JSON lines, in bounded memory: an object an operation, after a header of ours."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

import msgspec

from jepsen_like.histories.history import FORMAT, Header, Lines, header_of
from jepsen_like.histories.mappings import decoded, json_of, lines_of, whole_lines

__all__ = ["read_jsonl"]

_OBJECTS = msgspec.json.Decoder(dict[str, Any])


def read_jsonl(source: BinaryIO) -> tuple[Header | None, Iterator[Lines]]:
    """Raises `MalformedHistory`, also while the lines are read."""
    blocks = whole_lines(source)
    block = next(blocks, b"")
    first, _, rest = block.partition(b"\n")
    if FORMAT not in decoded(first):
        return None, _read(chain([block], blocks), 1)
    return header_of(json_of(decoded(first), 1)), _read(chain([rest], blocks), 2)


def _read(blocks: Iterator[bytes], line: int) -> Iterator[Lines]:
    """`line`: the number of the first."""
    operations = 0
    for block in blocks:
        objects = _objects(block, line)
        if objects:
            yield lines_of(objects, operations)
        operations += len(objects)
        line += block.count(b"\n")


def _objects(block: bytes, line: int) -> list[dict[str, Any]]:
    """All at once; one by one, as Python reads JSON, if any of it is unusual, or wrong."""
    try:
        objects = _OBJECTS.decode_lines(block)
        count = len(objects)
        if count == block.count(b"\n") + (not block.endswith(b"\n")) == block.count(b"}\n{") + 1:
            return objects
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    lines = decoded(block).split("\n")  # and nothing else: a text may hold other separators
    return [json_of(text, number) for number, text in enumerate(lines, line) if text.strip()]
