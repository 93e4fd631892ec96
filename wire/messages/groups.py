"""Consumer groups: their coordinator, their members, and lists of groups."""

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Outcome, Throttled, ThrottledOutcome
from wire.primitives import OPERATIONS_OMITTED


class FindCoordinatorRequest(Message):
    key_type: int = 0  # 0 group, 1 transaction, 2 share group
    coordinator_keys: tuple[str, ...] = ()


class FoundCoordinator(ExplainedOutcome):
    key: str = ""  # absent before version 4, which has one coordinator a response
    node_id: int = -1
    host: str = ""
    port: int = -1


class FindCoordinatorResponse(Throttled):
    coordinators: tuple[FoundCoordinator, ...] = ()


class JoinGroupRequestProtocol(Message):
    name: str
    metadata: bytes


class JoinGroupRequest(Message):
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1  # -1 in version 0: the session timeout counts
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]  # the member's preferred one first
    reason: str | None = None


class JoinGroupResponseMember(Message):
    member_id: str
    group_instance_id: str | None = None
    metadata: bytes


class JoinGroupResponse(ThrottledOutcome):
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str
    members: tuple[JoinGroupResponseMember, ...] = ()  # the leader's response only


class SyncGroupRequestAssignment(Message):
    member_id: str
    assignment: bytes


class SyncGroupRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()  # the leader's request only


class SyncGroupResponse(ThrottledOutcome):
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class HeartbeatResponse(ThrottledOutcome):
    pass


class MemberIdentity(Message):
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(Message):
    group_id: str
    members: tuple[MemberIdentity, ...]


class MemberResponse(Outcome):
    member_id: str
    group_instance_id: str | None = None


class LeaveGroupResponse(ThrottledOutcome):
    members: tuple[MemberResponse, ...] = ()


class DescribeGroupsRequest(Message):
    groups: tuple[str, ...]
    include_authorized_operations: bool = False


class DescribedGroupMember(Message):
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(ExplainedOutcome):
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = OPERATIONS_OMITTED


class DescribeGroupsResponse(Throttled):
    groups: tuple[DescribedGroup, ...] = ()


class ListGroupsRequest(Message):
    states_filter: tuple[str, ...] = ()  # empty: all
    types_filter: tuple[str, ...] = ()


class ListedGroup(Message):
    group_id: str
    protocol_type: str
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(ThrottledOutcome):
    groups: tuple[ListedGroup, ...] = ()


class DeleteGroupsRequest(Message):
    groups_names: tuple[str, ...]


class DeletableGroupResult(Outcome):
    group_id: str


class DeleteGroupsResponse(Throttled):
    results: tuple[DeletableGroupResult, ...] = ()
