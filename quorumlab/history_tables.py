"""Histories as the tables that Spark reads: found, and converted once.

A target is a run's directory, a file of any kind that `check` reads, a table itself, or a directory
with many runs below it. The table of a history lies beside it, and says which content it is of;
where nothing can be written, it lies in a directory that is gone at the end.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jepsen_like.history import Header, MalformedHistory, Op, stream_history
from jepsen_like.interchange import read_as
from quorumlab.histories import HISTORY, void_of
from quorumlab.verbs.common import Failed

__all__ = ["TABLE", "Table", "histories_in", "operations_of", "tables_of"]

TABLE = ".parquet"


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
    found = sorted(path.rglob(HISTORY)) or sorted(path.rglob(f"*{TABLE}"))
    if not found:
        raise Failed(f"{path}: no {HISTORY} in it or below it")
    return found


@contextmanager
def tables_of(
    target: str, model: str | None, progress: Callable[[str], None]
) -> Iterator[list[Table]]:
    """Raises `Failed` where one is no history. `model`: what they are judged as."""
    histories = histories_in(target)
    with TemporaryDirectory(prefix="quorumlab-tables-") as scratch:
        tables = []
        for number, history in enumerate(histories):
            run = _run_name(history, Path(target))
            home = Path(scratch) if not os.access(history.parent, os.W_OK) else history.parent
            name = f"{history.name}-{number}" if home == Path(scratch) else history.stem
            tables.append(_table(history, home / f"{name}{TABLE}", run, model, progress))
        yield tables


def _table(
    history: Path, path: Path, run: str, model: str | None, progress: Callable[[str], None]
) -> Table:
    from spark.convert import convert, is_current

    if history.suffix == TABLE:
        if not is_current(history):
            raise Failed(f"{history}: not a table of histories, or of another version")
        return Table(path=history, run=run, history=None)
    told = history.stat()
    source = f"{history.name} {told.st_size} {told.st_mtime_ns} {model or ''}".strip()
    if not is_current(path, source):
        progress(f"{run}: converting")
        with operations_of(history, model) as (header, ops):
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
def operations_of(history: Path, model: str | None) -> Iterator[tuple[Header, Iterator[Op]]]:
    """One after the other, if it is of our own kind; others are read as a whole.

    Raises `Failed`, also while they are read.
    """
    try:
        with history.open("rb") as file:
            if history.suffix == Path(HISTORY).suffix and model is None:
                yield stream_history(file)
            else:
                read = read_as(file.read(), history.suffix, model)
                yield read.header, iter(read.ops)
    except MalformedHistory as error:
        raise Failed(f"{history}: {error}") from error


def _run_name(history: Path, target: Path) -> str:
    if history == target:
        return history.name
    folder = history.parent.relative_to(target).as_posix()
    return target.resolve().name if folder == "." else folder
