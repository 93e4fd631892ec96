"""Who runs a cluster directory: one `up` at a time, and a dead one's claim does not count."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from jepsen_like.advice import command
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.processes import ProcessId, is_alive, started_at

__all__ = ["DirectoryLock"]


class DirectoryLock:
    """Held by the `up` that runs a cluster; released on exit, taken over if its owner died."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "up.lock"
        self._me = ProcessId(os.getpid(), started_at(os.getpid()) or "")

    def owner(self) -> ProcessId | None:
        """The living process that holds the lock, if any."""
        owner = ProcessId.load(self._path)
        return owner if is_alive(owner) else None

    def __enter__(self) -> Self:
        directory = self._path.parent
        claim = self._path.with_suffix(f".{self._me.pid}")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._me.save(claim)
            try:
                self._take(claim)
            finally:
                claim.unlink(missing_ok=True)
        except OSError as error:
            raise ClusterError(
                f"cannot write in {directory}: {error.strerror}; choose another --dir"
            ) from error
        return self

    def _take(self, claim: Path) -> None:
        for _ in range(3):
            try:
                os.link(claim, self._path)  # atomic: fails if somebody holds it
                return
            except FileExistsError:
                owner = self.owner()
                if owner is not None:
                    raise ClusterError(
                        f"{self._path.parent} is in use by process {owner.pid}: "
                        f"stop that one, or `{command('down', '--dir', self._path.parent)}`"
                    ) from None
                self._path.unlink(missing_ok=True)  # its owner is gone
        raise ClusterError(f"cannot lock {self._path}: several processes try at once")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if ProcessId.load(self._path) == self._me:
            self._path.unlink(missing_ok=True)
