"""Refuses outputs that would go into a directory, or over a file, that quorumlab did not make.

A directory is quorumlab's own if it has a file that only quorumlab writes, a file if it begins as
one of ours does. An output may always be new or empty, a terminal or a pipe.
"""

from collections.abc import Callable, Collection
from pathlib import Path

from quorumlab.verb_errors import Failed

__all__ = ["refuse_other_directory", "refuse_other_file"]

_HEAD_CHARACTERS = 64 << 10
_OF_A_FILE_SYSTEM = "lost+found"


def refuse_other_directory(
    directory: Path,
    *,
    option: str,
    holds: str,
    is_own: Callable[[Path], bool] = Path.exists,
    but: Collection[str] = (),
) -> None:
    """Raises Failed unless it is new, empty, or has the file `holds`, and `is_own` accepts that.

    Files in `but` do not count, nor what a new file system begins with, nor hidden ones, which
    version control and file managers leave everywhere.
    """
    try:
        names = [each.name for each in directory.iterdir()]
    except (FileNotFoundError, NotADirectoryError):  # its maker reports the latter
        return
    of_nobody = {_OF_A_FILE_SYSTEM, *but}
    there = [name for name in names if not name.startswith(".") and name not in of_nobody]
    if there and not is_own(directory / holds):
        raise Failed(
            f"{option} {directory}: it is not empty, and has no {holds} of an earlier run in it: "
            "name a new directory"
        )


def refuse_other_file(path: Path, *, option: str, is_own: Callable[[str], bool]) -> None:
    """Raises Failed unless it is new, empty, or `is_own` accepts its first characters."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        if not is_own(file.read(_HEAD_CHARACTERS)):
            raise Failed(f"{option} {path}: that file is there already: name another one")
