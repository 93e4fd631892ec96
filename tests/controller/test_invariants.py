"""Random lives of a cluster: the metadata's invariants hold after every committed batch.

A failing example prints its seed, which replays it.
"""

from random import Random
from typing import Any
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from controller.config import ControllerConfig
from controller.metadata.describe import describe
from controller.metadata.metadata_version import ELR_VERSION, METADATA_VERSION
from controller.metadata.partitions import PartitionState
from controller.metadata.topics import TopicImage
from tests.controller.clusters import CLUSTER_ID, FEATURES, directory, heartbeat, registration
from tests.controller.fake_log import Quorum
from tests.controller.invariants import Observer
from tests.examples import dear
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    DirectoryPartition,
    DirectoryTopic,
)
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerState,
    ElectLeadersRequest,
    IsrPartition,
    IsrTopic,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.registration import Feature, UnregisterBrokerRequest
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from wire.primitives import ZERO_UUID

CONTROLLERS = (3000, 3001, 3002)
BROKERS = (1, 2, 3, 4)
NAMES = ("a", "b", "c.d", "c_d")
STEPS = 60
ELR_FEATURE = Feature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1)


class Life:
    """A cluster that does something at random, again and again."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        features = {METADATA_VERSION: 25, ELR_VERSION: self.random.choice([0, 1])}
        self.quorum = Quorum()
        self.observer = Observer()
        self.seen = 0  # batches
        self.epochs: dict[int, int] = {}  # of the brokers' processes, as they know it
        self.created: dict[int, str] = {}  # requests to create a topic
        for node_id in CONTROLLERS:
            made = ControllerConfig(
                node_id=node_id,
                cluster_id=CLUSTER_ID,
                session_timeout_ms=1000,
                unclean_election_interval_ms=2000,
                leader_imbalance_check_interval_ms=2000,
                bootstrap_features={name: level for name, level in features.items() if level},
            )
            self.quorum.add(made, seed=seed ^ node_id)
        self.quorum.elect(CONTROLLERS[0])
        self.quorum.commit()

    def live(self) -> None:
        for broker_id in BROKERS:
            self.register_as(broker_id)
            self.quorum.ask(heartbeat(broker_id, self.epochs[broker_id], self.quorum.last_offset))
        self.create()
        actions = (
            [self.register] * 3
            + [self.beat] * 8
            + [self.alter] * 6
            + [self.create] * 3
            + [self.reassign] * 5
            + [self.elect, self.assign] * 2
            + [self.delete, self.extend, self.unregister, self.allocate]
            + [self.configure] * 4
            + [self.wait] * 3
            + [self.commit] * 6
            + [self.fail_over]
        )
        for _ in range(STEPS):
            self.random.choice(actions)()
            self.look()
        self.quorum.commit()
        self.look()

    def look(self) -> None:
        for batch in self.quorum.batches[self.seen : self.quorum.committed]:
            self.observer.see(batch)
        self.seen = self.quorum.committed
        expected = describe(self.observer.image.stable._replace(at=self.at()))
        for controller in self.quorum.controllers.values():
            assert describe(controller.image._replace(at=self.at())) == expected
        for number, reply in self.quorum.replies.items():
            self.check_reply(number, reply)
        self.quorum.replies.clear()

    def at(self) -> Any:
        return self.observer.image.at

    def check_reply(self, number: int, reply: Any) -> None:
        """M-LOST: what was acknowledged is there."""
        name = self.created.pop(number, None)
        if name is not None and reply.topics[0].error_code is ErrorCode.NONE:
            topic_id = reply.topics[0].topic_id
            gone = self.observer.image.topic_by_id(topic_id) is None
            assert not gone or self.deleted_since(topic_id), name

    def deleted_since(self, topic_id: UUID) -> bool:
        return any(topic_id.bytes in batch for batch in self.quorum.batches[: self.seen])

    # --- what may happen

    def register(self) -> None:
        self.register_as(self.random.choice(BROKERS))

    def register_as(self, broker_id: int) -> None:
        incarnation = UUID(int=self.random.getrandbits(120))
        was_clean = self.random.random() < 0.5
        number = self.quorum.ask(
            registration(
                broker_id,
                incarnation_id=incarnation,
                previous_broker_epoch=self.epochs.get(broker_id, -1) if was_clean else -1,
                features=(*FEATURES, ELR_FEATURE),
            )
        )
        self.quorum.commit()
        answer: Any = self.quorum.replies[number]
        if answer.error_code is ErrorCode.NONE:
            self.epochs[broker_id] = answer.broker_epoch

    def beat(self) -> None:
        broker_id = self.random.choice(BROKERS)
        epoch = self.epochs.get(broker_id, 5)
        offset = self.quorum.last_offset if self.random.random() < 0.9 else 0
        request = heartbeat(
            broker_id,
            epoch,
            offset,
            want_fence=self.random.random() < 0.05,
            want_shut_down=self.random.random() < 0.05,
        )
        self.quorum.ask(request)

    def some_partition(self) -> tuple[TopicImage, int, PartitionState] | None:
        """As it is, or as it was lately."""
        image = self.quorum.active.head if self.random.random() < 0.8 else self.observer.image
        if not image.topics.by_id:
            return None
        topic = image.topics.by_id[self.random.choice(sorted(image.topics.by_id))]
        return (topic, *self.random.choice(list(image.partitions_of(topic.id))))

    def alter(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, state = found
        leader = state.leader if self.random.random() < 0.9 else self.random.choice(BROKERS)
        members = self.random.sample(state.replicas, self.random.randint(1, len(state.replicas)))
        if self.random.random() < 0.5:
            members = [b for b in state.replicas if self.quorum.active.head.is_active(b)]
        if leader not in members and self.random.random() < 0.9:
            members.append(leader)
        asked = IsrPartition(
            partition_index=index,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=member, broker_epoch=self.epochs.get(member, -1))
                for member in members
            ),
        )
        self.quorum.ask(
            AlterPartitionRequest(
                broker_id=leader,
                broker_epoch=self.epochs.get(leader, -1),
                topics=(IsrTopic(topic_id=topic.id, partitions=(asked,)),),
            )
        )

    def create(self) -> None:
        name = self.random.choice(NAMES)
        made = CreatableTopic(
            name=name,
            num_partitions=self.random.randint(1, 4),
            replication_factor=self.random.randint(1, 3),
        )
        number = self.quorum.ask(CreateTopicsRequest(topics=(made,), timeout_ms=10_000))
        self.created[number] = name

    def delete(self) -> None:
        state = DeleteTopicState(name=self.random.choice(NAMES), topic_id=ZERO_UUID)
        self.quorum.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=10_000))

    def extend(self) -> None:
        topic = CreatePartitionsTopic(
            name=self.random.choice(NAMES), count=self.random.randint(1, 6), assignments=None
        )
        self.quorum.ask(
            CreatePartitionsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False)
        )

    def reassign(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, _ = found
        target = tuple(self.random.sample(BROKERS, self.random.randint(1, 3)))
        asked = ReassignablePartition(
            partition_index=index, replicas=target if self.random.random() < 0.7 else None
        )
        self.quorum.ask(
            AlterPartitionReassignmentsRequest(
                topics=(ReassignableTopic(name=topic.name, partitions=(asked,)),)
            )
        )

    def elect(self) -> None:
        self.quorum.ask(ElectLeadersRequest(election_type=self.random.choice([0, 0, 1])))

    def assign(self) -> None:
        found = self.some_partition()
        if found is None:
            return
        topic, index, _ = found
        broker_id = self.random.choice(BROKERS)
        where = self.random.choice([directory(broker_id), directory(broker_id), directory(99)])
        partition = DirectoryPartition(partition_index=index)
        there = DirectoryData(
            id_=where, topics=(DirectoryTopic(topic_id=topic.id, partitions=(partition,)),)
        )
        self.quorum.ask(
            AssignReplicasToDirsRequest(
                broker_id=broker_id,
                broker_epoch=self.epochs.get(broker_id, 5),
                directories=(there,),
            )
        )

    def configure(self) -> None:
        key, values = self.random.choice(
            [
                ("unclean.leader.election.enable", ["true", "false"]),
                ("min.insync.replicas", ["1", "2", "3"]),
            ]
        )
        change = AlterableConfig(name=key, config_operation=0, value=self.random.choice(values))
        kind, name = self.random.choice([(2, self.random.choice(NAMES)), (4, "")])
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
        self.quorum.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))

    def unregister(self) -> None:
        self.quorum.ask(UnregisterBrokerRequest(broker_id=self.random.choice(BROKERS)))

    def allocate(self) -> None:
        broker_id = self.random.choice(BROKERS)
        self.quorum.ask(
            AllocateProducerIdsRequest(
                broker_id=broker_id, broker_epoch=self.epochs.get(broker_id, 5)
            )
        )

    def wait(self) -> None:
        self.quorum.pass_time(self.random.choice([50, 300, 600]), commit=False)

    def commit(self) -> None:
        self.quorum.commit(self.random.choice([None, 1, 2]))

    def fail_over(self) -> None:
        pending = len(self.quorum.batches) - self.quorum.committed
        others = [node_id for node_id in CONTROLLERS if node_id != self.quorum.leader_id]
        self.quorum.elect(self.random.choice(others), keep=self.random.randint(0, pending))


@dear(2)
@given(st.integers(0, 2**32))
@example(262143)  # a move ends and its last replica is fenced, committed at once
def test_invariants_hold_in_any_life(seed: int) -> None:
    Life(seed).live()
