"""SCRAM credentials: set and delete them. A user's changes succeed or fail together.

Source: KIP-554; Kafka's ScramControlManager. The checks stand in Kafka's order.
"""

from collections.abc import Iterator

from controller.decisions.decision import Decision
from controller.decisions.operation_limits import excess
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage
from controller.metadata.scram import mechanism_of, server_key, stored_key
from wire.errors import ErrorCode
from wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from wire.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

__all__ = ["decide_alter_scram_credentials"]

_SCRAM_SINCE = 11  # metadata.version 3.5-IV2
_ITERATIONS_MIN, _ITERATIONS_MAX = 4096, 16384
_Asked = ScramCredentialDeletion | ScramCredentialUpsertion


def decide_alter_scram_credentials(
    image: MetadataImage, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    asked: tuple[_Asked, ...] = (*request.deletions, *request.upsertions)
    refused = _refused(image, asked)
    changes = tuple(_record(item) for item in asked if item.name not in refused)
    too_much = excess(changes)
    if too_much is not None:
        refused = dict.fromkeys((item.name for item in asked), too_much)
        changes = ()
    return Decision(
        response=AlterUserScramCredentialsResponse(
            results=tuple(_results([item.name for item in asked], refused))
        ),
        changes=changes,
    )


def _refused(image: MetadataImage, asked: tuple[_Asked, ...]) -> dict[str, Refusal]:
    """The users whose changes are refused, with the first reason."""
    refused: dict[str, Refusal] = {}
    seen: set[tuple[str, int]] = set()
    for item in asked:
        if item.name in refused:
            continue
        key = item.name, item.mechanism
        if key in seen:
            message = "A user credential cannot be altered twice in the same request"
            refused[item.name] = Refusal(ErrorCode.DUPLICATE_RESOURCE, message)
            continue
        seen.add(key)
        refusal = _refusal(image, item)
        if refusal is not None:
            refused[item.name] = refusal
    return refused


def _refusal(image: MetadataImage, item: _Asked) -> Refusal | None:
    if not item.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism_of(item.mechanism) is None:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if image.metadata_version < _SCRAM_SINCE:
        message = "The current metadata version does not support SCRAM"
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, message)
    if isinstance(item, ScramCredentialDeletion):
        if (item.name, item.mechanism) in image.scram_credentials:
            return None
        message = "Attempt to delete a user credential that does not exist"
        return Refusal(ErrorCode.RESOURCE_NOT_FOUND, message)
    if item.iterations > _ITERATIONS_MAX:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if item.iterations < _ITERATIONS_MIN:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if not item.salted_password:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
    return None


def _record(item: _Asked) -> Change:
    if isinstance(item, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=item.name, mechanism=item.mechanism)
    mechanism = mechanism_of(item.mechanism)
    assert mechanism is not None, item.mechanism
    return UserScramCredentialRecord(
        name=item.name,
        mechanism=mechanism,
        salt=item.salt,
        stored_key=stored_key(mechanism, item.salted_password),
        server_key=server_key(mechanism, item.salted_password),
        iterations=item.iterations,
    )


def _results(
    users: list[str], refused: dict[str, Refusal]
) -> Iterator[AlterUserScramCredentialsResult]:
    """One a user."""
    for user in dict.fromkeys(users):
        refusal = refused.get(user)
        yield AlterUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
            error_message=None if refusal is None else refusal.message,
        )
