"""SCRAM credentials: what is derived from a salted password, and who has one.

They are kept and shown without their secrets; no listener asks for them yet.

Source: RFC 5802; KIP-554 (administration), KIP-900 (records); Kafka's ScramImage.
"""

import hashlib
import hmac
from collections import Counter
from enum import IntEnum

from controller.metadata.image import MetadataImage
from wire.errors import ErrorCode
from wire.messages.scram import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

__all__ = ["Mechanism", "describe_scram_credentials", "mechanism_of", "server_key", "stored_key"]


class Mechanism(IntEnum):
    SHA_256 = 1
    SHA_512 = 2

    @property
    def digest(self) -> str:
        return "sha256" if self is Mechanism.SHA_256 else "sha512"


def mechanism_of(number: int) -> Mechanism | None:
    return Mechanism(number) if number in list(Mechanism) else None


def stored_key(mechanism: Mechanism, salted_password: bytes) -> bytes:
    """What proves that a client knows its key, without being the key."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    return hashlib.new(mechanism.digest, client_key).digest()


def server_key(mechanism: Mechanism, salted_password: bytes) -> bytes:
    return hmac.digest(salted_password, b"Server Key", mechanism.digest)


def describe_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms of each user asked for; of all users, if none is."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(image.scram_credentials.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        infos.setdefault(user, []).append(info)
    asked = Counter(user.name for user in request.users or ()) or Counter(infos.keys())
    return DescribeUserScramCredentialsResponse(
        results=tuple(_result(user, infos.get(user, []), times) for user, times in asked.items())
    )


def _result(
    user: str, infos: list[CredentialInfo], times: int
) -> DescribeUserScramCredentialsResult:
    if times > 1:
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message
        )
    if not infos:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message
        )
    return DescribeUserScramCredentialsResult(user=user, credential_infos=tuple(infos))
