"""Requests of the consumer protocol (KIP-848) are answered by the coordinator of each group.

They are refused while the cluster has `group.version` 0.

Source: Kafka's KafkaApis, handleConsumerGroupHeartbeat and handleConsumerGroupDescribe.
"""

from collections.abc import Callable
from random import Random

from broker.cluster import Cluster
from broker.config import GroupConfig
from broker.groups.consumer.beating import Beat
from broker.groups.consumer.consumer_describing import not_described
from broker.groups.consumer.consumer_groups import refused
from broker.groups.consumer.heartbeat_checks import Refusal, request_refusal
from broker.groups.coordinator import Coordinator
from broker.groups.group_coordinators import GroupCoordinators
from controller.metadata.metadata_version import GROUP_VERSION
from controller.metadata.security import ON_GROUP
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from wire.capabilities import Lacking
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    DescribedConsumerGroup,
)
from wire.primitives import OPERATIONS_OMITTED, random_uuid, uuid_text

__all__ = ["ConsumerCoordination"]


class ConsumerCoordination:
    def __init__(
        self,
        *,
        config: GroupConfig,
        cluster: Cluster,
        coordinators: GroupCoordinators,
        outbox: Outbox,
        random: Random,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._coordinators = coordinators
        self._outbox = outbox
        self._random = random
        self.routes: dict[type, Callable[[Request, int], None]] = {
            ConsumerGroupHeartbeatRequest: self._heartbeat,
            ConsumerGroupDescribeRequest: self._describe,
        }

    @property
    def _is_enabled(self) -> bool:
        return self._cluster.image.features.get(GROUP_VERSION, 0) > 0

    def _heartbeat(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, ConsumerGroupHeartbeatRequest), body
        found = self._coordinator_of(body, request.lacking)
        if isinstance(found, Refusal):
            self._reply(request, refused(found))
            return
        beat = Beat(
            request=body,
            member_id=body.member_id or uuid_text(random_uuid(self._random)),
            client_id=request.client_id or "",
            client_host=f"/{request.client_host}",  # as Java writes addresses
        )
        found.beat(request.token, beat, now_ms)

    def _coordinator_of(
        self, body: ConsumerGroupHeartbeatRequest, lacking: Lacking
    ) -> Coordinator | Refusal:
        if not self._is_enabled:
            return Refusal(ErrorCode.UNSUPPORTED_VERSION, None)
        refusal = request_refusal(body, lacking, self._config.consumer_assignors)
        if refusal is not None:
            return refusal
        found = self._coordinators.find(body.group_id)
        return Refusal(found, None) if isinstance(found, ErrorCode) else found

    def _describe(self, request: Request, _now_ms: int) -> None:
        body = request.body
        assert isinstance(body, ConsumerGroupDescribeRequest), body
        operations = ON_GROUP if body.include_authorized_operations else OPERATIONS_OMITTED
        groups = tuple(self._described(group_id, operations) for group_id in body.group_ids)
        self._reply(request, ConsumerGroupDescribeResponse(groups=groups))

    def _described(self, group_id: str, operations: int) -> DescribedConsumerGroup:
        if not self._is_enabled:
            return not_described(group_id, ErrorCode.UNSUPPORTED_VERSION, None)
        if not group_id:
            return not_described(group_id, ErrorCode.INVALID_GROUP_ID, None)
        found = self._coordinators.find(group_id)
        if isinstance(found, ErrorCode):
            return not_described(group_id, found, None)
        return found.describe_consumers(group_id, operations)

    def _reply(self, request: Request, body: object) -> None:
        self._outbox.emit(Reply(token=request.token, body=body))
