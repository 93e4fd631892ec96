"""CreateAcls (API key 30), as Kafka's message of version 3 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AclCreation",
    "AclCreationResult",
    "CreateAclsRequest",
    "CreateAclsResponse",
]


class AclCreation(Message):
    resource_type: int  # 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name: str
    resource_pattern_type: int = 3  # 3 literal, 4 prefixed
    principal: str
    host: str
    operation: int
    permission_type: int  # 2 deny, 3 allow


class CreateAclsRequest(Message):
    creations: tuple[AclCreation, ...]


class AclCreationResult(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class CreateAclsResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[AclCreationResult, ...]
