"""Members of the consumer protocol as clients are: they do as they are told, say all of it after an
answer was lost, and begin anew when they are fenced."""

from dataclasses import dataclass, field
from typing import Any

from broker.groups.consumer.consumer_records import by_topic
from broker.groups.consumer.consumer_values import TopicPartition
from tests.broker.brokers import Brokers
from tests.broker.groups.members import GROUP, PARTITIONS, TOPIC, Promises
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedPartitions,
)
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from wire.messages.groups import FindCoordinatorRequest

_FENCED = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


@dataclass
class ModernConsumer:
    """Its name is its member id: a process makes one, and keeps it."""

    brokers: Brokers
    promises: Promises
    name: str
    instance_id: str | None = None
    coordinator: int | None = None
    generation: int = 0  # its member epoch
    owned: frozenset[TopicPartition] = frozenset()
    is_sure: bool = False  # the last heartbeat was answered
    token: int | None = None
    asked: int = 0
    committing: dict[int, int] = field(default_factory=dict)
    turn: int = 0

    @property
    def assignment(self) -> tuple[int, ...]:
        return tuple(sorted(index for _, index in self.owned))

    def step(self) -> None:
        if self.token is not None:
            self._hear()
        elif self.coordinator is None:
            self._find()
        else:
            self.turn += 1
            is_member = self.generation > 0 and self.is_sure
            (self._beat, self._commit, self._fetch)[self.turn % 3 if is_member else 0]()

    def leave(self) -> None:
        if self.coordinator in self.brokers.brokers and self.generation > 0:
            self._ask(self._request(-1))

    def disconnected(self, node_id: int) -> None:
        if self.token is not None and self.asked == node_id:
            self.token = None
            self._seek()

    def _seek(self) -> None:
        self.coordinator, self.is_sure = None, False

    def _find(self) -> None:
        for node_id, broker in self.brokers.brokers.items():
            if broker.serves_clients:
                request = FindCoordinatorRequest(coordinator_keys=(GROUP,))
                (found,) = self.brokers.call(node_id, request).coordinators
                self.coordinator = found.node_id if found.error_code is ErrorCode.NONE else None
                return

    def _ask(self, body: object) -> None:
        assert self.coordinator is not None
        if self.coordinator not in self.brokers.brokers:
            self._seek()
            return
        self.asked = self.coordinator
        self.token = self.brokers.ask(self.coordinator, body)

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        is_full = epoch == 0 or not self.is_sure
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.name,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=9000 if is_full else -1,
            subscribed_topic_names=(TOPIC,) if is_full else None,
            topic_partitions=tuple(
                OwnedPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(self.owned).items()
            ),
        )

    def _beat(self) -> None:
        self._ask(self._request(self.generation))

    def _commit(self) -> None:
        if not self.owned:
            return
        self.committing = {index: self.promises.next_offset(index) for index in self.assignment}
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in self.committing.items()
        )
        self._ask(
            OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=self.generation,
                member_id=self.name,
                group_instance_id=self.instance_id,
                topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
            )
        )

    def _fetch(self) -> None:
        topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=tuple(range(PARTITIONS))),)
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        self._ask(OffsetFetchRequest(groups=(group,), require_stable=True))

    # --- hearing

    def _hear(self) -> None:
        assert self.token is not None
        if self.token in self.brokers.answers:
            token, self.token = self.token, None
            self._heard(self.brokers.answers.pop(token))

    def _heard(self, body: Any) -> None:
        match body:
            case ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NONE):
                self._told(body)
            case ConsumerGroupHeartbeatResponse():
                self._refused(body.error_code)
            case OffsetCommitResponse():
                for told in body.topics[0].partitions:
                    if told.error_code is ErrorCode.NONE:
                        offset = self.committing[told.partition_index]
                        self.promises.acknowledged(told.partition_index, offset)
                self._refused(body.topics[0].partitions[0].error_code)
            case OffsetFetchResponse():
                (group,) = body.groups
                self._refused(group.error_code)
                for found in group.topics[0].partitions if group.topics else ():
                    self.promises.fetched(found.partition_index, found.committed_offset)

    def _told(self, body: ConsumerGroupHeartbeatResponse) -> None:
        self.generation, self.is_sure = body.member_epoch, True
        if body.assignment is not None:
            self.owned = frozenset(
                (each.topic_id, index)
                for each in body.assignment.topic_partitions
                for index in each.partitions
            )
        owner = self.instance_id or self.name
        self.promises.assigned(owner, self.generation, self.assignment)

    def _refused(self, error: ErrorCode) -> None:
        if error in (ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH):
            return  # its next heartbeat tells it the epoch
        if error in _FENCED:
            self.generation, self.owned = 0, frozenset()
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            self.generation, self.owned, self.instance_id = 0, frozenset(), None
        elif error is not ErrorCode.UNRELEASED_INSTANCE_ID:
            self._seek()
