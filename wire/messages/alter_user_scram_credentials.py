"""AlterUserScramCredentials (API key 51), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "AlterUserScramCredentialsResult",
    "ScramCredentialDeletion",
    "ScramCredentialUpsertion",
]


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
        """A password is for nobody's eyes."""
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
