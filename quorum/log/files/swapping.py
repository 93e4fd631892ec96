"""A compacted segment takes the place of those that it was made of, whatever a crash leaves.

    <base offset>.log.cleaned    being written: removed when the log is opened
    <base offset>.log.swap       whole and durable: takes the place of the segments that it covers
    <base offset>.log.deleted    replaced: nobody reads it, and its files go in the background

and so the indexes. The steps, of which each is on the medium before the next:

1. The new files are synced as `.cleaned`.
2. They are renamed to `.swap`, that with the batches last. A file that is `.cleaned` still undoes
   this. From here on the swap is decided.
3. The old files are renamed to `.deleted`.
4. The new files get their names.

When a log is opened, `finish_swaps` goes on from wherever that stopped. Kafka does the same to a
directory of ours, and we to one of Kafka's.

Source: Kafka's LocalLog.replaceSegments, LogLoader.removeTempFilesAndCollectSwapFiles and `load`.
"""

import re
from collections.abc import Iterable, Sequence

from quorum.log.files.disk import Disk
from quorum.log.files.segment import Segment, batches_in

__all__ = ["CLEANED", "finish_swaps", "swap_in"]

CLEANED, _SWAP, _DELETED = ".cleaned", ".swap", ".deleted"
_FILE_NAME = re.compile(r"(\d{20})\.(?:log|index|timeindex|txnindex|open)(\.cleaned|\.swap)?")


def swap_in(disk: Disk, directory: str, cleaned: Segment, replaced: Sequence[Segment]) -> None:
    """Durably. `cleaned` has been written, and was finished; `replaced` are `.deleted` then."""
    for path in cleaned.paths:
        disk.sync(path)
        disk.forget(path)
    cleaned.rename(_SWAP)
    disk.sync_directory(directory)
    for segment in replaced:
        segment.rename(_DELETED)
    disk.sync_directory(directory)
    cleaned.rename("")
    disk.sync_directory(directory)


def finish_swaps(disk: Disk, directory: str) -> list[str]:
    """Finish or undo what was interrupted. Returns the names in the directory."""
    names = disk.names(directory)
    found = [match for name in names if (match := _FILE_NAME.fullmatch(name))]
    cleaned = [match for match in found if match[2] == CLEANED]
    swaps = [match for match in found if match[2] == _SWAP]
    if not (cleaned or swaps):
        return names
    undone_from = min((int(match[1]) for match in cleaned), default=None)
    undone = [m for m in swaps if undone_from is not None and int(m[1]) >= undone_from]
    _remove(disk, directory, (match[0] for match in (*undone, *cleaned)))
    decided = [match for match in swaps if match not in undone]
    for match in decided:
        if match[0].endswith(f".log{_SWAP}"):
            covered = range(int(match[1]), _end_of(disk, f"{directory}/{match[0]}", int(match[1])))
            _remove(
                disk,
                directory,
                (each[0] for each in found if not each[2] and int(each[1]) in covered),
            )
    disk.sync_directory(directory)
    for match in sorted(decided, key=lambda match: f".log{_SWAP}" in match[0]):
        disk.move(f"{directory}/{match[0]}", f"{directory}/{match[0].removesuffix(_SWAP)}")
    disk.sync_directory(directory)
    return disk.names(directory)


def _remove(disk: Disk, directory: str, names: Iterable[str]) -> None:
    for name in names:
        disk.remove(f"{directory}/{name}")


def _end_of(disk: Disk, path: str, base_offset: int) -> int:
    """Where the batches of a file end. Its first segment is covered, even if nothing is left."""
    end_offset = base_offset + 1
    for _, header, _ in batches_in(disk, path, position=0, end=disk.size(path)):
        end_offset = header.next_offset
    return end_offset
