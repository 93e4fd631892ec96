"""DescribeLogDirs: where replicas lie, and how large they are."""

from typing import Any
from uuid import UUID

from broker.config import OWNER, BrokerConfig
from broker.log_dirs import LogDirs
from broker.partition.local_log import LocalLog
from broker.partition.partition import Partition
from broker.requests.log_dir_contents import describe_log_dirs
from controller.metadata.partitions import PartitionState
from quorum.core.effects import Retain, Trim, Trimmed
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.partitions import partition_of
from wire.batch import assign, data_batch, headers
from wire.errors import ErrorCode
from wire.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

FIRST, SECOND = UUID(int=1001), UUID(int=1002)
CONFIG = BrokerConfig(
    node_id=1,
    cluster_id="c",
    listeners=(),
    log_dirs=(FIRST, SECOND),
    log_dir_paths={FIRST: "/data/1", SECOND: "/data/2"},
)


def replica(topic: str, index: int, directory_id: UUID, size_bytes: int | None = 0) -> Partition:
    """One whose log is still being opened has no size."""
    wanted = PartitionState(replicas=(1,), isr=(1,), leader=1)
    made = partition_of(topic, index, wanted, topic_id=UUID(int=7))
    made.directory_id = directory_id
    if size_bytes is not None:
        made.log = LocalLog(LogState(log=made.name, size_bytes=size_bytes), Outbox(OWNER))
    return made


REPLICAS = (
    replica("orders", 0, FIRST, 10),
    replica("orders", 1, SECOND, 20),
    replica("parcels", 0, FIRST, 30),
    replica("parcels", 1, FIRST, None),
)


def described(
    request: DescribeLogDirsRequest, log_dirs: LogDirs | None = None
) -> dict[str, dict[tuple[str, int], int]]:
    response = describe_log_dirs(
        request, replicas=REPLICAS, log_dirs=log_dirs or LogDirs(CONFIG), config=CONFIG
    )
    return {
        result.log_dir: {
            (topic.name, partition.partition_index): partition.partition_size
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in response.results
    }


def test_every_directory_is_told_with_its_replicas() -> None:
    assert described(DescribeLogDirsRequest()) == {
        "/data/1": {("orders", 0): 10, ("parcels", 0): 30},
        "/data/2": {("orders", 1): 20},
    }


def test_only_what_is_asked_for_is_told() -> None:
    asked = DescribeLogDirsRequest(
        topics=(DescribableLogDirTopic(topic="orders", partitions=(1, 5)),)
    )
    assert described(asked) == {"/data/1": {}, "/data/2": {("orders", 1): 20}}


def test_failed_directory_is_told_as_such() -> None:
    log_dirs = LogDirs(CONFIG)
    log_dirs.fail(SECOND)
    response = describe_log_dirs(
        DescribeLogDirsRequest(), replicas=REPLICAS, log_dirs=log_dirs, config=CONFIG
    )
    assert [(result.log_dir, result.error_code) for result in response.results] == [
        ("/data/1", ErrorCode.NONE),
        ("/data/2", ErrorCode.KAFKA_STORAGE_ERROR),
    ]


# --- sizes --------------------------------------------------------------------------------------


def batch(base_offset: int) -> Any:
    made = data_batch([b"x" * 10], timestamp_ms=1)
    content = assign(made, base_offset=base_offset, leader_epoch=0)
    ((_, header),) = headers(content)
    return content, header


def test_size_follows_the_log() -> None:
    outbox = Outbox(OWNER)
    log = LocalLog(LogState(log="orders-0", size_bytes=500, end_offset=5), outbox)
    (first, one), (second, two) = batch(5), batch(6)
    log.append(first + second, (one, two))
    assert log.size_bytes == 500 + len(first) + len(second)
    log.truncate(6)
    assert log.size_bytes == 500 + len(first)
    outbox.take()

    log.high_watermark = 6
    log.trim(5)
    (trim,) = outbox.take()
    assert isinstance(trim, Trim)
    outbox.deliver(trim.token, trimmed(trim, 5, 80), 0)
    assert (log.start_offset, log.size_bytes) == (5, 80)

    log.retain(since_ms=None, bytes_max=1)
    (retain,) = outbox.take()
    assert isinstance(retain, Retain)
    outbox.deliver(retain.token, trimmed(retain, 6, 0), 0)
    assert (log.start_offset, log.size_bytes) == (6, 0)


def trimmed(effect: Trim | Retain, start_offset: int, size_bytes: int) -> Trimmed:
    return Trimmed(
        token=effect.token, log=effect.log, start_offset=start_offset, size_bytes=size_bytes
    )
