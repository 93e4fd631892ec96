"""What a node has said in its log since some moment."""

from collections.abc import Collection
from pathlib import Path

__all__ = ["NodeLog"]

_BYTES_MAX = 4 << 20


class NodeLog:
    """The log of a node from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size if path.exists() else 0

    def lines_with(self, words: Collection[str]) -> list[str]:
        """The lines that hold any of the words."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._start)
            lines = file.read(_BYTES_MAX).decode(errors="replace").splitlines()
        return [line for line in lines if any(word in line for word in words)]
