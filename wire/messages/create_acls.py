"""CreateAcls (API key 30), as Kafka's message of version 3 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "AclCreation",
    "AclCreationResult",
    "CreateAclsRequest",
    "CreateAclsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AclCreation:
    resource_type: int  # 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name: str
    resource_pattern_type: int = 3  # 3 literal, 4 prefixed
    principal: str
    host: str
    operation: int
    permission_type: int  # 2 deny, 3 allow


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsRequest:
    creations: tuple[AclCreation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AclCreationResult:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsResponse:
    throttle_time_ms: int = 0
    results: tuple[AclCreationResult, ...]
