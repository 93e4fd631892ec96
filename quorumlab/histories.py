"""Finding, reading and converting the histories that a command line names.

A target is a directory of a run, of ours or in Jepsen's store, a file of any kind that `check`
reads, a table, or a directory with many runs below it. Spark reads tables. The table of a history
says from which content it was made, and lies in a directory of its own beside the history, since
workers must see both. If nothing can be written there, or somebody else's file has that name, the
table lies in a directory that is removed at the end.

What is named as Spark names it is in a store that only Spark reads: see `spark.stored`.
"""

import gc
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from jepsen_like.checkers.isolation_levels import ISOLATION
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.histories.history import (
    INITIAL,
    TRUST_FAILURES,
    Header,
    History,
    Lines,
    MalformedHistory,
    Op,
    Value,
)
from jepsen_like.histories.interchange import READERS, REGISTERS, read_as, stream_as
from quorumlab.arguments import Failed, UsageError
from spark.places import HISTORY

__all__ = [
    "TABLE",
    "VERDICT",
    "Asked",
    "Found",
    "Table",
    "find_history",
    "histories_in",
    "operations_of",
    "tables_of",
    "void_in",
]

VERDICT = "verdict.json"
_JEPSEN = ("test.jepsen", "history.edn")  # of a run in its store; the first that is there
TABLE = ".parquet"
_HOME = ".quorumlab"  # the directory that we make beside a history


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The reader's own knowledge of how a history shall be judged, which wins over its header."""

    model: str | None = None
    initial: Sequence[Value] = ()  # [value] that registers begin with
    trusts_failures: bool = False  # those that say they timed out, too
    isolation: str | None = None  # the level that transactions were promised

    def header(self, of: Header) -> Header:
        """Raises `UsageError`."""
        if self.trusts_failures:
            of = replace(of, options={**of.options, TRUST_FAILURES: True})
        if self.isolation:
            if of.workload not in WRITE_OF:
                what = of.workload or "nothing that it tells"
                known = ", ".join(WRITE_OF)
                raise UsageError(f"--isolation: only {known} have one; this is of {what}")
            of = replace(of, options={**of.options, ISOLATION: self.isolation})
        if not self.initial:
            return of
        if of.workload not in REGISTERS:
            what = of.workload or "nothing that it tells"
            raise UsageError(f"--initial: only registers begin with a value; this is of {what}")
        return replace(of, options={**of.options, INITIAL: list(self.initial)})


AS_IT_SAYS = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    path: Path
    history: History

    @property
    def void(self) -> Sequence[str]:
        """Why the run proves nothing, as it said itself. Raises `Failed`."""
        return void_of(self.path)


def find_history(target: str, asked: Asked = AS_IT_SAYS) -> Found:
    """Raises `Failed` and `UsageError`."""
    path = Path(target)
    if path.is_dir():
        path, *others = histories_in(target)
        if others:
            runs = 1 + len(others)
            raise Failed(f"{target} has {runs} runs in it: name one, such as {path.parent}")
    if not path.exists():
        raise Failed(f"{path}: no such file or directory: name a history, or a run")
    return Found(path=path, history=_read(path, asked))


def _read(path: Path, asked: Asked) -> History:
    if path.suffix not in READERS:
        known = ", ".join(sorted(READERS))
        raise Failed(f"{path}: a history ends with {known}; or name the directory of a run")
    try:
        with _many_objects():
            history = read_as(path.read_bytes(), path.suffix, asked.model)
    except MalformedHistory as error:
        raise Failed(f"{path}: {error}: is it a history?") from error
    return replace(history, header=asked.header(history.header))


@contextmanager
def _many_objects() -> Iterator[None]:
    """Objects that are made here stay, and have no cycles: to look for these again and again would
    take as long as the reading itself."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def void_of(history: Path) -> Sequence[str]:
    """Returns why the run of a history proves nothing. An interrupted run has left no verdict.

    Raises `Failed` for a verdict that cannot be read.
    """
    verdict = history.parent / VERDICT
    if history.name != HISTORY or not verdict.exists():
        return ()
    try:
        text = verdict.read_text()
    except (OSError, ValueError) as error:
        raise _unread(verdict, error) from error
    return void_in(text, verdict)


def void_in(text: str, verdict: Path | str) -> Sequence[str]:
    """The same of a verdict that is read already. Raises `Failed`."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise _unread(verdict, error) from error
    void = told.get("void") if isinstance(told, dict) else None
    if not isinstance(void, list):
        raise Failed(f"{verdict} does not say whether the run is void: it is damaged")
    return [str(each) for each in void]


def _unread(verdict: Path | str, error: Exception) -> Failed:
    return Failed(f"cannot read {verdict}, by which a run may be void: {error}")


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
        raise Failed(f"{path}: no such file or directory: name a history, or a run")
    if path.is_file():
        return [path]
    for name in (HISTORY, *_JEPSEN):
        if (path / name).exists():
            return [path / name]
    of_jepsen = {file.parent: file for name in reversed(_JEPSEN) for file in path.rglob(name)}
    tables = (table for table in path.rglob(f"*{TABLE}") if table.parent.name != _HOME)
    found = sorted(path.rglob(HISTORY)) or sorted(of_jepsen.values()) or sorted(tables)
    if not found:
        raise Failed(f"{path}: no {HISTORY} in it or below it, nor {' or '.join(_JEPSEN)}")
    return found


@contextmanager
def tables_of(
    targets: Sequence[str], progress: Callable[[str], None], asked: Asked = AS_IT_SAYS
) -> Iterator[list[Table]]:
    """Raises `Failed` where one is no history, `UsageError` where it is not what was asked for."""
    histories = [(target, history) for target in targets for history in histories_in(target)]
    with TemporaryDirectory(prefix="quorumlab-tables-") as scratch:
        tables = []
        for number, (target, history) in enumerate(histories):
            is_only = len(targets) == 1
            run = _run_name(history, Path(target)) if is_only else history.as_posix()
            path = _place(history) or Path(scratch) / f"{history.name}-{number}{TABLE}"
            tables.append(_table(history, path, run, asked, progress))
        yield tables


def _place(history: Path) -> Path | None:
    """Returns where the table of a history lies, or shall; None: nowhere beside it."""
    from spark.parquet import made_of

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
    from spark.parquet import is_current, write_parquet

    if history.suffix == TABLE:
        if not is_current(history):
            raise Failed(f"{history}: not a table of histories, or of another version")
        return Table(path=history, run=run, history=None)
    told = history.stat()
    source = f"{history.name} {told.st_size} {told.st_mtime_ns} {asked}"
    if not is_current(path, source):
        progress(f"{run}: converting")
        with _streamed(history, asked) as (header, blocks):
            write_parquet(
                header,
                blocks,
                path,
                run=run,
                source=source,
                progress=lambda rows: progress(f"{run}: {rows:,} rows converted"),
            )
    return Table(path=path, run=run, history=history, void=void_of(history))


@contextmanager
def operations_of(history: Path, asked: Asked) -> Iterator[tuple[Header, Iterator[Op]]]:
    """One after the other. Raises `Failed`, also while they are read, and `UsageError`."""
    with _streamed(history, asked) as (header, blocks):
        yield header, (op for lines in blocks for op in lines.ops())


@contextmanager
def _streamed(history: Path, asked: Asked) -> Iterator[tuple[Header, Iterator[Lines]]]:
    try:
        with history.open("rb") as file:
            header, blocks = stream_as(file, history.suffix, asked.model)
            yield asked.header(header), blocks
    except MalformedHistory as error:
        raise Failed(f"{history}: {error}") from error


def _run_name(history: Path, target: Path) -> str:
    if history == target:
        return history.name
    folder = history.parent.relative_to(target).as_posix()
    return target.resolve().name if folder == "." else folder
