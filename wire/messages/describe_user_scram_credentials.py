"""DescribeUserScramCredentials (API key 50), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "CredentialInfo",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResult",
    "UserName",
]


class UserName(Message):
    name: str


class DescribeUserScramCredentialsRequest(Message):
    users: tuple[UserName, ...] | None = None  # None or empty: all users


class CredentialInfo(Message):
    mechanism: int  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int


class DescribeUserScramCredentialsResult(Message):
    user: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    credential_infos: tuple[CredentialInfo, ...] = ()


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
