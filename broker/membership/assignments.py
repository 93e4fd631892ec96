"""A broker reports in which directory each of its replicas lies (AssignReplicasToDirs).

When a directory fails, the controller can tell only by that which replicas are lost (KIP-858).

Source: KIP-858; Kafka's AssignmentsManager.
"""

from collections.abc import Mapping
from uuid import UUID

from broker.cluster import Incarnation
from broker.membership.controller_batches import ControllerBatches
from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, body_of
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    DirectoryPartition,
    DirectoryTopic,
)

__all__ = ["Assignments"]

_BATCH_MAX = 2250  # as in Kafka
_SETTLED = (
    ErrorCode.NONE,
    # The replica is not ours, or the topic is gone: the metadata log will say so, if it has not.
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
Replica = tuple[UUID, int]  # topic id, partition


class Assignments:
    def __init__(
        self,
        incarnation: Incarnation,
        controller: ControllerChannel,
        *,
        retry_backoff_ms: int,
        timeout_ms: int,
    ) -> None:
        self._incarnation = incarnation
        self._batches = ControllerBatches[Replica, UUID](
            controller=controller,
            channel="assign-replicas",
            batch_max=_BATCH_MAX,
            retry_backoff_ms=retry_backoff_ms,
            timeout_ms=timeout_ms,
        )

    def want(self, topic_id: UUID, index: int, directory_id: UUID) -> None:
        """The replica lies in that directory, and the controller does not know. Sent at `tick`."""
        self._batches.wanted[(topic_id, index)] = directory_id

    def forget(self, topic_id: UUID, index: int) -> None:
        self._batches.wanted.pop((topic_id, index), None)

    def tick(self, now_ms: int) -> None:
        batches, ours = self._batches, self._incarnation
        if batches.is_due(now_ms):
            batch = batches.next_batch()
            request = assign_replicas_request(batch, ours.node_id, ours.broker_epoch)
            batches.send(batch, request, self._answered, now_ms)

    def deadline_ms(self) -> int | None:
        return self._batches.deadline_ms()

    def _answered(self, event: Event, now_ms: int) -> None:
        asked, body = self._batches.take_asked(), body_of(event)
        settled = settled_in(body) if isinstance(body, AssignReplicasToDirsResponse) else set()
        for replica in settled.intersection(asked):
            self._batches.settle(replica, asked[replica])
        if not settled.issuperset(asked):
            self._batches.retry(now_ms)
        self.tick(now_ms)


def settled_in(body: AssignReplicasToDirsResponse) -> set[Replica]:
    """The replicas about which nothing more has to be said."""
    if body.error_code is not ErrorCode.NONE:
        return set()
    return {
        (topic.topic_id, result.partition_index)
        for directory in body.directories
        for topic in directory.topics
        for result in topic.partitions
        if result.error_code in _SETTLED
    }


def assign_replicas_request(
    batch: Mapping[Replica, UUID], node_id: int, broker_epoch: int
) -> AssignReplicasToDirsRequest:
    directories: dict[UUID, dict[UUID, list[DirectoryPartition]]] = {}
    for (topic_id, index), directory_id in batch.items():
        topics = directories.setdefault(directory_id, {})
        topics.setdefault(topic_id, []).append(DirectoryPartition(partition_index=index))
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=tuple(
            DirectoryData(
                id_=directory_id,
                topics=tuple(
                    DirectoryTopic(topic_id=topic_id, partitions=tuple(partitions))
                    for topic_id, partitions in topics.items()
                ),
            )
            for directory_id, topics in directories.items()
        ),
    )
