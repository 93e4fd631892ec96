"""DescribeAcls (API key 29), as Kafka's message of version 3 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AclDescription",
    "DescribeAclsRequest",
    "DescribeAclsResource",
    "DescribeAclsResponse",
]


class DescribeAclsRequest(Message):
    resource_type_filter: int  # 1 any
    resource_name_filter: str | None = None  # None: any
    pattern_type_filter: int = 3  # 1 any, 2 whatever applies to the name, 3 literal, 4 prefixed
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int  # 1 any
    permission_type: int  # 1 any


class AclDescription(Message):
    principal: str
    host: str
    operation: int
    permission_type: int


class DescribeAclsResource(Message):
    resource_type: int
    resource_name: str
    pattern_type: int = 3
    acls: tuple[AclDescription, ...]


class DescribeAclsResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resources: tuple[DescribeAclsResource, ...] = ()
