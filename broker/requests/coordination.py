"""Requests about consumer groups are answered by the coordinator of each group.

Each request goes to the coordinator of its group (broker/groups/) or is refused, and the answers of
requests about several groups are put together.

FindCoordinator finds those of transactions, too: their requests are answered in transactions.py.

Source: Kafka's KafkaApis and GroupCoordinatorService.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

from broker.cluster import Cluster
from broker.config import GroupConfig
from broker.groups import offsets, transactional_offsets
from broker.groups.coordinator import Coordinator
from broker.groups.describing import describe, list_groups
from broker.groups.group_coordinators import GroupCoordinators
from broker.groups.joiner import Joiner, join_refusal
from broker.requests.auto_creation import AutoCreation
from broker.transactions.transaction_coordinator import TransactionCoordinators
from broker.waiting import Answers
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from wire.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from wire.primitives import random_uuid

__all__ = ["Coordination"]

_Topic = TypeVar("_Topic", OffsetCommitRequestTopic, OffsetFetchRequestTopics)
_GROUP, _TRANSACTION = 0, 1  # FindCoordinator's key types
_NAME_IN_ID_MAX = 8000  # characters: a string of the protocol has 32767 bytes, and more follows it


class Coordination:
    def __init__(
        self,
        *,
        config: GroupConfig,
        cluster: Cluster,
        coordinators: GroupCoordinators,
        transactions: TransactionCoordinators,
        auto_creation: AutoCreation,
        outbox: Outbox,
        random: Random,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._coordinators = coordinators
        self._by_key_type: dict[int, GroupCoordinators | TransactionCoordinators] = {
            _GROUP: coordinators,
            _TRANSACTION: transactions,
        }
        self._auto_creation = auto_creation
        self._outbox = outbox
        self._random = random
        self.routes: dict[type, Callable[[Request, int], None]] = {
            FindCoordinatorRequest: self._find_coordinator,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            OffsetCommitRequest: self._commit,
            TxnOffsetCommitRequest: self._commit_in_transaction,
            OffsetFetchRequest: self._fetch,
            OffsetDeleteRequest: self._delete_offsets,
            ListGroupsRequest: self._list,
            DescribeGroupsRequest: self._describe,
            DeleteGroupsRequest: self._delete,
        }

    # --- FindCoordinator --------------------------------------------------------------------

    def _find_coordinator(self, request: Request, _now_ms: int) -> None:
        body = request.body
        assert isinstance(body, FindCoordinatorRequest), body
        keys, coordinators = body.coordinator_keys, self._by_key_type.get(body.key_type)
        if coordinators is None:
            found = tuple(refused_coordinator(key, body.key_type) for key in keys)
        else:
            found = tuple(self._locate(coordinators, key, request) for key in keys)
        self._reply(request, FindCoordinatorResponse(coordinators=found))

    def _locate(
        self,
        coordinators: GroupCoordinators | TransactionCoordinators,
        key: str,
        request: Request,
    ) -> FoundCoordinator:
        endpoint = coordinators.locate(key, request.listener)
        if endpoint is not None:
            return FoundCoordinator(
                key=key, node_id=endpoint.node_id, host=endpoint.host, port=endpoint.port
            )
        if not coordinators.has_topic:
            self._auto_creation.create(coordinators.topic)
        return FoundCoordinator(key=key, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # --- members ----------------------------------------------------------------------------

    def _find(self, group_id: str) -> Coordinator | ErrorCode:
        """For requests of members: a group has a name then."""
        return self._coordinators.find(group_id) if group_id else ErrorCode.INVALID_GROUP_ID

    def _join(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, JoinGroupRequest), body
        found = self._find(body.group_id)
        if isinstance(found, Coordinator) and not self._is_session(body.session_timeout_ms):
            found = ErrorCode.INVALID_SESSION_TIMEOUT
        if isinstance(found, ErrorCode):
            self._reply(request, join_refusal(body.member_id, found))
            return
        client_id = request.client_id or ""
        name = client_id if body.group_instance_id is None else body.group_instance_id
        joiner = Joiner(
            token=request.token,
            request=body,
            client_id=client_id,
            client_host=f"/{request.client_host}",  # as Java writes addresses, and tools show them
            new_id=f"{name[:_NAME_IN_ID_MAX]}-{random_uuid(self._random)}",
            needs_id=Capability.JOINS_AGAIN_WITH_ITS_ID not in request.lacking,
            can_skip_assignment=Capability.SKIPS_ASSIGNMENT not in request.lacking,
        )
        found.join(joiner, now_ms)

    def _is_session(self, timeout_ms: int) -> bool:
        config = self._config
        return config.min_session_timeout_ms <= timeout_ms <= config.max_session_timeout_ms

    def _sync(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, SyncGroupRequest), body
        found = self._find(body.group_id)
        is_named = body.protocol_type is not None and body.protocol_name is not None
        if not is_named and Capability.NAMES_ITS_PROTOCOL not in request.lacking:
            found = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if isinstance(found, ErrorCode):
            self._reply(request, SyncGroupResponse(error_code=found))
        else:
            found.sync(request.token, body, now_ms)

    def _heartbeat(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, HeartbeatRequest), body
        found = self._find(body.group_id)
        error = found if isinstance(found, ErrorCode) else found.heartbeat(body, now_ms)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error = ErrorCode.NONE  # its session begins when the group is loaded
        self._reply(request, HeartbeatResponse(error_code=error))

    def _leave(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, LeaveGroupRequest), body
        found = self._find(body.group_id)
        if isinstance(found, ErrorCode):
            self._reply(request, LeaveGroupResponse(error_code=found))
        else:
            found.leave(request.token, body, now_ms)

    # --- offsets ----------------------------------------------------------------------------

    def _commit(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, OffsetCommitRequest), body
        body = replace(body, topics=self._named(body.topics))
        found = self._coordinators.find(body.group_id)
        if isinstance(found, ErrorCode):
            by_id = Capability.NAMES_TOPICS_BY_ID not in request.lacking
            topic_with = self._cluster.topic_with
            self._reply(request, offsets.refused_commit(body, found, topic_with, by_id=by_id))
        else:
            found.offset_requests.commit(request.token, body, request.lacking, now_ms)

    def _named(self, topics: tuple[_Topic, ...]) -> tuple[_Topic, ...]:
        """Those that are given by their ids get their names; none, if no topic has that id."""
        return tuple(
            replace(each, name=self._cluster.topic_name(each.topic_id) or "")
            if each.topic_id.int
            else each
            for each in topics
        )

    def _commit_in_transaction(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, TxnOffsetCommitRequest), body
        topic_with = self._cluster.topic_with

        def answer(result: TxnOffsetCommitResponse | ErrorCode) -> None:
            if isinstance(result, ErrorCode):
                result = transactional_offsets.refused_commit(
                    body, result, request.lacking, topic_with
                )
            self._reply(request, result)

        found = self._find(body.group_id)
        if isinstance(found, ErrorCode):
            answer(found)
        elif not transactional_offsets.names_a_partition(body, topic_with):
            answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            adds = Capability.ADDS_TO_TRANSACTION not in request.lacking
            found.offset_requests.commit_in_transaction(
                body, adds=adds, answer=answer, now_ms=now_ms
            )

    def _fetch(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, OffsetFetchRequest), body
        answers: Answers[OffsetFetchResponseGroup] = Answers(len(body.groups))

        def put(slot: int, group: OffsetFetchResponseGroup) -> None:
            if answers.put(slot, group):
                self._reply(request, OffsetFetchResponse(groups=tuple(answers.take())))

        if not body.groups:
            self._reply(request, OffsetFetchResponse(groups=()))
        for slot, asked in enumerate(body.groups):
            if asked.topics is not None:
                asked = replace(asked, topics=self._named(asked.topics))
            found = self._coordinators.find(asked.group_id)
            if isinstance(found, ErrorCode):
                put(slot, offsets.refused_fetch(asked, found, request.lacking))
                continue
            found.offset_requests.fetch(
                asked,
                lacking=request.lacking,
                require_stable=body.require_stable,
                answer=partial(put, slot),
                now_ms=now_ms,
            )

    def _delete_offsets(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, OffsetDeleteRequest), body
        found = self._find(body.group_id)
        if isinstance(found, ErrorCode):
            self._reply(request, OffsetDeleteResponse(error_code=found))
        else:
            found.offset_requests.delete_offsets(request.token, body, now_ms)

    # --- tools ------------------------------------------------------------------------------

    def _list(self, request: Request, _now_ms: int) -> None:
        body = request.body
        assert isinstance(body, ListGroupsRequest), body
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if any(coordinator.error is loading for coordinator in self._coordinators):
            self._reply(request, ListGroupsResponse(error_code=loading))
            return
        groups = [group for one in self._coordinators for group in one.all_groups()]
        self._reply(request, ListGroupsResponse(groups=tuple(list_groups(groups, body))))

    def _describe(self, request: Request, _now_ms: int) -> None:
        body = request.body
        assert isinstance(body, DescribeGroupsRequest), body
        groups = tuple(self._described(group_id, body, request.lacking) for group_id in body.groups)
        self._reply(request, DescribeGroupsResponse(groups=groups))

    def _described(
        self, group_id: str, body: DescribeGroupsRequest, lacking: Lacking
    ) -> DescribedGroup:
        found = self._coordinators.find(group_id)
        if isinstance(found, ErrorCode):
            return DescribedGroup(error_code=found, group_id=group_id)
        return describe(group_id, found.any_group(group_id), body, lacking)

    def _delete(self, request: Request, now_ms: int) -> None:
        body = request.body
        assert isinstance(body, DeleteGroupsRequest), body
        names = tuple(dict.fromkeys(body.groups_names))
        answers: Answers[DeletableGroupResult] = Answers(len(names))

        def concluded(slot: int, error: ErrorCode, _now_ms: int) -> None:
            if answers.put(slot, DeletableGroupResult(group_id=names[slot], error_code=error)):
                self._reply(request, DeleteGroupsResponse(results=tuple(answers.take())))

        if not names:
            self._reply(request, DeleteGroupsResponse(results=()))
        for slot, group_id in enumerate(names):
            found = self._coordinators.find(group_id)
            if isinstance(found, ErrorCode):
                concluded(slot, found, now_ms)
            else:
                found.delete(group_id, partial(concluded, slot), now_ms)

    def _reply(self, request: Request, body: object) -> None:
        self._outbox.emit(Reply(token=request.token, body=body))


def refused_coordinator(key: str, key_type: int) -> FoundCoordinator:
    return FoundCoordinator(
        key=key,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"no coordinator has keys of type {key_type}",
    )
