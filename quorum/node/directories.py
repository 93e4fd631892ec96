"""Data directories: to which cluster and node one belongs, and that one process uses it.

    meta.properties         cluster id, node id, id of the directory
    bootstrap.checkpoint    the first records of the cluster
    __cluster_metadata-0/   with its first voters, if they are to live in the log; where Kafka 4.4
                            formatted the directory, with the first records, too
    .lock                   held while a node runs; names its process
    .kafka_cleanshutdown    there after an orderly stop, until the next process opens a log

A directory is formatted once, by `quorumlab format`, and opened at every start. Nothing is ever
formatted on the way: a node that began anew on an empty disk would vote a second time.

Source: KIP-631, KIP-853 (meta.properties), KIP-966 (clean shutdown), KIP-1170; LogManager.lock.
"""

import fcntl
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom
from uuid import UUID

from quorum.core.storage import METADATA_LOG, Say, StorageError
from quorum.log.files.checkpoints import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    CorruptFile,
    MetaProperties,
    format_meta_properties,
    parse_clean_shutdown,
    parse_meta_properties,
)
from quorum.log.files.disk import Disk
from quorum.log.files.snapshot_files import snapshot_name
from quorum.node.bootstrap import BOOTSTRAP, format_bootstrap, parse_bootstrap
from quorum.raft.log import BOOTSTRAP_SNAPSHOT
from wire.primitives import random_uuid

__all__ = [
    "LOCK",
    "DataDirectories",
    "DataDirectory",
    "DirectoryInUse",
    "NotFormatted",
    "WrongDirectory",
    "check_owner",
    "format_directory",
    "is_formatted",
    "open_directories",
    "open_directory",
    "read_meta_properties",
]

LOCK = ".lock"
_UNCLEAN = -1


class NotFormatted(StorageError):
    """Nobody has prepared the directory for a node."""


class WrongDirectory(StorageError):
    """The directory belongs to another cluster or node, or is no data directory."""


class DirectoryInUse(StorageError):
    """Another process runs on the directory."""


@dataclass(slots=True, kw_only=True)
class DataDirectory:
    """A directory that this process may use until it closes it."""

    path: str
    cluster_id: str
    node_id: int
    directory_id: UUID
    previous_broker_epoch: int  # of an orderly stop (KIP-966); -1 after any other end
    was_clean: bool
    lock: int  # file descriptor

    def bootstrap(self) -> tuple[bytes, ...] | None:
        """The framed first records; None if no file has any.

        Those in the first snapshot come before those of bootstrap.checkpoint, as in Kafka 4.4.
        """
        first_snapshot = f"{self.path}/{METADATA_LOG}/{snapshot_name(BOOTSTRAP_SNAPSHOT)}"
        return _first_records(first_snapshot) or _first_records(f"{self.path}/{BOOTSTRAP}")

    def close(self) -> None:
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDirectories:
    """All that a node has: that of the metadata log, and those of partitions that can be read."""

    metadata: DataDirectory
    data: tuple[DataDirectory, ...]
    has_unreadable: bool  # others, whose ids nobody knows

    @property
    def cluster_id(self) -> str:
        return self.metadata.cluster_id

    @property
    def previous_broker_epoch(self) -> int:
        """The epoch of an orderly stop on which all of them agree; otherwise -1 (KIP-966)."""
        epochs = {each.previous_broker_epoch for each in self.data}
        return epochs.pop() if len(epochs) == 1 and not self.has_unreadable else _UNCLEAN


def _first_records(path: str) -> tuple[bytes, ...] | None:
    content = Disk().read_whole(path)
    return None if content is None else parse_bootstrap(content, path)


# --- formatting -----------------------------------------------------------------------------


def is_formatted(path: str) -> bool:
    return Path(path, META_PROPERTIES).exists()


def read_meta_properties(path: str) -> MetaProperties | None:
    """What a directory was formatted as; None if it was not."""
    meta_path = f"{path}/{META_PROPERTIES}"
    content = Disk().read_whole(meta_path)
    return None if content is None else parse_meta_properties(content, meta_path)


def check_owner(path: str, meta: MetaProperties, *, node_id: int, cluster_id: str | None) -> None:
    """`cluster_id` is compared if it is known. Raises WrongDirectory."""
    if meta.node_id != node_id:
        raise WrongDirectory(
            f"{path} belongs to node {meta.node_id}, but node.id is {node_id}:"
            " correct node.id or the directory in the configuration"
        )
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise WrongDirectory(
            f"{path} belongs to cluster {meta.cluster_id}, not to {cluster_id}:"
            " correct the directory in the configuration"
        )


def format_directory(
    path: str,
    *,
    cluster_id: str,
    node_id: int,
    directory_id: UUID | None = None,
    bootstrap: tuple[bytes, ...] = (),
    first_voters: bytes = b"",
) -> MetaProperties:
    """Make `path` a data directory of a node. Refuses one that is formatted already.

    `bootstrap` holds framed metadata records, `first_voters` the snapshot with the voters that the
    log will begin with. meta.properties is written last: a directory that has it is whole.
    """
    disk = Disk()
    try:
        if is_formatted(path):
            raise WrongDirectory(f"{path} is formatted already: it has a {META_PROPERTIES}")
        if Path(path).exists() and not Path(path).is_dir():
            raise WrongDirectory(f"{path} is no directory: correct it in the configuration")
        Path(path).mkdir(parents=True, exist_ok=True)
        foreign = sorted(p.name for p in Path(path).iterdir() if not _is_ours(p.name))
    except OSError as error:
        raise StorageError(f"cannot create {path}: {error.strerror}") from error
    if foreign:
        raise WrongDirectory(
            f"{path} is no empty directory: it holds {foreign[0]!r}; nothing was changed."
            " Name another one, or empty this one by hand"
        )
    meta = MetaProperties(
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=directory_id or random_uuid(SystemRandom()),
    )
    if bootstrap:
        disk.replace(f"{path}/{BOOTSTRAP}", format_bootstrap(bootstrap))
    if first_voters:
        disk.make_directory(f"{path}/{METADATA_LOG}")
        name = snapshot_name(BOOTSTRAP_SNAPSHOT)
        disk.replace(f"{path}/{METADATA_LOG}/{name}", first_voters)
    disk.replace(f"{path}/{META_PROPERTIES}", format_meta_properties(meta))
    disk.close()
    return meta


def _is_ours(name: str) -> bool:
    """What may lie in a directory that is about to be formatted: traces of an earlier attempt."""
    return name in (LOCK, BOOTSTRAP, "lost+found") or name.endswith(
        (".tmp", ".out", ".log", ".properties")
    )


# --- opening --------------------------------------------------------------------------------


def open_directory(path: str, *, node_id: int, cluster_id: str | None = None) -> DataDirectory:
    """Check that `path` is the data directory of this node, and lock it.

    `cluster_id` is compared if it is known beforehand. Raises a `StorageError` that says what is
    wrong and what to do.
    """
    _check_access(path)
    meta = read_meta_properties(path)
    if meta is None:
        raise NotFormatted(
            f"{path} is not formatted: it has no {META_PROPERTIES}. If it is meant to be new, run"
            " `quorumlab format --config FILE --cluster-id ID` first; if not, its disk may not be"
            " mounted"
        )
    check_owner(path, meta, node_id=node_id, cluster_id=cluster_id)
    lock = _lock(path)
    disk = Disk()
    if meta.directory_id is None:
        meta = replace(meta, directory_id=random_uuid(SystemRandom()))
        disk.replace(f"{path}/{META_PROPERTIES}", format_meta_properties(meta))
    assert meta.directory_id is not None
    clean = disk.read_whole(f"{path}/{CLEAN_SHUTDOWN}")
    disk.close()
    return DataDirectory(
        path=path,
        cluster_id=meta.cluster_id,
        node_id=meta.node_id,
        directory_id=meta.directory_id,
        previous_broker_epoch=_UNCLEAN if clean is None else parse_clean_shutdown(clean),
        was_clean=clean is not None,
        lock=lock,
    )


def open_directories(
    metadata_path: str,
    paths: Iterable[str],
    *,
    node_id: int,
    cluster_id: str | None = None,
    say: Say = lambda line: None,
) -> DataDirectories:
    """Open those of a node; all must belong to one cluster.

    A directory of partitions that cannot be read is left out: the others are as good without it.
    One that is somebody else's, in use or not formatted is an error of whoever starts the node.
    """
    opened: dict[str, DataDirectory] = {}
    has_unreadable = False
    try:
        for path in dict.fromkeys((metadata_path, *paths)):
            try:
                found = open_directory(path, node_id=node_id, cluster_id=cluster_id)
            except (NotFormatted, WrongDirectory, DirectoryInUse, CorruptFile):
                raise
            except StorageError as error:
                if path == metadata_path:
                    raise
                has_unreadable = True
                say(f"directory offline path={path}: {error}")
                continue
            cluster_id = found.cluster_id
            opened[path] = found
    except StorageError:
        for each in opened.values():
            each.close()
        raise
    return DataDirectories(
        metadata=opened[metadata_path],
        data=tuple(opened[path] for path in dict.fromkeys(paths) if path in opened),
        has_unreadable=has_unreadable,
    )


def _check_access(path: str) -> None:
    if not os.path.isdir(path):
        if os.path.exists(path):
            raise WrongDirectory(f"{path} is no directory: correct it in the configuration")
        raise NotFormatted(
            f"{path} does not exist; for a new node, `quorumlab format --config FILE --cluster-id"
            " ID` creates it; otherwise its disk may not be mounted"
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise StorageError(
            f"{path} cannot be read and written by this user (uid {os.geteuid()}):"
            " change its owner or its permissions"
        )


def _lock(path: str) -> int:
    """Two locks on one file: POSIX for Kafka's tools, which take that one; BSD because a POSIX lock
    does not keep out a second node in the same process."""
    lock_path = f"{path}/{LOCK}"
    try:
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StorageError(f"cannot open {lock_path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        by = f"process {owner}" if owner.isdecimal() else "another process"
        raise DirectoryInUse(
            f"{path} is in use by {by}, which holds {lock_path}: stop it first"
        ) from error
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    except OSError as error:  # a full disk, of which this is the first write
        os.close(lock)
        raise StorageError(f"cannot write {lock_path}: {error.strerror}") from error
    return lock
