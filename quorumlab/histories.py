"""Finding and reading the history that a command line names: a run's directory, or a file."""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jepsen_like.checkers.register_initial import INITIAL
from jepsen_like.foreign import REGISTERS
from jepsen_like.history import Header, History, MalformedHistory, Value
from jepsen_like.interchange import READERS, read_as
from quorumlab.verbs.common import Failed, UsageError

__all__ = ["AS_IT_SAYS", "HISTORY", "VERDICT", "Asked", "Found", "find_history", "void_of"]

HISTORY = "history.msgpack"
VERDICT = "verdict.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a history shall be judged, as its reader knows better than it says itself."""

    model: str | None = None
    initial: Sequence[Value] = ()  # [value] that registers begin with

    def header(self, of: Header) -> Header:
        """Raises `UsageError`."""
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
        """Why the run that made it proves nothing, as it said itself. Raises `Failed`."""
        return void_of(self.path)


def find_history(target: str, asked: Asked = AS_IT_SAYS) -> Found:
    """Raises `Failed` and `UsageError`."""
    path = Path(target)
    if path.is_dir():
        if not (path / HISTORY).exists():
            raise Failed(f"{path} has no {HISTORY}: it is not the directory of a chaos run")
        return Found(
            path=path / HISTORY,
            history=_read(path / HISTORY, asked),
        )
    if not path.exists():
        raise Failed(f"{path}: no such file or directory")
    return Found(path=path, history=_read(path, asked))


def _read(path: Path, asked: Asked) -> History:
    if path.suffix not in READERS:
        known = ", ".join(sorted(READERS))
        raise Failed(f"{path}: a history ends with {known}; or name the directory of a run")
    try:
        with _many_objects():
            history = read_as(path.read_bytes(), path.suffix, asked.model)
    except MalformedHistory as error:
        raise Failed(f"{path}: {error}") from error
    return replace(history, header=asked.header(history.header))


@contextmanager
def _many_objects() -> Iterator[None]:
    """What is made here stays, and has no cycles: to look for these again and again would take as
    long as the reading itself."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def void_of(history: Path) -> Sequence[str]:
    """Why its run proves nothing. A run that was interrupted has left no verdict.

    Raises `Failed` where it has left one that cannot be read.
    """
    verdict = history.parent / VERDICT
    if history.name != HISTORY or not verdict.exists():
        return ()
    try:
        told = json.loads(verdict.read_text())
    except (OSError, ValueError) as error:
        raise Failed(f"cannot read {verdict}, by which a run may be void: {error}") from error
    void = told.get("void") if isinstance(told, dict) else None
    if not isinstance(void, list):
        raise Failed(f"{verdict} does not say whether the run is void: it is damaged")
    return [str(each) for each in void]
