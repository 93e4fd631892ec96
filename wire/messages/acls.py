"""ACLs: describe, create, delete."""

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Throttled, ThrottledExplanation


class DeleteAclsFilter(Message):
    resource_type_filter: int  # 1 any
    resource_name_filter: str | None = None  # None: any
    pattern_type_filter: int = 3  # 1 any, 2 whatever applies to the name, 3 literal, 4 prefixed
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int  # 1 any
    permission_type: int  # 1 any


class DescribeAclsRequest(DeleteAclsFilter):
    pass


class AclDescription(Message):
    principal: str
    host: str
    operation: int
    permission_type: int  # 2 deny, 3 allow


class DescribeAclsResource(Message):
    resource_type: int
    resource_name: str
    pattern_type: int = 3
    acls: tuple[AclDescription, ...]


class DescribeAclsResponse(ThrottledExplanation):
    resources: tuple[DescribeAclsResource, ...] = ()


class AclCreation(AclDescription):
    resource_type: int  # 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name: str
    resource_pattern_type: int = 3  # 3 literal, 4 prefixed


class CreateAclsRequest(Message):
    creations: tuple[AclCreation, ...]


class AclCreationResult(ExplainedOutcome):
    pass


class CreateAclsResponse(Throttled):
    results: tuple[AclCreationResult, ...]


class DeleteAclsRequest(Message):
    filters: tuple[DeleteAclsFilter, ...]


class DeleteAclsMatchingAcl(AclDescription):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str
    pattern_type: int = 3


class DeleteAclsFilterResult(ExplainedOutcome):
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


class DeleteAclsResponse(Throttled):
    filter_results: tuple[DeleteAclsFilterResult, ...]
