"""AlterReplicaLogDirs: where a replica is to be created, and which moves are refused."""

import pytest

from tests.broker.brokers import Brokers
from tests.broker.test_log_dirs import A, B, log_dirs, put_into_b
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.metadata_records import PartitionChangeRecord
from wire.primitives import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

OFFLINE = "/c"  # known by name, not online


@pytest.fixture
def brokers() -> Brokers:
    """Broker 1 has two directories, and t-0 in the first of them; broker 2 has u-0."""
    paths = {A: "/a", B: "/b", DIRECTORY_MIGRATING: OFFLINE}
    cluster = Brokers(2, log_dir_paths=paths)
    cluster.log_dirs[1] = (A, B)
    cluster.start()
    cluster.create_topic("t", (1,))
    cluster.create_topic("u", (2,))
    cluster.run(10)
    return cluster


def altered(brokers: Brokers, *wanted: tuple[str, str, int]) -> dict[tuple[str, int], ErrorCode]:
    dirs = tuple(
        AlterReplicaLogDir(
            path=path, topics=(AlterReplicaLogDirTopic(name=topic, partitions=(index,)),)
        )
        for path, topic, index in wanted
    )
    response = brokers.call(1, AlterReplicaLogDirsRequest(dirs=dirs))
    return {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in response.results
        for each in topic.partitions
    }


@pytest.mark.parametrize(
    ("path", "topic", "index", "error"),
    [
        ("/a", "t", 0, ErrorCode.NONE),
        ("/b", "t", 0, ErrorCode.UNSUPPORTED_VERSION),
        ("/nowhere", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        (OFFLINE, "t", 0, ErrorCode.KAFKA_STORAGE_ERROR),
        ("/a", "u", 0, ErrorCode.REPLICA_NOT_AVAILABLE),
        ("/a", "t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/nowhere", "x" * 213, 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/nowhere", "x" * 214, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_each_replica_has_its_answer(
    brokers: Brokers, path: str, topic: str, index: int, error: ErrorCode
) -> None:
    """A directory's name has room for 255 characters: Kafka appends 40 while it moves a replica."""
    assert altered(brokers, (path, topic, index)) == {(topic, index): error}


def test_replica_whose_log_is_being_opened_is_not_available_yet(brokers: Brokers) -> None:
    brokers.partition(1, "t", 0).log = None
    assert altered(brokers, ("/a", "t", 0)) == {("t", 0): ErrorCode.REPLICA_NOT_AVAILABLE}


def test_last_directory_counts_that_is_named_for_a_replica(brokers: Brokers) -> None:
    assert altered(brokers, ("/b", "t", 0), ("/a", "t", 0)) == {("t", 0): ErrorCode.NONE}


def test_replica_that_cannot_be_used_is_not_answered_for(brokers: Brokers) -> None:
    put_into_b(brokers, "t-0")
    brokers.run(10)
    brokers.partition(1, "t", 0).close(ErrorCode.KAFKA_STORAGE_ERROR)
    assert altered(brokers, ("/a", "t", 0)) == {("t", 0): ErrorCode.KAFKA_STORAGE_ERROR}


def test_replica_that_comes_later_is_created_where_it_was_asked_for(brokers: Brokers) -> None:
    brokers.create_topic("v", (2,), (2,), (2,))
    brokers.run(10)
    asked = [("/a", "v", 0), ("/a", "v", 1), ("/b", "v", 2)]
    assert set(altered(brokers, *asked).values()) == {ErrorCode.REPLICA_NOT_AVAILABLE}
    id_of_v = brokers.topics["v"]
    brokers.write(
        *(
            PartitionChangeRecord(partition_id=index, topic_id=id_of_v, replicas=(2, 1))
            for index in range(3)
        )
    )
    brokers.run(10)
    assert [brokers.partition(1, "v", index).directory_id for index in range(3)] == [A, A, B]


def test_preference_for_what_does_not_exist_is_not_kept(brokers: Brokers) -> None:
    brokers.create_topic("w", (1,))  # goes into B: A is the next one
    assert altered(brokers, ("/b", "v", 0)) == {("v", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    brokers.create_topic("v", (1,))
    brokers.run(10)
    assert brokers.partition(1, "v", 0).directory_id == A


def test_preference_yields_to_a_log_that_is_there_or_may_be() -> None:
    dirs = log_dirs(("t-0", A))
    dirs.prefer("t-0", B)
    assert dirs.place("t-0", DIRECTORY_UNASSIGNED) == A
    dirs.prefer("t-1", A)
    assert dirs.place("t-1", B) == A, "over what the metadata assigns"
    dirs.removed("t-1")
    assert dirs.place("t-1", B) == B, "for once"
    dirs.prefer("t-2", B)
    dirs.fail(B)
    assert dirs.place("t-2", A) == A
    offline = log_dirs(has_offline=True)
    offline.prefer("t-0", A)
    assert offline.place("t-0", DIRECTORY_MIGRATING) is None
