"""AlterReplicaLogDirs says in which data directory a replica is to lie.

A replica that this broker does not have yet will be created there. One that it has stays where it
is: to move it is refused, as an operation that is not supported.

Source: KIP-113; Kafka's ReplicaManager.alterReplicaLogDirs.
"""

from uuid import UUID

from broker.config import BrokerConfig
from broker.log_dirs import LogDirs
from broker.partition.partition import Offline
from broker.replicas import Replicas
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from wire.primitives import ZERO_UUID

__all__ = ["alter_replica_log_dirs"]

_NAME_MAX = 255  # of a directory, in characters
_FUTURE_SUFFIX_LENGTH = len(".-future") + 32  # of the copy while Kafka moves a replica


def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest,
    *,
    replicas: Replicas,
    log_dirs: LogDirs,
    config: BrokerConfig,
) -> AlterReplicaLogDirsResponse:
    """One answer for each replica: the last directory that is named for it counts."""
    ids = {path: directory_id for directory_id, path in config.log_dir_paths.items()}
    wanted = {
        (topic.name, index): ids.get(directory.path)
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (name, index), directory_id in wanted.items():
        error = _altered(name, index, directory_id, replicas, log_dirs)
        result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
        results.setdefault(name, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(found))
            for name, found in results.items()
        )
    )


def _altered(
    name: str, index: int, directory_id: UUID | None, replicas: Replicas, log_dirs: LogDirs
) -> ErrorCode:
    log = f"{name}-{index}"
    if len(log) + _FUTURE_SUFFIX_LENGTH > _NAME_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if directory_id is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory_id not in log_dirs.online:
        return ErrorCode.KAFKA_STORAGE_ERROR
    found = replicas.find(name, ZERO_UUID, index)
    if found is ErrorCode.NOT_LEADER_OR_FOLLOWER:  # it lies elsewhere
        log_dirs.prefer(log, directory_id)
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if isinstance(found, ErrorCode):
        return found
    if found.log is None:
        is_offline = isinstance(found.role, Offline)
        return ErrorCode.KAFKA_STORAGE_ERROR if is_offline else ErrorCode.REPLICA_NOT_AVAILABLE
    if found.directory_id != directory_id:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE
