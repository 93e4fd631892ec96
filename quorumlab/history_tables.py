"""Histories as the tables that Spark reads: found, and converted once.

A target is a run's directory, a file of any kind that `check` reads, a table itself, or a directory
with many runs below it. The table of a history says which content it is of. It lies in a directory
of its own beside the history, since workers must see it where they see that; where nothing can be
written, or somebody else's file is in its place, it lies in a directory that is gone at the end.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jepsen_like.history import Header, MalformedHistory, Op, stream_history
from jepsen_like.interchange import read_as
from quorumlab.histories import AS_IT_SAYS, HISTORY, Asked, void_of
from quorumlab.verbs.common import Failed

__all__ = ["TABLE", "Table", "histories_in", "operations_of", "tables_of"]

TABLE = ".parquet"
_HOME = ".quorumlab"  # the directory that we make beside a history


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    path: Path
    run: str
    history: Path | None  # None: only the table is there
    void: Sequence[str] = ()


def histories_in(target: str) -> list[Path]:
    """The files that `target` stands for. Raises `Failed` if there is none."""
    path = Path(target)
    if not path.exists():
        raise Failed(f"{path}: no such file or directory")
    if path.is_file():
        return [path]
    if (path / HISTORY).exists():
        return [path / HISTORY]
    found = sorted(path.rglob(HISTORY)) or sorted(
        table for table in path.rglob(f"*{TABLE}") if table.parent.name != _HOME
    )
    if not found:
        raise Failed(f"{path}: no {HISTORY} in it or below it")
    return found


@contextmanager
def tables_of(
    target: str, progress: Callable[[str], None], asked: Asked = AS_IT_SAYS
) -> Iterator[list[Table]]:
    """Raises `Failed` where one is no history, `UsageError` where it is not what was asked for."""
    histories = histories_in(target)
    with TemporaryDirectory(prefix="quorumlab-tables-") as scratch:
        tables = []
        for number, history in enumerate(histories):
            run = _run_name(history, Path(target))
            path = _place(history) or Path(scratch) / f"{history.name}-{number}{TABLE}"
            tables.append(_table(history, path, run, asked, progress))
        yield tables


def _place(history: Path) -> Path | None:
    """Where its table lies, or shall; None: nowhere beside it."""
    from spark.convert import made_of

    path = history.parent / _HOME / f"{history.name}{TABLE}"
    if not path.exists():
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError:
            return None
        return path if os.access(path.parent, os.W_OK) else None
    is_ours = (made_of(path) or "").startswith(f"{history.name} ")
    return path if is_ours and os.access(path.parent, os.W_OK) else None


def _table(
    history: Path, path: Path, run: str, asked: Asked, progress: Callable[[str], None]
) -> Table:
    from spark.convert import convert, is_current

    if history.suffix == TABLE:
        if not is_current(history):
            raise Failed(f"{history}: not a table of histories, or of another version")
        return Table(path=history, run=run, history=None)
    told = history.stat()
    source = f"{history.name} {told.st_size} {told.st_mtime_ns} {asked}"
    if not is_current(path, source):
        progress(f"{run}: converting")
        with operations_of(history, asked) as (header, ops):
            convert(
                header,
                ops,
                path,
                run=run,
                source=source,
                progress=lambda rows: progress(f"{run}: {rows:,} rows converted"),
            )
    return Table(path=path, run=run, history=history, void=void_of(history))


@contextmanager
def operations_of(history: Path, asked: Asked) -> Iterator[tuple[Header, Iterator[Op]]]:
    """One after the other, if it is of our own kind; others are read as a whole.

    Raises `Failed`, also while they are read, and `UsageError`.
    """
    try:
        with history.open("rb") as file:
            if history.suffix == Path(HISTORY).suffix and asked.model is None:
                header, ops = stream_history(file)
            else:
                read = read_as(file.read(), history.suffix, asked.model)
                header, ops = read.header, iter(read.ops)
            yield asked.header(header), ops
    except MalformedHistory as error:
        raise Failed(f"{history}: {error}") from error


def _run_name(history: Path, target: Path) -> str:
    if history == target:
        return history.name
    folder = history.parent.relative_to(target).as_posix()
    return target.resolve().name if folder == "." else folder
