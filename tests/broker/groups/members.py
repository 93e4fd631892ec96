"""Consumers as clients are: each asks one thing at a time, does as it is told, and starts again
when its coordinator is gone. What they are told is held against what a group promises.

One group, on one topic of partitions 0 to `PARTITIONS`; its coordinator is the leader of the only
partition of `__consumer_offsets`.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.broker.brokers import Brokers
from wire.errors import ErrorCode
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
from wire.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUP = "g"
TOPIC = "t"
PARTITIONS = 4
_GONE = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass
class Promises:
    """What the group has told its members, all of them together."""

    owners: dict[tuple[int, int], str] = field(default_factory=dict)  # (generation, partition)
    sent: dict[int, int] = field(default_factory=dict)  # the last offset sent, by partition
    committed: dict[int, int] = field(default_factory=dict)  # the last one acknowledged
    assignments: int = 0

    def assigned(self, member: str, generation: int, partitions: tuple[int, ...]) -> None:
        """To a member, by the id that outlives its process, if it has one."""
        self.assignments += 1
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), member)
            assert owner == member, f"{partition} in {generation}: {owner} and {member}"

    def next_offset(self, partition: int) -> int:
        self.sent[partition] = self.sent.get(partition, 0) + 1
        return self.sent[partition]

    def acknowledged(self, partition: int, offset: int) -> None:
        self.committed[partition] = max(offset, self.committed.get(partition, -1))

    def fetched(self, partition: int, offset: int) -> None:
        least = self.committed.get(partition, -1)
        assert least <= offset <= self.sent.get(partition, -1), (partition, least, offset)


@dataclass
class Consumer:
    brokers: Brokers
    promises: Promises
    name: str
    instance_id: str | None = None
    coordinator: int | None = None
    member_id: str = ""
    generation: int = -1
    wants: str = "join"  # "join", "sync", or "live"
    assignment: tuple[int, ...] = ()
    token: int | None = None
    asked: int = 0
    members: tuple[str, ...] = ()  # of the generation, if it leads
    committing: dict[int, int] = field(default_factory=dict)
    turn: int = 0

    def step(self) -> None:
        """Hear an answer, or ask the next thing: in turn, once it is settled."""
        if self.token is not None:
            self._hear()
        elif self.coordinator is None:
            self._find()
        elif self.wants == "join":
            self._ask(self._join_request())
        elif self.wants == "sync":
            self._ask(self._sync_request())
        else:
            self.turn += 1
            (self._beat, self._commit, self._fetch)[self.turn % 3]()

    def leave(self) -> None:
        if self.coordinator in self.brokers.brokers and self.member_id:
            leaving = (MemberIdentity(member_id=self.member_id),)
            self._ask(LeaveGroupRequest(group_id=GROUP, members=leaving))

    def disconnected(self, node_id: int) -> None:
        """A broker has died: what it was asked, nobody answers."""
        if self.token is not None and self.asked == node_id:
            self.token = None
            self._seek()

    # --- asking

    def _ask(self, body: object) -> None:
        assert self.coordinator is not None
        if self.coordinator not in self.brokers.brokers:
            self.coordinator = None
            return
        self.asked = self.coordinator
        self.token = self.brokers.ask(self.coordinator, body)

    def _find(self) -> None:
        for node_id, broker in self.brokers.brokers.items():
            if broker.serves_clients:
                request = FindCoordinatorRequest(coordinator_keys=(GROUP,))
                (found,) = self.brokers.call(node_id, request).coordinators
                self.coordinator = found.node_id if found.error_code is ErrorCode.NONE else None
                return

    def _join_request(self) -> JoinGroupRequest:
        self.assignment = ()
        return JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=6000,
            rebalance_timeout_ms=9000,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=self.name.encode()),),
        )

    def _sync_request(self) -> SyncGroupRequest:
        shares = {
            member_id: bytes(range(place, PARTITIONS, len(self.members)))
            for place, member_id in enumerate(self.members)
        }
        return SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=share)
                for member_id, share in shares.items()
            ),
        )

    def _beat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self._ask(request)

    def _commit(self) -> None:
        if not self.assignment:
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
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
            )
        )

    def _fetch(self) -> None:
        indexes = tuple(range(PARTITIONS))
        topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=indexes),)
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
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                self.member_id, self.generation = body.member_id, body.generation_id
                assigns = not body.skip_assignment
                self.members = tuple(member.member_id for member in body.members if assigns)
                self.wants = "sync"
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = body.member_id
            case SyncGroupResponse(error_code=ErrorCode.NONE):
                self.assignment = tuple(body.assignment)
                member = self.instance_id or self.member_id
                self.promises.assigned(member, self.generation, self.assignment)
                self.wants = "live"
            case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse():
                self._refused(body.error_code)
            case OffsetCommitResponse():
                self._heard_of_commit(body)
            case OffsetFetchResponse():
                (group,) = body.groups
                self._refused(group.error_code)
                for told in group.topics[0].partitions if group.topics else ():
                    self.promises.fetched(told.partition_index, told.committed_offset)

    def _heard_of_commit(self, body: OffsetCommitResponse) -> None:
        for told in body.topics[0].partitions:
            if told.error_code is ErrorCode.NONE:
                offset = self.committing[told.partition_index]
                self.promises.acknowledged(told.partition_index, offset)
        self._refused(body.topics[0].partitions[0].error_code)

    def _refused(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            return
        if error in _GONE:
            self._seek()
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""  # after FENCED_INSTANCE_ID as another process
        self.wants = "join"

    def _seek(self) -> None:
        """Another coordinator knows the generation if its assignment was told."""
        self.coordinator = None
        self.wants = "live" if self.wants == "live" else "join"
