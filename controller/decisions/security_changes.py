"""Access control entries (ACLs) and SCRAM credentials: create, set and delete them.

As in Kafka there are no ACLs without an authorizer (`authorizer.class.name`). With one they are
kept and shown, but not enforced. The changes of a user's credentials succeed or fail together.

Source: KIP-140, KIP-801, Kafka's AclApis and AclControlManager; KIP-554, Kafka's
ScramControlManager. The checks stand in Kafka's order.
"""

from random import Random

from controller.config import ControllerConfig
from controller.decisions.decision import CHANGES_MAX, Decision, excess, refused
from controller.metadata.acl_hosts import NO_NETWORKS_YET, network_problem
from controller.metadata.changes import Change
from controller.metadata.configs import NO_ERROR, Refusal
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import CIDR_HOSTS, SCRAM
from controller.metadata.security import (
    AUTHORIZER,
    OPERATIONS,
    PERMISSIONS,
    RESOURCE_TYPES,
    SECURITY_DISABLED,
    Pattern,
    acls_found,
    filter_problem,
    mechanism_of,
    server_key,
    stored_key,
)
from wire import metadata_records as records
from wire.errors import ErrorCode
from wire.message import replace, values_of
from wire.messages import scram_users as messages
from wire.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from wire.primitives import ZERO_UUID, random_uuid

__all__ = ["decide_alter_scram_credentials", "decide_create_acls", "decide_delete_acls"]

_CLUSTER = 4  # a resource type, and its only resource
_CLUSTER_NAME = "kafka-cluster"


# --- create ---------------------------------------------------------------------------------


def decide_create_acls(
    image: MetadataImage, request: CreateAclsRequest, config: ControllerConfig, random: Random
) -> Decision[CreateAclsResponse]:
    """Entries fail or succeed by themselves; one that exists already succeeds."""
    if AUTHORIZER not in config.static_configs:
        return refused(request, SECURITY_DISABLED)
    known = {replace(acl, id=ZERO_UUID) for acl in image.acls.values()}
    changes: list[Change] = []
    results = []
    for creation in request.creations:
        wrong = _refusal(creation, image)
        results.append((wrong or NO_ERROR).told(AclCreationResult))
        acl = _entry(creation)
        if wrong is None and acl not in known:
            known.add(acl)
            changes.append(replace(acl, id=random_uuid(random)))
    too_much = excess(changes)
    if too_much is not None:
        return refused(request, too_much)
    return Decision(response=CreateAclsResponse(results=tuple(results)), changes=tuple(changes))


def _refusal(creation: AclCreation, image: MetadataImage) -> Refusal | None:
    wrong = _problem(creation)
    if wrong is None and "/" in creation.host:
        if image.metadata_version < CIDR_HOSTS:
            return Refusal(ErrorCode.UNSUPPORTED_VERSION, NO_NETWORKS_YET)
        wrong = network_problem(creation.host)
    return None if wrong is None else Refusal(ErrorCode.INVALID_REQUEST, wrong)


def _problem(creation: AclCreation) -> str | None:
    """The first thing that is wrong with a new entry, but for its host."""
    name = creation.resource_name
    checks = (
        (
            creation.resource_type == _CLUSTER and name != _CLUSTER_NAME,
            f"The only valid name for the CLUSTER resource is {_CLUSTER_NAME}",
        ),
        (not name, "Invalid empty resource name"),
        (
            creation.resource_type not in RESOURCE_TYPES,
            f"Invalid resourceType {creation.resource_type}",
        ),
        (
            creation.resource_pattern_type not in (Pattern.LITERAL, Pattern.PREFIXED),
            f"Invalid patternType {creation.resource_pattern_type}",
        ),
        (creation.operation not in OPERATIONS, f"Invalid operation {creation.operation}"),
        (
            creation.permission_type not in PERMISSIONS,
            f"Invalid permissionType {creation.permission_type}",
        ),
        (
            ":" not in creation.principal,
            f"Could not parse principal from `{creation.principal}` (no colon is present"
            " separating the principal type from the principal name)",
        ),
    )
    return next((message for is_wrong, message in checks if is_wrong), None)


def _entry(creation: AclCreation) -> records.AccessControlEntryRecord:
    """The new entry, without an id."""
    values = values_of(creation)
    pattern_type = values.pop("resource_pattern_type")
    return records.AccessControlEntryRecord(id=ZERO_UUID, pattern_type=pattern_type, **values)


# --- delete ---------------------------------------------------------------------------------


def decide_delete_acls(
    image: MetadataImage, request: DeleteAclsRequest, config: ControllerConfig
) -> Decision[DeleteAclsResponse]:
    """Filters fail or succeed by themselves. Too many entries fail them all, so that nobody
    takes a part for the whole."""
    if AUTHORIZER not in config.static_configs:
        return refused(request, SECURITY_DISABLED)
    results = []
    removed: dict[records.AccessControlEntryRecord, None] = {}
    for asked in request.filters:
        wrong = filter_problem(asked)
        if wrong is not None:
            results.append(Refusal(ErrorCode.INVALID_REQUEST, wrong).told(DeleteAclsFilterResult))
            continue
        found = list(acls_found(image, asked))
        removed |= dict.fromkeys(found)
        results.append(DeleteAclsFilterResult(matching_acls=tuple(map(_matching, found))))
    if len(removed) > CHANGES_MAX:
        message = f"The filters mean {len(removed)} ACLs; one request may delete {CHANGES_MAX}."
        return refused(request, Refusal(ErrorCode.INVALID_REQUEST, message))
    return Decision(
        response=DeleteAclsResponse(filter_results=tuple(results)),
        changes=tuple(records.RemoveAccessControlEntryRecord(id=acl.id) for acl in removed),
    )


def _matching(acl: records.AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    values = values_of(acl)
    del values["id"]
    return DeleteAclsMatchingAcl(**values)


# --- credentials ----------------------------------------------------------------------------

_ITERATIONS_MIN, _ITERATIONS_MAX = 4096, 16384
_Asked = messages.ScramCredentialDeletion | messages.ScramCredentialUpsertion


def decide_alter_scram_credentials(
    image: MetadataImage, request: messages.AlterUserScramCredentialsRequest
) -> Decision[messages.AlterUserScramCredentialsResponse]:
    asked: tuple[_Asked, ...] = (*request.deletions, *request.upsertions)
    refused_by_user = _refused_users(image, asked)
    changes = tuple(_credential_change(item) for item in asked if item.name not in refused_by_user)
    too_much = excess(changes)
    if too_much is not None:
        refused_by_user, changes = dict.fromkeys((item.name for item in asked), too_much), ()
    results = tuple(
        refused_by_user.get(user, NO_ERROR).told(
            messages.AlterUserScramCredentialsResult, user=user
        )
        for user in dict.fromkeys(each.name for each in asked)
    )
    return Decision(
        response=messages.AlterUserScramCredentialsResponse(results=results), changes=changes
    )


def _refused_users(image: MetadataImage, asked: tuple[_Asked, ...]) -> dict[str, Refusal]:
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
        refusal = _credential_refusal(image, item)
        if refusal is not None:
            refused[item.name] = refusal
    return refused


def _credential_refusal(image: MetadataImage, item: _Asked) -> Refusal | None:
    if not item.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism_of(item.mechanism) is None:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if image.metadata_version < SCRAM:
        message = "The current metadata version does not support SCRAM"
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, message)
    if isinstance(item, messages.ScramCredentialDeletion):
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


def _credential_change(item: _Asked) -> Change:
    if isinstance(item, messages.ScramCredentialDeletion):
        return records.RemoveUserScramCredentialRecord(name=item.name, mechanism=item.mechanism)
    mechanism = mechanism_of(item.mechanism)
    assert mechanism is not None, item.mechanism
    return records.UserScramCredentialRecord(
        name=item.name,
        mechanism=mechanism,
        salt=item.salt,
        stored_key=stored_key(mechanism, item.salted_password),
        server_key=server_key(mechanism, item.salted_password),
        iterations=item.iterations,
    )
