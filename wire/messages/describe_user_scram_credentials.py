"""DescribeUserScramCredentials (API key 50), as Kafka's message of version 0 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "CredentialInfo",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResult",
    "UserName",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserName:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    users: tuple[UserName, ...] | None = None  # None or empty: all users


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialInfo:
    mechanism: int  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResult:
    user: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    credential_infos: tuple[CredentialInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
