"""The files of one partition of a topic, and what lies beside its log.

<base offset>.log        record batches
<base offset>.txnindex   transactions that were aborted, whose marker is in that segment
<end offset>.snapshot    producers, as they stood at that offset
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jepsen_like.real.layout import ClusterError

__all__ = ["Partition", "find_partition"]

_DIRECTORY = re.compile(r"(?P<topic>[\w.-]+)-\d+")
_SEGMENT, _ABORTED, _PRODUCERS = ".log", ".txnindex", ".snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Its files, in ascending order of offsets; of a single file, only that."""

    path: Path  # as it was named
    topic: str | None = None  # as its directory is called
    segments: tuple[Path, ...] = ()
    aborted: tuple[Path, ...] = ()
    producers: tuple[Path, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.path.is_dir()


def find_partition(text: str) -> Partition:
    """Raises ClusterError with what was found instead."""
    path = Path(text)
    if not path.exists():
        raise ClusterError(f"{text}: no such file or directory")
    match = _DIRECTORY.fullmatch((path if path.is_dir() else path.parent).resolve().name)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    found = Partition(
        path=path,
        topic=match["topic"] if match else None,
        segments=_ending(files, _SEGMENT),
        aborted=_ending(files, _ABORTED),
        producers=_ending(files, _PRODUCERS),
    )
    if not (found.segments or found.aborted or found.producers):
        kinds = f"{_SEGMENT}, {_ABORTED} or {_PRODUCERS}"
        what = f"has no {kinds} file in it" if path.is_dir() else f"is no {kinds} file"
        raise ClusterError(f"{path} {what}: name the directory of a partition, such as orders-0")
    return found


def _ending(files: Sequence[Path], suffix: str) -> tuple[Path, ...]:
    """Those that are to be deleted, or were being made, have another ending behind it."""
    return tuple(each for each in files if each.suffix == suffix and each.stem.isdecimal())
