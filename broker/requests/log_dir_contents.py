"""DescribeLogDirs tells which replicas lie in which data directory, and how large they are.

A size is that of the log's batches. A log that was truncated behind the batches whose sizes are
known is reported too large until its next retention.

Source: KIP-113, KIP-827; Kafka's ReplicaManager.describeLogDirs.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID

from broker.config import BrokerConfig
from broker.log_dirs import LogDirs
from broker.partition.partition import Partition
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

__all__ = ["describe_log_dirs"]


def describe_log_dirs(
    request: DescribeLogDirsRequest,
    *,
    replicas: Iterable[Partition],
    log_dirs: LogDirs,
    config: BrokerConfig,
) -> DescribeLogDirsResponse:
    """Every directory, and what is asked for of its contents."""
    contents = _by_directory(request, replicas)

    def path(directory_id: UUID) -> str:
        return config.log_dir_paths.get(directory_id, str(directory_id))

    online = (
        DescribeLogDirsResult(log_dir=path(each), topics=tuple(_topics(contents.get(each, ()))))
        for each in log_dirs.online
    )
    failed = (
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path(each))
        for each in log_dirs.failed
    )
    return DescribeLogDirsResponse(results=(*online, *failed))


def _by_directory(
    request: DescribeLogDirsRequest, replicas: Iterable[Partition]
) -> dict[UUID, list[Partition]]:
    asked = None
    if request.topics is not None:
        asked = {(item.topic, index) for item in request.topics for index in item.partitions}
    found: dict[UUID, list[Partition]] = {}
    for partition in replicas:
        is_asked = asked is None or (partition.topic, partition.index) in asked
        if partition.log is not None and is_asked:
            found.setdefault(partition.directory_id, []).append(partition)
    return found


def _topics(partitions: Iterable[Partition]) -> Iterator[DescribeLogDirsTopic]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in partitions:
        described = DescribeLogDirsPartition(
            partition_index=partition.index, partition_size=partition.open_log.size_bytes
        )
        by_topic.setdefault(partition.topic, []).append(described)
    for name, found in by_topic.items():
        yield DescribeLogDirsTopic(name=name, partitions=tuple(found))
