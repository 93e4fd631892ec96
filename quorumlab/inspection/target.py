"""What the words on the command line point at: directories and files of a metadata log.

A target is a node's directory, its data directory, `__cluster_metadata-0` itself, one segment, one
snapshot, or HOST:PORT of a live cluster. Nothing is opened for writing, and no lock is looked at.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from jepsen_like.real.layout import CLUSTER_FILE, ClusterError
from quorum.core.storage import METADATA_LOG
from quorumlab.inspection.recognising import PREVIEW, has_batches, is_blank, why_foreign

__all__ = [
    "Address",
    "NoSuchTarget",
    "Progress",
    "Target",
    "find_target",
    "is_whole",
    "listed_again",
    "nodes_in",
    "snapshot_id",
]

_SEGMENT = re.compile(r"\d{20}\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_ADDRESS = re.compile(r"(.+):(\d{1,5})")
_PORT_MAX = 65_535
_PREVIEW_LOG = "@metadata-0"  # of Kafka 2.8

Progress = Callable[[Path, int], None]  # a file, and how far it has been read


class NoSuchTarget(ClusterError):
    """What was named is not there: a slip of the pen, and nothing that a node may have done."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Files of one replica of the metadata log, each in ascending order of offsets."""

    path: Path  # as it was named
    segments: tuple[Path, ...] = ()
    snapshots: tuple[Path, ...] = ()
    log_directory: Path | None = None  # __cluster_metadata-0
    node_directory: Path | None = None  # with meta.properties
    high_watermark: int | None = None  # of a live quorum: all that is here is committed
    cluster_id: str | None = None  # as a live quorum says it
    progress: Progress = field(default=lambda _path, _position: None, compare=False)

    @property
    def files(self) -> tuple[Path, ...]:
        return self.segments or self.snapshots[-1:]


def find_target(text: str) -> Target | Address:
    """Raises ClusterError with what was found instead."""
    path = Path(text)
    try:
        if not path.exists():
            match = _ADDRESS.fullmatch(text)
            if match is None or not 0 < int(match[2]) <= _PORT_MAX:
                raise NoSuchTarget(f"{text}: no such file or directory, and no HOST:PORT")
            return Address(match[1].strip("[]"), int(match[2]))
        target = _directory(path) if path.is_dir() else _file(path)
        _check(target)
    except OSError as error:
        raise ClusterError(f"{error.filename or text} cannot be read: {error.strerror}") from error
    return target


def is_whole(path: Path) -> bool:
    """Is it the directory of a whole cluster of ours?"""
    return (path / CLUSTER_FILE).exists()


def nodes_in(path: Path) -> list[Path]:
    """The directories of nodes with a metadata log, in that of a whole cluster."""
    return sorted(child for child in path.iterdir() if (child / "data" / METADATA_LOG).is_dir())


def listed_again(target: Target) -> Target:
    """With the segments that a running node has made and removed since.

    Raises ClusterError if there is nothing left.
    """
    if target.log_directory is None:
        return target
    found = _log_directory(target.log_directory, target.path)
    if found is None:
        raise ClusterError(f"{target.log_directory} has no log in it any longer")
    return found


def snapshot_id(path: Path) -> tuple[int, int]:
    """End offset (exclusive) and epoch, out of the name of a snapshot; (0, 0) for bootstrap's."""
    match = _SNAPSHOT.fullmatch(path.name)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _check(target: Target) -> None:
    """Raises ClusterError for what cannot be a metadata log at all."""
    files = (*target.segments, *target.snapshots)
    what = target.files[0] if len(target.files) == 1 else target.path
    if all(map(is_blank, files)):
        zeros = "has only zeros in it" if any(path.stat().st_size for path in files) else "is empty"
        raise ClusterError(f"{what} {zeros}: nothing has been written to it")
    if not any(map(has_batches, files)):
        raise ClusterError(
            f"{what} is no metadata log: no record batch is in it, nor the beginning of a first one"
        )
    reason = why_foreign(target.files[0])
    if reason is not None:
        raise ClusterError(f"{target.files[0]} {reason}")


def _file(path: Path) -> Target:
    if path.name.endswith(".checkpoint"):
        return Target(path=path, snapshots=(path,))
    if path.name.endswith(".log"):
        return Target(path=path, segments=(path,))
    raise ClusterError(f"{path} is neither a segment (.log) nor a snapshot (.checkpoint)")


def _directory(path: Path) -> Target:
    for candidate in (path, path / METADATA_LOG, path / "data" / METADATA_LOG):
        found = _log_directory(candidate, path)
        if found is not None:
            return found
    if is_whole(path):
        names = ", ".join(map(str, nodes_in(path))) or "none has a log yet"
        raise ClusterError(f"{path} is a whole cluster: name one of its nodes ({names})")
    if path.name == _PREVIEW_LOG or (path / _PREVIEW_LOG).is_dir():
        raise ClusterError(f"{path} {PREVIEW}")
    if any(_SEGMENT.fullmatch(child.name) for child in path.iterdir()):
        raise ClusterError(f"{path} is the log of another topic, not of the metadata")
    raise ClusterError(f"{path} has no {METADATA_LOG} in it: is it the data directory of a node?")


def _log_directory(path: Path, named: Path) -> Target | None:
    """None if it is no directory of a metadata log; a copied one may have any name."""
    if not path.is_dir() or path.name == _PREVIEW_LOG:
        return None
    names = sorted(child.name for child in path.iterdir())
    segments = tuple(path / name for name in names if _SEGMENT.fullmatch(name))
    snapshots = tuple(path / name for name in names if _SNAPSHOT.fullmatch(name))
    is_metadata = path.name == METADATA_LOG or "quorum-state" in names or bool(snapshots)
    if not is_metadata or not (segments or snapshots):
        return None
    parent = path.parent if (path.parent / "meta.properties").exists() else None
    return Target(
        path=named,
        segments=segments,
        snapshots=snapshots,
        log_directory=path,
        node_directory=parent,
    )
