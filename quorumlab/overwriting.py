"""What quorumlab did not make is not written into or over: an output that is there must be its own.

A directory is its own by a file in it that only quorumlab writes, a file by how it begins. What is
missing or empty may be written, and so may a terminal or a pipe.
"""

from collections.abc import Callable, Collection
from pathlib import Path

from quorumlab.verbs.common import Failed

__all__ = ["refuse_other_directory", "refuse_other_file"]

_HEAD_CHARACTERS = 64 << 10


def refuse_other_directory(
    directory: Path,
    *,
    option: str,
    holds: str,
    is_own: Callable[[Path], bool] = Path.exists,
    but: Collection[str] = (),
) -> None:
    """Raises Failed unless it is new, empty, or has the file `holds`, which `is_own` looks at.

    Hidden files do not count, since version control and file managers leave them everywhere, and
    neither do those in `but`.
    """
    try:
        names = [each.name for each in directory.iterdir()]
    except (FileNotFoundError, NotADirectoryError):  # what makes it says the latter
        return
    there = [name for name in names if not name.startswith(".") and name not in but]
    if there and not is_own(directory / holds):
        raise Failed(
            f"{option} {directory}: it is not empty, and has no {holds} of an earlier run in it: "
            "name a new directory"
        )


def refuse_other_file(path: Path, *, option: str, is_own: Callable[[str], bool]) -> None:
    """Raises Failed unless it is new, empty, or begins with what `is_own` knows."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        if not is_own(file.read(_HEAD_CHARACTERS)):
            raise Failed(f"{option} {path}: that file is there already: name another one")
