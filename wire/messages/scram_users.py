"""SCRAM credentials of users: describe, alter."""

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Throttled, ThrottledExplanation


class UserName(Message):
    name: str


class DescribeUserScramCredentialsRequest(Message):
    users: tuple[UserName, ...] | None = None  # None or empty: all users


class CredentialInfo(Message):
    mechanism: int  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int


class DescribeUserScramCredentialsResult(ExplainedOutcome):
    user: str
    credential_infos: tuple[CredentialInfo, ...] = ()


class DescribeUserScramCredentialsResponse(ThrottledExplanation):
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


class AlterUserScramCredentialsResult(ExplainedOutcome):
    user: str


class AlterUserScramCredentialsResponse(Throttled):
    results: tuple[AlterUserScramCredentialsResult, ...]
