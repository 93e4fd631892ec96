"""SCRAM credentials of users: describe, alter."""

from wire.errors import ErrorCode
from wire.message import Message


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


class ScramCredentialDeletion(Message):
    name: str
    mechanism: int  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512


class ScramCredentialUpsertion(Message):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        """Leave out the salt and the password."""
        return f"ScramCredentialUpsertion(name={self.name!r}, mechanism={self.mechanism})"


class AlterUserScramCredentialsRequest(Message):
    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


class AlterUserScramCredentialsResult(Message):
    user: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[AlterUserScramCredentialsResult, ...]
