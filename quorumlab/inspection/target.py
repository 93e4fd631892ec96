"""Targets: the directories and files of a metadata log that words on the command line name.

A file with a whole batch in it, wherever, may be one of a metadata log; bytes before that batch are
damage. A file without a whole batch is the border case. A crash that cuts off the very first write
leaves a prefix of one batch, with zeros behind it where the file was preallocated. Such a file is
read as a log without records: each header field that is there in full has a value that the first
batch of a metadata log may have. Any other file never was a log, and is refused; beside files of
the same log that have batches it is damage.

Records of a later Kafka are accepted, though this version does not know them: their frame is known.
The preview of KRaft in Kafka 2.8 wrote an older frame, which no later release reads.

Source: Kafka's AbstractApiMessageSerde (frame version 1; 0 in 2.8), KIP-595 (control records).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.layout import CLUSTER_FILE, ClusterError
from quorum.core.storage import METADATA_LOG
from quorumlab.inspection.batches import Batch, Damage, read_batches
from wire.batch import BATCH_BYTES_MAX, HEADER_BYTES, CorruptBatch, records_of
from wire.varint import Malformed

__all__ = [
    "PREVIEW",
    "Address",
    "NoSuchTarget",
    "Target",
    "find_target",
    "is_torn",
    "is_whole",
    "listed_again",
    "nodes_in",
    "snapshot_id",
    "why_foreign",
]

PREVIEW = (
    "was written by the preview of KRaft in Kafka 2.8, whose records no later release reads, and"
    " this one neither"
)
_ANOTHER = "is the log of another topic, not of the metadata"
_PIECE_BYTES = 1 << 20
_OFFSET_HIGH_BYTES = 2  # of an offset, which no log has reached
_CONTROL = 0x20
_FIELDS = {  # where each begins in the header, and its size in bytes
    "batch_length": (8, 4),
    "leader_epoch": (12, 4),
    "magic": (16, 1),
    "attributes": (21, 2),
    "last_offset_delta": (23, 4),
    "producer_id": (43, 8),
    "producer_epoch": (51, 2),
    "base_sequence": (53, 4),
    "record_count": (57, 4),
}
_OF_PRODUCERS = ("producer_id", "producer_epoch", "base_sequence")
_BATCH_LENGTHS = range(HEADER_BYTES - 12, BATCH_BYTES_MAX + 1)  # offset and length do not count
_BATCHES_MAX = 16  # the first of them tell
_FRAME_VERSION, _PREVIEW_FRAME_VERSION = 1, 0
_MARKERS = (0, 1)  # control types of transactions: abort and commit
_SEGMENT = re.compile(r"\d{20}\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_ADDRESS = re.compile(r"(.+):(\d{1,5})")
_PORT_MAX = 65_535
_PREVIEW_LOG = "@metadata-0"  # of Kafka 2.8


def is_blank(path: Path) -> bool:
    """Is it empty, or preallocated and never written?"""
    with path.open("rb") as file:
        return not any(any(piece) for piece in iter(partial(file.read, _PIECE_BYTES), b""))


def has_batches(path: Path) -> bool:
    """Has it a whole one, or the beginning of the first one, which a crash has cut off?"""
    first = next(read_batches(path), None)
    if first is None:
        return False
    return isinstance(first, Batch) or not first.is_tail or is_torn(first)


def is_torn(damage: Damage) -> bool:
    """May a crash have left it: is it a write that was cut off, at the end of the file?"""
    return damage.is_tail and (damage.position > 0 or _begins_batch(damage.path))


def _begins_batch(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES).rstrip(b"\0")
    named = int(path.stem) if _SEGMENT.fullmatch(path.name) else None
    offset = head[:8] if named is None else named.to_bytes(8)[: len(head)]
    there = {
        name: int.from_bytes(head[first : first + size], signed=True)
        for name, (first, size) in _FIELDS.items()
        if first + size <= len(head)
    }
    return (
        head[:8] == offset
        and not any(head[:_OFFSET_HIGH_BYTES])
        and there.get("batch_length", HEADER_BYTES) in _BATCH_LENGTHS
        and there.get("leader_epoch", 0) >= 0
        and there.get("magic", 2) == 2
        and there.get("attributes", 0) in (0, _CONTROL)  # neither compressed nor transactional
        and all(there.get(name, -1) == -1 for name in _OF_PRODUCERS)
        and ("record_count" not in there or there["record_count"] == there["last_offset_delta"] + 1)
    )


def why_foreign(path: Path) -> str | None:
    """Returns what the file is instead; None for a metadata log, and where nothing could tell."""
    is_quorums = False
    batches = (found for found in read_batches(path) if isinstance(found, Batch))
    for batch in islice(batches, _BATCHES_MAX):
        if batch.header.producer_id >= 0:
            return _ANOTHER
        for key, value in _records(batch):
            if batch.header.is_control:
                if int.from_bytes((key or b"")[2:4]) in _MARKERS:
                    return _ANOTHER
                is_quorums = True
            elif key is not None or not value:
                return _ANOTHER
            elif value[0] == _FRAME_VERSION:
                return None
            else:
                is_preview = is_quorums and value[0] == _PREVIEW_FRAME_VERSION
                return PREVIEW if is_preview else _ANOTHER
    return None


def _records(batch: Batch) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values; a metadata log is never compressed, whatever may be in it."""
    try:
        return [(record.key, record.value) for record in records_of(batch.content)]
    except (CorruptBatch, Malformed):
        return []


Progress = Callable[[Path, int], None]  # a file, and how far it has been read


class NoSuchTarget(ClusterError):
    """The named target is not there: a slip of the pen, and nothing that a node may have done."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    settings: ClientSettings = field(default=PLAIN, repr=False)  # how one speaks there

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


def find_target(text: str, settings: ClientSettings = PLAIN) -> Target | Address:
    """`settings` are of an address. Raises ClusterError with what was found instead."""
    path = Path(text)
    try:
        if not path.exists():
            match = _ADDRESS.fullmatch(text)
            if match is None or not 0 < int(match[2]) <= _PORT_MAX:
                raise NoSuchTarget(f"{text}: no such file or directory, and no HOST:PORT: name one")
            return Address(match[1].strip("[]"), int(match[2]), settings)
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
    """Lists the segments again, of which a running node has made and removed some.

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
    raise ClusterError(
        f"{path} is neither a segment (.log) nor a snapshot (.checkpoint): name one, or a node's "
        "directory"
    )


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
        raise ClusterError(f"{path} {_ANOTHER}")
    raise ClusterError(f"{path} has no {METADATA_LOG} in it: is it the data directory of a node?")


def _log_directory(path: Path, named: Path) -> Target | None:
    """Returns None if it is no directory of a metadata log; a copied one may have any name."""
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
