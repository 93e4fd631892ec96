"""The small files of a data directory in Kafka's formats: text to values and back.

Pure: `quorum.log.files.disk` reads and replaces the files. Readers are strict. What they do not
expect is `CorruptFile`, which names the file and the line: a node must not guess what it had
promised.

    leader-epoch-checkpoint           "0", entry count, then `<epoch> <start offset>` a line
    *-offset-checkpoint               "0", entry count, then `<topic> <partition> <offset>` a line
    quorum-state                      one JSON object, version 0 or 1 (KIP-595, KIP-853)
    meta.properties                   Java properties, version 0 (ZooKeeper) or 1 (KRaft)
    partition.metadata                `version: 0`, `topic_id: <uuid>`
    .kafka_cleanshutdown              {"version":0,"brokerEpoch":N}

Source: Kafka's CheckpointFile, FileQuorumStateStore, MetaProperties, PartitionMetadataFile and
CleanShutdownFileHandler.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

from quorum.core.effects import EpochStart
from quorum.core.storage import StorageError
from quorum.core.types import ElectionState, ReplicaKey
from wire.primitives import INT32_MAX, INT64_MAX, ZERO_UUID, parse_uuid, uuid_text

__all__ = [
    "CLEANED_OFFSETS",
    "CLEAN_SHUTDOWN",
    "ELECTION_VERSION_MAX",
    "EPOCHS",
    "HIGH_WATERMARKS",
    "LOG_STARTS",
    "META_PROPERTIES",
    "PARTITION_METADATA",
    "QUORUM_STATE",
    "RECOVERY_POINTS",
    "CorruptFile",
    "MetaProperties",
    "clean_shutdown_epoch",
    "format_clean_shutdown",
    "format_election",
    "format_epochs",
    "format_meta_properties",
    "format_offsets",
    "format_partition_metadata",
    "offset_line",
    "parse_clean_shutdown",
    "parse_election",
    "parse_epochs",
    "parse_meta_properties",
    "parse_offsets",
    "parse_partition_metadata",
]

EPOCHS = "leader-epoch-checkpoint"
QUORUM_STATE = "quorum-state"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"

ELECTION_VERSION_MAX = 1  # of quorum-state; the version is that of the kraft.version in force
_CHECKPOINT_VERSION = 0
_NO_ID = -1
_T = TypeVar("_T")
_FILL_AGAIN = "or, if enough other replicas are healthy, {} and let them fill it again"
_WAYS_OUT = {
    META_PROPERTIES: "restore it from a backup",
    QUORUM_STATE: "it holds this node's vote: restore it from a backup, "
    + _FILL_AGAIN.format("format a new directory"),
    PARTITION_METADATA: "restore it from a backup, "
    + _FILL_AGAIN.format("remove that log's directory"),
    RECOVERY_POINTS: "restore it from a backup, or remove it: then all logs are checked from end "
    "to end",
    CLEANED_OFFSETS: "remove it: compacted logs are cleaned from their start once more",
    LOG_STARTS: "restore it from a backup, or remove it: then logs start where their files do",
    HIGH_WATERMARKS: "restore it from a backup, or remove it: the brokers agree on them anew",
}


class CorruptFile(StorageError):
    """A file that is not what it should be."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        where = path if line is None else f"{path}, line {line}"
        way_out = _WAYS_OUT.get(path.rpartition("/")[2])
        super().__init__(f"{where}: {problem}" + (f"; {way_out}" if way_out else ""))


# --- lists of numbers -----------------------------------------------------------------------


def format_epochs(epochs: Sequence[EpochStart]) -> bytes:
    return _format_lines(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def parse_epochs(content: bytes, path: str) -> tuple[EpochStart, ...]:
    epochs = _parse_lines(content, path, _parse_epoch)
    for line, (before, after) in enumerate(pairwise(epochs), start=4):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            raise CorruptFile(path, line, "epochs and offsets must rise from line to line")
    return tuple(epochs)


def offset_line(topic: str, partition: int, offset: int) -> str:
    return f"{topic} {partition} {offset}"


def format_offsets(lines: Iterable[str]) -> bytes:
    """A file of lines from `offset_line`."""
    return _format_lines(lines)


def parse_offsets(content: bytes, path: str) -> dict[tuple[str, int], int]:
    entries = _parse_lines(content, path, _parse_offset)
    return {(topic, partition): offset for topic, partition, offset in entries}


def _format_lines(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "\n".join([str(_CHECKPOINT_VERSION), str(len(body)), *body, ""]).encode()


def _parse_lines(content: bytes, path: str, parse: Callable[[list[str]], _T]) -> list[_T]:
    """An empty file has no entries, as in Kafka."""
    lines = _decode(content, path).split("\n")
    if lines == [""]:
        return []
    if lines[0] != str(_CHECKPOINT_VERSION):
        raise CorruptFile(path, 1, f"version {_CHECKPOINT_VERSION} expected, not {lines[0]!r}")
    if len(lines) < 2 or not lines[1].isdecimal():
        raise CorruptFile(path, 2, "number of entries expected")
    while lines[-1] == "":
        lines.pop()
    if len(lines) - 2 != int(lines[1]):
        raise CorruptFile(path, 2, f"{lines[1]} entries announced, {len(lines) - 2} found")
    entries = []
    for number, line in enumerate(lines[2:], start=3):
        try:
            entries.append(parse(line.split(" ")))
        except ValueError as error:
            raise CorruptFile(path, number, f"malformed line {line!r}: {error}") from error
    return entries


def _parse_epoch(words: list[str]) -> EpochStart:
    epoch, start_offset = words
    return EpochStart(_number(epoch, INT32_MAX), _number(start_offset, INT64_MAX))


def _parse_offset(words: list[str]) -> tuple[str, int, int]:
    topic, partition, offset = words
    return topic, _number(partition, INT32_MAX), _number(offset, INT64_MAX)


def _number(text: str, largest: int) -> int:
    value = int(text)
    if not 0 <= value <= largest:
        raise ValueError(f"{value} is out of range")
    return value


# --- quorum-state ---------------------------------------------------------------------------


def format_election(
    election: ElectionState, *, version: int = 1, voters: Sequence[int] = ()
) -> bytes:
    """Version 0 belongs to kraft.version 0: it cannot hold the directory id of a vote, and names
    the voters for whoever reads the file."""
    assert 0 <= version <= ELECTION_VERSION_MAX, version
    leader_id = _NO_ID if election.leader_id is None else election.leader_id
    voted = election.voted or ReplicaKey(_NO_ID)
    state: dict[str, object] = {
        "leaderId": leader_id,
        "leaderEpoch": election.epoch,
        "votedId": voted.id,
    }
    if version == 0:
        named = [{"voterId": voter} for voter in voters]
        state = {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": named}
    else:
        state["votedDirectoryId"] = uuid_text(voted.directory_id)
    state["data_version"] = version
    return json.dumps(state, separators=(",", ":")).encode()


def parse_election(content: bytes, path: str) -> ElectionState:
    state = _parse_object(content, path)
    version = _integer(state, "data_version", path)
    if not 0 <= version <= ELECTION_VERSION_MAX:
        raise CorruptFile(path, None, f"data_version {version} is not known")
    epoch = _integer(state, "leaderEpoch", path)
    leader_id = _integer(state, "leaderId", path)
    voted_id = _integer(state, "votedId", path)
    if min(epoch, leader_id, voted_id) < _NO_ID:
        raise CorruptFile(path, None, "an epoch or id below -1")
    directory_id = ZERO_UUID
    if version >= 1:
        try:
            directory_id = parse_uuid(str(state.get("votedDirectoryId")))
        except ValueError as error:
            raise CorruptFile(path, None, f"votedDirectoryId: {error}") from error
    return ElectionState(
        epoch=max(epoch, 0),
        leader_id=None if leader_id == _NO_ID else leader_id,
        voted=None if voted_id == _NO_ID else ReplicaKey(voted_id, directory_id),
    )


def _parse_object(content: bytes, path: str) -> dict[str, object]:
    try:
        value = json.loads(content)
    except ValueError as error:  # also what is not UTF-8
        raise CorruptFile(path, getattr(error, "lineno", None), f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise CorruptFile(path, 1, "a JSON object expected")
    return value


def _integer(state: Mapping[str, object], name: str, path: str) -> int:
    value = state.get(name)
    if type(value) is not int:
        raise CorruptFile(path, None, f"{name} must be an integer, not {value!r}")
    return value


# --- clean shutdown -------------------------------------------------------------------------


def clean_shutdown_epoch(before: int | None, broker_epoch: int) -> int:
    """The epoch in the mark that an orderly stop leaves.

    `before` is that of a mark that still lies there: no log was opened since. A process that never
    registered has no epoch (-1); it leaves the logs, and so the mark, as it found them.
    """
    return before if before is not None and broker_epoch < 0 else broker_epoch


def format_clean_shutdown(broker_epoch: int) -> bytes:
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def parse_clean_shutdown(content: bytes) -> int:
    """The broker epoch, or -1: older releases leave an empty file or plain text."""
    try:
        value = json.loads(content)
    except ValueError:
        return _NO_ID
    epoch = value.get("brokerEpoch") if isinstance(value, dict) else None
    return epoch if type(epoch) is int else _NO_ID


# --- properties -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """To whom a data directory belongs. Version 0 has a broker.id, which is the node id."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None  # None: written before directories had ids
    version: int = 1


def format_meta_properties(meta: MetaProperties) -> bytes:
    values = {"cluster.id": meta.cluster_id, "node.id": str(meta.node_id), "version": "1"}
    if meta.directory_id is not None:
        values["directory.id"] = uuid_text(meta.directory_id)
    return "".join(f"{name}={_escape(values[name])}\n" for name in sorted(values)).encode()


def parse_meta_properties(content: bytes, path: str) -> MetaProperties:
    values = _parse_properties(content, path)
    version, _ = values.get("version", ("0", None))
    if version not in ("0", "1"):
        raise CorruptFile(path, values["version"][1], f"version {version} is not known")
    id_name = "node.id" if version == "1" else "broker.id"
    for name in ("cluster.id", id_name):
        if not values.get(name, ("", None))[0]:
            raise CorruptFile(path, None, f"{name} is missing")
    node_id, line = values[id_name]
    if not node_id.isdecimal() or int(node_id) > INT32_MAX:
        raise CorruptFile(path, line, f"{id_name} must be a number, not {node_id!r}")
    directory_id = None
    if "directory.id" in values:
        text, line = values["directory.id"]
        try:
            directory_id = parse_uuid(text)
        except ValueError as error:
            raise CorruptFile(path, line, f"directory.id: {error}") from error
    return MetaProperties(
        cluster_id=values["cluster.id"][0],
        node_id=int(node_id),
        directory_id=directory_id,
        version=int(version),
    )


def _parse_properties(content: bytes, path: str) -> dict[str, tuple[str, int]]:
    """Values with their line. Of Java's format: comments, blanks around names, escaped characters;
    not: continued lines, `:` or a blank in place of `=`."""
    values = {}
    for number, line in enumerate(_decode(content, path).splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, separator, value = stripped.partition("=")
        if not separator:
            raise CorruptFile(path, number, f"name=value expected, not {stripped!r}")
        values[name.strip()] = (_unescape(value.strip()), number)
    return values


def _escape(value: str) -> str:
    return "".join(f"\\{c}" if c in "\\=:#!" else c for c in value)


def _unescape(value: str) -> str:
    parts = value.split("\\\\")
    return "\\".join(part.replace("\\", "") for part in parts)


def format_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def parse_partition_metadata(content: bytes | None, path: str) -> UUID | None:
    """None without a file, or where a power failure has left nothing of one that was not synced."""
    if content is None or not content.strip(b"\0"):
        return None
    lines = _decode(content, path).splitlines()
    if not lines or lines[0].strip() != "version: 0":
        raise CorruptFile(path, 1, "'version: 0' expected")
    name, _, value = lines[1].partition(":") if len(lines) > 1 else ("", "", "")
    try:
        if name.strip() != "topic_id":
            raise ValueError(f"'topic_id: <uuid>' expected, not {name!r}")
        return parse_uuid(value.strip())
    except ValueError as error:
        raise CorruptFile(path, 2, str(error)) from error


def _decode(content: bytes, path: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CorruptFile(path, content.count(b"\n", 0, error.start) + 1, str(error)) from error
