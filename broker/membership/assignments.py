"""AssignReplicasToDirs: report to the controller in which directory each replica lies.

When a directory fails, the controller can tell only by that which replicas are lost (KIP-858). One
request is in flight at a time; the assignments that come meanwhile go into the next.

Source: KIP-858; Kafka's AssignmentsManager.
"""

from uuid import UUID

from broker.cluster import Incarnation
from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, Response
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    DirectoryPartition,
    DirectoryTopic,
)

__all__ = ["Assignments"]

_BATCH_MAX = 2250  # replicas in one request, as in Kafka
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
        *,
        incarnation: Incarnation,
        controller: ControllerChannel,
        retry_backoff_ms: int,
        timeout_ms: int,
    ) -> None:
        self._incarnation = incarnation
        self._controller = controller
        self._retry_backoff_ms = retry_backoff_ms
        self._timeout_ms = timeout_ms
        self._wanted: dict[Replica, UUID] = {}
        self._in_flight: dict[Replica, UUID] | None = None
        self._next_send_ms = 0

    def want(self, topic_id: UUID, index: int, directory_id: UUID) -> None:
        """The replica lies in that directory, and the controller does not know. Sent at `tick`."""
        self._wanted[(topic_id, index)] = directory_id

    def forget(self, topic_id: UUID, index: int) -> None:
        self._wanted.pop((topic_id, index), None)

    def tick(self, now_ms: int) -> None:
        if self._in_flight is not None or not self._wanted or now_ms < self._next_send_ms:
            return
        batch = dict(list(self._wanted.items())[:_BATCH_MAX])
        ours = self._incarnation
        sent = self._controller.ask(
            assign_replicas_request(batch, ours.node_id, ours.broker_epoch),
            channel="assign-replicas",
            timeout_ms=self._timeout_ms,
            answered=self._answered,
        )
        if sent:
            self._in_flight = batch
        else:
            self._next_send_ms = now_ms + self._retry_backoff_ms

    def deadline_ms(self) -> int | None:
        return self._next_send_ms if self._wanted and self._in_flight is None else None

    def _answered(self, event: Event, now_ms: int) -> None:
        assert self._in_flight is not None
        asked, self._in_flight = self._in_flight, None
        body = event.body if isinstance(event, Response) else None
        settled = settled_in(body) if isinstance(body, AssignReplicasToDirsResponse) else set()
        for replica, directory_id in asked.items():
            if replica in settled and self._wanted.get(replica) == directory_id:
                del self._wanted[replica]
        if not settled.issuperset(asked):
            self._next_send_ms = now_ms + self._retry_backoff_ms
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
    batch: dict[Replica, UUID], node_id: int, broker_epoch: int
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
