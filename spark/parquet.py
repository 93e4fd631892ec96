"""A history becomes a Parquet file, once: in bounded memory, however long it is.

    rows -> chunks, each sorted, on disk -> merged object by object -> groups of whole objects

The chunks follow one another in time, but for operations that were open for long: of an object that
is too large to be sorted at once, all chunks are read side by side, up to a call that all of them
have reached.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from jepsen_like.histories.history import Header, Lines, MalformedHistory
from spark.rows import tables, with_run
from spark.schema import ORDER, SCHEMA, VERSION, VERSION_KEY
from spark.table_files import seal

__all__ = ["Sizes", "is_current", "made_of", "write_parquet"]

GROUP_ROWS = 1_000_000
_SOURCE_KEY = b"quorumlab.source"
_Sorted = tuple[int, Iterator[pa.Table]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """In rows; a row takes about 300 bytes while it is sorted."""

    chunk: int = 400_000
    group: int = GROUP_ROWS


def write_parquet(
    header: Header,
    blocks: Iterable[Lines],
    path: Path,
    *,
    run: str,
    source: str = "",
    sizes: Sizes | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Writes `path`, whole or not at all; returns how many rows it has.

    `run` is what the rows are told apart by when several runs are judged together.
    `source` says of which content it is: see `is_current`.
    """
    limits = sizes or Sizes()
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        chunks = _Chunks(header, run, scratch)
        for chunk in _chunks(tables(header, blocks), limits.chunk):
            chunks.add(chunk)
            if progress is not None:
                progress(chunks.rows)
        written = scratch / "written"
        _write(written, _grouped(_objects(chunks.tables(), limits), limits), source)
        seal(written)
        written.replace(path)
    except (OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise MalformedHistory(f"no table can hold it: {error}; --on local may") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return chunks.rows


def is_current(path: Path, source: str | None = None) -> bool:
    """Is it there, of this VERSION, and converted from this content (None: from whatever)?"""
    told = _metadata(path)
    wanted = {VERSION_KEY: str(VERSION).encode()}
    if source is not None:
        wanted[_SOURCE_KEY] = source.encode()
    return all(told.get(key) == value for key, value in wanted.items())


def made_of(path: Path) -> str | None:
    """The source of a table of any version; None: it is none of ours."""
    source = _metadata(path).get(_SOURCE_KEY)
    return None if source is None else source.decode(errors="replace")


def _metadata(path: Path) -> Mapping[bytes, bytes]:
    try:
        return pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException):
        return {}


class _Chunks:
    """Sorted tables: one stays in memory, several are on disk and read as they are needed."""

    def __init__(self, header: Header, run: str, scratch: Path) -> None:
        self._header = header
        self._run = run
        self._scratch = scratch
        self._paths: list[Path] = []
        self._last: pa.Table | None = None
        self.rows = 0

    def add(self, chunk: pa.Table) -> None:
        if self._last is not None:
            self._spill(self._last)
        self.rows += len(chunk)
        table = with_run(chunk, self._header, self._run)
        self._last = table.sort_by([(name, "ascending") for name in ORDER]).combine_chunks()

    def tables(self) -> list[pa.Table]:
        stored = [pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in self._paths]
        return stored if self._last is None else [*stored, self._last]

    def _spill(self, table: pa.Table) -> None:
        path = self._scratch / f"chunk-{len(self._paths)}"
        with pa.ipc.new_file(str(path), SCHEMA) as file:
            file.write_table(table)
        self._paths.append(path)


def _chunks(found: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    held = 0
    for table in found:
        waiting.append(table)
        held += len(table)
        while held >= size:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, size)
            waiting = [whole.slice(size)]
            held -= size
    if held:
        yield pa.concat_tables(waiting)


def _objects(chunks: Sequence[pa.Table], sizes: Sizes) -> Iterator[_Sorted]:
    """Yields for each object, in order of names, how many rows it has, and these in blocks."""
    borders = [_borders(chunk) for chunk in chunks]
    for name in sorted({name for part in borders for name in part}):
        parts = [
            chunk.slice(*part[name])
            for chunk, part in zip(chunks, borders, strict=True)
            if name in part
        ]
        yield sum(map(len, parts)), _merged(parts, sizes) if len(parts) > 1 else iter(parts)


def _borders(chunk: pa.Table) -> dict[str, tuple[int, int]]:
    """Where each object begins, and how many rows it has."""
    encoded = chunk.column("object").combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    names = [encoded.dictionary[int(codes[start])].as_py() for start in starts]
    ends = np.append(starts[1:], len(codes))
    lengths = (ends - starts).tolist()
    return dict(zip(names, zip(starts.tolist(), lengths, strict=True), strict=True))


def _merged(parts: Sequence[pa.Table], sizes: Sizes) -> Iterator[pa.Table]:
    calls = [part.column("call").to_numpy() for part in parts]
    at = [0] * len(parts)
    while any(place < len(call) for place, call in zip(at, calls, strict=True)):
        until = _reached(calls, at, sizes.group)
        to = [int(np.searchsorted(call, until, side="right")) for call in calls]
        block = pa.concat_tables(
            part.slice(begin, end - begin)
            for part, begin, end in zip(parts, at, to, strict=True)
            if end > begin
        )
        yield block.sort_by([("call", "ascending"), ("step", "ascending")])
        at = to


def _reached(calls: Sequence[NDArray[np.int64]], at: Sequence[int], count: int) -> int:
    """A call that no part reaches only after more than `count` rows."""
    return min(
        int(call[min(begin + count, len(call)) - 1])
        for call, begin in zip(calls, at, strict=True)
        if begin < len(call)
    )


def _grouped(objects: Iterable[_Sorted], sizes: Sizes) -> Iterator[pa.Table]:
    """Small objects together, up to the size of a group; of a large one, each block is a group."""
    waiting: list[pa.Table] = []
    held = 0
    for count, blocks in objects:
        if waiting and held + count > sizes.group:
            yield pa.concat_tables(waiting)
            waiting.clear()
            held = 0
        if count > sizes.group:
            yield from blocks
        else:
            waiting.extend(blocks)
            held += count
    if waiting:
        yield pa.concat_tables(waiting)


def _write(path: Path, groups: Iterable[pa.Table], source: str) -> None:
    schema = SCHEMA.with_metadata({**SCHEMA.metadata, _SOURCE_KEY: source.encode()})
    texts = [field.name for field in SCHEMA if field.type != pa.int64()]
    # Checksums of pages are for stores, where Spark reads and knows nothing of our seal.
    options = {"use_dictionary": texts, "write_page_checksum": True}
    with pq.ParquetWriter(path, schema, **options) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, len(group)))
