"""Several data directories: where replicas go, what the controller hears, what a failure takes."""

from random import Random
from uuid import UUID

import pytest

from broker.config import BrokerConfig
from broker.log_dirs import LogDirs
from broker.membership.quorum_membership import QuorumMembership
from broker.partition.partition import Offline, Partition
from quorum.core.effects import FoundLog, StorageFailed, Token
from tests.broker.brokers import Brokers, batch_of
from tests.broker.memory_disk import Disk, MemoryLog
from wire.errors import ErrorCode
from wire.messages.log_dirs import AssignReplicasToDirsRequest
from wire.messages.registration import BrokerHeartbeatRequest, BrokerRegistrationRequest
from wire.metadata_records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from wire.primitives import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, ZERO_UUID

A, B, GONE = UUID(int=1001), UUID(int=0xB), UUID(int=0xC)
TOPIC = UUID(int=0x70)


def log_dirs(*found: tuple[str, UUID], has_offline: bool = False) -> LogDirs:
    config = BrokerConfig(
        node_id=1,
        cluster_id="c",
        listeners=(),
        log_dirs=(A, B),
        has_offline_log_dirs=has_offline,
    )
    logs = [FoundLog(log=log, topic_id=TOPIC, directory_id=each) for log, each in found]
    return LogDirs(config, logs)


# --- where a replica goes -------------------------------------------------------------------


def test_replica_goes_where_the_metadata_puts_it() -> None:
    assert log_dirs(("t-0", B)).place("t-1", B) == B


def test_replica_stays_where_its_log_is() -> None:
    assert log_dirs(("t-0", B)).place("t-0", A) == B


def test_of_two_copies_the_assigned_one_counts() -> None:
    found = (("t-0", A), ("t-0", B))
    assert log_dirs(*found).place("t-0", B) == B
    assert log_dirs(*found).place("t-0", A) == A


def test_log_that_was_found_in_a_directory_that_has_failed_is_not_created_elsewhere() -> None:
    """Whatever the metadata knows of it. (Cluster seed 192000911)."""
    dirs = log_dirs(("t-0", A))
    dirs.fail(A)
    assert dirs.place("t-0", DIRECTORY_UNASSIGNED) is None
    assert dirs.place("u-0", DIRECTORY_UNASSIGNED) == B, "this one was not found"


def test_replicas_without_a_place_go_where_the_fewest_are() -> None:
    dirs = log_dirs(("t-0", A))
    places = [dirs.place(f"u-{n}", DIRECTORY_UNASSIGNED) for n in range(5)]
    assert places == [B, A, B, A, B]
    dirs.removed("u-1")
    dirs.removed("u-3")
    assert dirs.place("v-0", DIRECTORY_UNASSIGNED) == A


def test_replica_of_a_lost_directory_is_created_anew_if_all_are_there() -> None:
    assert log_dirs().place("t-0", GONE) == A


@pytest.mark.parametrize("assigned", [GONE, DIRECTORY_MIGRATING])
def test_replica_is_not_created_anew_while_it_may_lie_in_an_offline_directory(
    assigned: UUID,
) -> None:
    assert log_dirs(has_offline=True).place("t-0", assigned) is None
    failed_since = log_dirs()
    assert failed_since.fail(B) == [B]
    assert failed_since.place("t-0", assigned) is None
    assert failed_since.place("t-0", DIRECTORY_UNASSIGNED) == A


def test_log_that_was_found_is_not_created_anew_when_its_directory_fails() -> None:
    dirs = log_dirs(("t-0", A))
    dirs.fail(A)
    assert dirs.place("t-0", DIRECTORY_UNASSIGNED) is None
    assert dirs.lies_in("t-0", DIRECTORY_UNASSIGNED) == A
    assert dirs.place("t-1", DIRECTORY_UNASSIGNED) == B
    dirs.removed("t-0")
    assert dirs.place("t-0", DIRECTORY_UNASSIGNED) == B, "another topic has its name now"


def test_directory_fails_once_and_is_told_from_then_on() -> None:
    dirs = log_dirs()
    assert dirs.fail(B) == [B]
    assert dirs.fail(B) == []
    assert dirs.failed == (B,)
    assert not dirs.are_all_offline
    assert dirs.fail(A) == [A]
    assert dirs.are_all_offline


# --- what the controller hears --------------------------------------------------------------


def registrations(brokers: Brokers) -> list[BrokerRegistrationRequest]:
    return [each for each in brokers.asked if isinstance(each, BrokerRegistrationRequest)]


def assignments(brokers: Brokers) -> list[AssignReplicasToDirsRequest]:
    return [each for each in brokers.asked if isinstance(each, AssignReplicasToDirsRequest)]


@pytest.fixture
def brokers() -> Brokers:
    """Broker 1 has two directories; the metadata puts all its replicas into the first."""
    cluster = Brokers(2, log_dir_failure_timeout_ms=5000)
    cluster.log_dirs[1] = (A, B)
    return cluster


def put_into_b(brokers: Brokers, *logs: str) -> None:
    """Broker 1 restarts, and finds these logs in its other directory."""
    brokers.kill(1)
    for log in logs:
        brokers.disks[1].logs[log].directory_id = B
    brokers.start(1)


def test_controller_hears_of_replicas_that_lie_elsewhere(brokers: Brokers) -> None:
    brokers.start()
    brokers.create_topic("t", (1, 2), (2, 1), (1, 2))
    put_into_b(brokers, "t-0", "t-1")
    brokers.run(10)
    (request,) = assignments(brokers)
    assert (request.broker_id, request.broker_epoch) == (1, brokers.epochs[1])
    (directory,) = request.directories
    assert directory.id_ == B
    (topic,) = directory.topics
    assert [each.partition_index for each in topic.partitions] == [0, 1]


@pytest.mark.parametrize("waits_to_lead", [False, True])
def test_directories_are_told_once_the_metadata_version_has_room_for_them(
    waits_to_lead: bool,
) -> None:
    """As after an upgrade from 3.6: neither registration nor replicas could name any."""
    brokers = Brokers(1).start()
    topic_id = brokers.create_topic("t", (1,))
    brokers.run(1000)
    own = brokers.brokers[1].cluster.own_registration
    assert own is not None
    brokers.asked.clear()
    brokers.write(
        FeatureLevelRecord(name="metadata.version", feature_level=16),
        RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=own.incarnation_id,
            broker_epoch=own.epoch,
            end_points=own.end_points,
            features=(),
            rack=None,
            fenced=False,
            log_dirs=(),
        ),
    )
    brokers.write(
        PartitionChangeRecord(topic_id=topic_id, partition_id=0, directories=(DIRECTORY_MIGRATING,))
    )
    brokers.run(1000)
    assert (registrations(brokers), assignments(brokers)) == ([], [])
    if waits_to_lead:
        brokers.rewrite_ms = 100_000
        brokers.change("t", 0, leader=-1)
        brokers.partition(1, "t", 0).open_log.reset(0)
        brokers.change("t", 0, leader=1)
    brokers.write(FeatureLevelRecord(name="metadata.version", feature_level=17))
    brokers.run(1000)
    (told,) = registrations(brokers)
    assert (told.incarnation_id, told.log_dirs) == (own.incarnation_id, (A,))
    (assigned,) = assignments(brokers)
    assert [directory.id_ for directory in assigned.directories] == [A]


def want_in_b_and_lose_answers(brokers: Brokers) -> None:
    put_into_b(brokers, "t-0")
    brokers.loses_answers = True
    membership = brokers.brokers[1].membership
    assert isinstance(membership, QuorumMembership)
    membership.assignments.want(brokers.topics["t"], 0, B)


def test_assignment_is_asked_again_until_it_is_answered(brokers: Brokers) -> None:
    brokers.start()
    brokers.create_topic("t", (1, 2))
    want_in_b_and_lose_answers(brokers)
    brokers.run(200)
    assert len(assignments(brokers)) > 2
    brokers.loses_answers = False
    brokers.run(1000)
    count = len(assignments(brokers))
    brokers.run(1000)
    assert len(assignments(brokers)) == count


def test_assignment_of_a_replica_that_is_gone_is_asked_no_more(brokers: Brokers) -> None:
    brokers.start()
    brokers.create_topic("t", (1, 2))
    want_in_b_and_lose_answers(brokers)
    brokers.delete_topic("t")
    brokers.asked.clear()
    brokers.run(1000)
    assert assignments(brokers) == []


def test_heartbeat_tells_at_once_of_a_directory_that_failed(brokers: Brokers) -> None:
    brokers.start()
    brokers.create_topic("t", (1,), (1,))
    put_into_b(brokers, "t-0")
    brokers.disks[1].failed.add(B)
    brokers.produce(1, "t", 0, batch_of(b"x"))
    refused = brokers.produce(1, "t", 0, batch_of(b"x"))
    asked = [each for each in brokers.asked if isinstance(each, BrokerHeartbeatRequest)]
    assert asked[-1].broker_id == 1
    assert asked[-1].offline_log_dirs == (B,)
    assert brokers.produced(refused).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    taken = brokers.produce(1, "t", 1, batch_of(b"x"))
    assert brokers.produced(taken).error_code is ErrorCode.NONE
    assert 1 in brokers.brokers


def test_broker_stops_if_the_controller_does_not_hear_of_it(brokers: Brokers) -> None:
    brokers.start()
    brokers.create_topic("t", (1,))
    put_into_b(brokers, "t-0")
    brokers.has_controller = False
    brokers.disks[1].failed.add(B)
    brokers.produce(1, "t", 0, batch_of(b"x"))
    brokers.run(4000)
    assert 1 not in brokers.stops
    brokers.run(2000)
    assert "failed data directory" in brokers.stops[1].reason


def test_broker_stops_when_no_directory_is_left(brokers: Brokers) -> None:
    brokers.start()
    brokers.create_topic("t", (1,), (1,))
    put_into_b(brokers, "t-0")
    brokers.disks[1].failed.update((A, B))
    brokers.produce(1, "t", 0, batch_of(b"x"))
    assert 1 not in brokers.stops
    brokers.produce(1, "t", 1, batch_of(b"x"))
    assert brokers.stops[1].exit_code == 1
    assert "no data directory is left" in brokers.stops[1].reason


def test_replica_in_a_directory_that_is_offline_from_the_start_is_offline(
    brokers: Brokers,
) -> None:
    brokers.start()
    brokers.create_topic("t", (1, 2), (2, 1))
    brokers.kill(1)
    brokers.disks[1].failed.add(A)  # where the metadata has both
    brokers.start(1)
    refused = brokers.produce(1, "t", 0, batch_of(b"x"))
    assert brokers.produced(refused).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert brokers.disks[1].logs["t-0"].directory_id == A, "not created anew"
    brokers.asked.clear()
    brokers.write(PartitionChangeRecord(topic_id=brokers.topics["t"], partition_id=0, isr=(2,)))
    brokers.run(1000)
    assert assignments(brokers) == [], "it stays where the metadata has it"


def test_directory_that_fails_under_a_recovery_leaves_the_replica_offline(
    brokers: Brokers,
) -> None:
    brokers.start()
    brokers.disks[1].failed.add(A)
    brokers.create_topic("t", (1, 2))
    brokers.run(100)
    refused = brokers.produce(1, "t", 0, batch_of(b"x"))
    assert brokers.produced(refused).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert brokers.brokers[1].replicas.are_open


def test_directory_that_fails_before_the_metadata_is_known_keeps_its_replicas(
    brokers: Brokers,
) -> None:
    """Found by cluster seed 192000911 of the simulator: the controller had not recorded where the
    only member of an ISR lay, and its log began anew elsewhere."""
    brokers.start()
    brokers.create_topic("t", (1, 2))
    brokers.kill(1)
    nowhere = (DIRECTORY_UNASSIGNED, DIRECTORY_UNASSIGNED)
    brokers.write(
        PartitionChangeRecord(topic_id=brokers.topics["t"], partition_id=0, directories=nowhere)
    )
    brokers.asked.clear()
    brokers.deaf.add(1)
    brokers.start(1)
    brokers.disks[1].failed.add(A)
    failed = StorageFailed(log="t-0", token=Token("", 0), reason="pulled out", directory_id=A)
    brokers.brokers[1].receive(failed, brokers.now_ms)
    brokers.deaf.clear()
    brokers.run(1000)
    assert brokers.disks[1].logs["t-0"].directory_id == A, "not created anew"
    replica = brokers.brokers[1].replicas.of_log("t-0")
    assert replica is not None
    assert isinstance(replica.role, Offline), "nor opened elsewhere"
    (request,) = [each for each in assignments(brokers) if each.broker_id == 1]
    assert [each.id_ for each in request.directories] == [A], "so that nobody elects it"


# --- strays ---------------------------------------------------------------------------------


def test_logs_that_are_not_assigned_are_set_aside_at_the_start() -> None:
    brokers = Brokers(2).start()
    kept = brokers.create_topic("kept", (1, 2), (2,))
    brokers.create_topic("gone", (1, 2))
    brokers.create_topic("again", (1, 2))
    brokers.produce(1, "again", 0, batch_of(b"old"))
    brokers.run(1000)
    brokers.kill(2)
    brokers.delete_topic("gone")
    brokers.delete_topic("again")
    brokers.create_topic("again", (1, 2), number=0xA6A17)
    brokers.disks[2].logs["kept-7"] = MemoryLog(kept, UUID(int=1002))
    brokers.start(2)
    brokers.run(2000)
    disk: Disk = brokers.disks[2]
    assert sorted(disk.strays) == ["again-0", "gone-0", "kept-7"]
    assert sorted(disk.logs) == ["again-0", "kept-0", "kept-1"]
    assert disk.logs["again-0"].topic_id == UUID(int=0xA6A17)
    assert disk.strays["again-0"].batches


@pytest.mark.parametrize("seed", range(20))
def test_no_log_that_is_assigned_is_ever_set_aside(seed: int) -> None:
    random = Random(seed)
    brokers = Brokers(2).start()
    live: set[str] = set()
    for number in range(30):
        name = f"t{random.randrange(4)}"
        match random.random():
            case chance if chance < 0.5 and name not in live:
                brokers.create_topic(name, (1, 2), number=0xF000 + number)
                live.add(name)
            case chance if chance < 0.7 and name in live:
                brokers.delete_topic(name)
                live.discard(name)
            case _ if 2 in brokers.brokers:
                brokers.kill(2)
            case _:
                brokers.start(2)
        if 2 in brokers.brokers:
            brokers.run(50)
            assert sorted(brokers.disks[2].logs) == sorted(f"{each}-0" for each in live)
            for each in live:
                log = brokers.disks[2].logs[f"{each}-0"]
                assert log.topic_id == brokers.topics[each]


def directories_told(brokers: Brokers) -> list[UUID]:
    """Of broker 1."""
    own = [each for each in assignments(brokers) if each.broker_id == 1]
    return [directory.id_ for request in own for directory in request.directories]


@pytest.mark.parametrize(
    ("isr", "elr", "is_lost"), [((1, 2), None, True), ((2,), (1,), True), ((2,), None, False)]
)
def test_replica_with_acknowledged_records_may_lie_in_any_directory_that_is_offline(
    brokers: Brokers, isr: tuple[int, ...], elr: tuple[int, ...] | None, is_lost: bool
) -> None:
    """Found by cluster seed 200000177 of the simulator: the only member of an ISR was killed before
    its report was answered, its directory failed, and its log began anew elsewhere."""
    brokers.start()
    brokers.create_topic("t", (1, 2), (2, 1))
    brokers.kill(1)
    brokers.write(
        PartitionChangeRecord(
            topic_id=brokers.topics["t"],
            partition_id=0,
            isr=isr,
            leader=2,
            eligible_leader_replicas=elr,
            directories=(DIRECTORY_UNASSIGNED, DIRECTORY_UNASSIGNED),
        )
    )
    brokers.disks[1].failed.add(A)
    brokers.asked.clear()
    brokers.start(1)
    brokers.run(1000)
    assert (DIRECTORY_LOST in directories_told(brokers)) == is_lost
    partition = brokers.brokers[1].replicas.find("t", ZERO_UUID, 0)
    assert isinstance(partition, Partition)
    assert isinstance(partition.role, Offline) == is_lost


def test_replica_of_a_new_topic_is_created_beside_a_directory_that_is_offline(
    brokers: Brokers,
) -> None:
    """It is in sync from the start, and cannot have been here before the process."""
    brokers.start(2)
    brokers.disks[1].failed.add(A)
    brokers.start(1)
    brokers.write(
        TopicRecord(name="t", topic_id=TOPIC),
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC,
            replicas=(1, 2),
            isr=(1, 2),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(DIRECTORY_UNASSIGNED, DIRECTORY_UNASSIGNED),
        ),
    )
    brokers.run(1000)
    assert brokers.disks[1].logs["t-0"].directory_id == B
    assert directories_told(brokers) == [B]
