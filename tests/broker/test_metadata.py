"""A broker that loads a snapshot of the metadata obeys it as it would have obeyed the log."""

from uuid import UUID

from broker.membership.lifecycle import BrokerState
from broker.partition.partition import FollowerOf, LeaderOf
from controller.metadata.describe import describe
from quorum.core.application import State
from quorum.core.types import OffsetAndEpoch
from tests.broker.brokers import Brokers, batch_of
from wire import metadata_records as records
from wire.batch import data_batch
from wire.errors import ErrorCode

CLUSTER_DEFAULT = ""
BROKER_RESOURCE = 4
LOOK_MS = 600_000  # how often a broker looks for producers that are gone


def catch_up(brokers: Brokers, node_id: int, source: int) -> None:
    """Let a deaf broker load what another one gives, and read on from there."""
    state = brokers.brokers[source].state()
    assert isinstance(state, State)
    loading = brokers.brokers[node_id]
    for number, batch in enumerate(state.batches):
        loading.load(batch, is_first=number == 0)
    loading.loaded(OffsetAndEpoch(state.end_offset, 1), brokers.now_ms)
    brokers.skip_metadata(node_id)
    brokers.deaf.discard(node_id)
    brokers.settle()


def topics_on(brokers: Brokers, node_id: int) -> dict[str, type]:
    return {partition.name: type(partition.role) for partition in brokers.brokers[node_id].replicas}


def test_a_running_broker_obeys_what_changed_before_the_snapshot() -> None:
    brokers = Brokers(3).start()
    kept = brokers.create_topic("kept", (1, 2), (2, 1), (3, 1))
    brokers.create_topic("gone", (1, 2))
    brokers.create_topic("again", (2, 1))
    brokers.deaf.add(2)
    brokers.change("kept", 0, leader=2)
    brokers.delete_topic("gone")
    brokers.delete_topic("again")
    again = brokers.create_topic("again", (1, 2), number=0xDEF)
    brokers.create_topic("new", (2, 3), number=0xFED, min_insync_replicas="2")
    moved = records.PartitionChangeRecord(
        partition_id=2, topic_id=kept, replicas=(3, 2), isr=(3,), directories=(UUID(int=1),) * 2
    )
    brokers.write(moved)
    brokers.settle()
    assert "gone-0" in topics_on(brokers, 2)

    catch_up(brokers, 2, source=1)

    assert topics_on(brokers, 2) == {
        "kept-0": LeaderOf,
        "kept-1": LeaderOf,
        "kept-2": FollowerOf,
        "again-0": FollowerOf,
        "new-0": LeaderOf,
    }
    by_name = {partition.name: partition for partition in brokers.brokers[2].replicas}
    assert by_name["again-0"].topic_id == again
    assert by_name["new-0"].settings.min_insync_replicas == 2
    one, other = (brokers.brokers[node_id].cluster.image for node_id in (1, 2))
    assert describe(one) == describe(other)


def test_a_running_broker_hears_of_configs_and_brokers_by_a_snapshot() -> None:
    brokers = Brokers(3).start()
    brokers.create_topic("t", (2, 1))
    brokers.deaf.add(2)
    brokers.write(
        records.ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name=CLUSTER_DEFAULT,
            name="min.insync.replicas",
            value="2",
        )
    )
    brokers.fence(3)
    brokers.settle()
    catch_up(brokers, 2, source=1)
    (partition,) = brokers.brokers[2].replicas
    assert partition.settings.min_insync_replicas == 2
    assert not brokers.brokers[2].cluster.is_active(3)


def test_a_snapshot_may_be_the_first_that_a_broker_hears() -> None:
    brokers = Brokers(2).start()
    brokers.create_topic("t", (1, 2))
    brokers.kill(2)
    brokers.deaf.add(2)
    brokers.start(2)  # it waits for the metadata
    assert brokers.brokers[2].lifecycle.state is not BrokerState.RUNNING
    assert not brokers.brokers[2].cluster.is_published
    catch_up(brokers, 2, source=1)
    brokers.run(1000)
    assert brokers.brokers[2].cluster.is_published
    assert topics_on(brokers, 2) == {"t-0": FollowerOf}


def test_snapshot_that_cannot_be_loaded_stops_the_broker() -> None:
    brokers = Brokers(1).start()
    broken = data_batch([b"\x01\x02\x00\x00"], timestamp_ms=1)
    brokers.brokers[1].load(broken, is_first=True)
    brokers.settle()
    assert "cannot be loaded" in brokers.stops[1].reason


def test_there_is_nothing_to_give_before_the_first_record() -> None:
    brokers = Brokers(1).start()
    assert brokers.brokers[1].state() is not None
    brokers.deaf.add(1)
    brokers.kill(1)
    brokers.start(1)
    assert brokers.brokers[1].lifecycle.state is not BrokerState.RUNNING
    assert brokers.brokers[1].state() is None


def test_a_snapshot_of_a_log_that_is_not_known_whole_is_not_written() -> None:
    """It would lack what the log has, and the log could be trimmed."""
    brokers = Brokers(1).start()
    brokers.write(records.FeatureLevelRecord(name="metadata.version", feature_level=99))
    brokers.settle()
    assert brokers.brokers[1].lifecycle.state is BrokerState.RUNNING
    assert brokers.brokers[1].state() is None


def test_a_setting_of_the_broker_changes_while_it_runs() -> None:
    brokers = Brokers(1).start()
    brokers.create_topic("t", (1,))
    batch = batch_of(
        b"a", timestamp_ms=brokers.now_ms, producer_id=7, producer_epoch=0, base_sequence=0
    )
    assert brokers.produced(brokers.produce(1, "t", 0, batch)).error_code is ErrorCode.NONE
    producers = brokers.partition(1, "t", 0).open_log.producers
    brokers.run(LOOK_MS)
    assert producers.entry(7) is not None
    brokers.write(
        records.ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="1",
            name="producer.id.expiration.ms",
            value="1000",
        )
    )
    brokers.run(LOOK_MS)
    assert producers.entry(7) is None
