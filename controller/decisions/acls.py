"""Access control entries: create them, and delete those that a filter means.

As in Kafka there are none without an authorizer (`authorizer.class.name`). With one they are kept
and shown, and still enforced by nobody.

Source: KIP-140, KIP-801; Kafka's AclApis and AclControlManager.
"""

from random import Random

from controller.config import ControllerConfig
from controller.decisions.decision import Decision
from controller.decisions.operation_limits import CHANGES_MAX, excess
from controller.metadata.acls import (
    AUTHORIZER,
    OPERATIONS,
    PERMISSIONS,
    RESOURCE_TYPES,
    SECURITY_DISABLED,
    AclFilter,
    Pattern,
)
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage
from wire.errors import ErrorCode
from wire.message import replace
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
from wire.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from wire.primitives import ZERO_UUID, random_uuid

__all__ = ["decide_create_acls", "decide_delete_acls"]

_CLUSTER = 4  # a resource type, and its only resource
_CLUSTER_NAME = "kafka-cluster"


# --- create ---------------------------------------------------------------------------------


def decide_create_acls(
    image: MetadataImage, request: CreateAclsRequest, config: ControllerConfig, random: Random
) -> Decision[CreateAclsResponse]:
    """Entries fail or succeed by themselves; one that exists already succeeds."""
    if AUTHORIZER not in config.static_configs:
        return Decision(response=_all_refused(request, SECURITY_DISABLED))
    known = {replace(acl, id=ZERO_UUID) for acl in image.acls.values()}
    changes: list[Change] = []
    results = []
    for creation in request.creations:
        wrong = _problem(creation)
        results.append(_created(wrong))
        acl = _entry(creation)
        if wrong is None and acl not in known:
            known.add(acl)
            changes.append(replace(acl, id=random_uuid(random)))
    too_much = excess(changes)
    if too_much is not None:
        return Decision(response=_all_refused(request, too_much))
    return Decision(response=CreateAclsResponse(results=tuple(results)), changes=tuple(changes))


def _all_refused(request: CreateAclsRequest, refusal: Refusal) -> CreateAclsResponse:
    result = AclCreationResult(error_code=refusal.error_code, error_message=refusal.message)
    return CreateAclsResponse(results=(result,) * len(request.creations))


def _created(wrong: str | None) -> AclCreationResult:
    if wrong is None:
        return AclCreationResult()
    return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=wrong)


def _problem(creation: AclCreation) -> str | None:
    """The first thing that is wrong with a new entry."""
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


def _entry(creation: AclCreation) -> AccessControlEntryRecord:
    """What is asked for, without an id."""
    return AccessControlEntryRecord(
        id=ZERO_UUID,
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


# --- delete ---------------------------------------------------------------------------------


def decide_delete_acls(
    image: MetadataImage, request: DeleteAclsRequest, config: ControllerConfig
) -> Decision[DeleteAclsResponse]:
    """Filters fail or succeed by themselves. Too many entries fail them all, so that nobody
    takes a part for the whole."""
    if AUTHORIZER not in config.static_configs:
        return Decision(response=_no_filter(request, SECURITY_DISABLED))
    results = []
    removed: dict[AccessControlEntryRecord, None] = {}
    for asked in request.filters:
        wanted = AclFilter.of(asked)
        if wanted.problem is not None:
            results.append(
                DeleteAclsFilterResult(
                    error_code=ErrorCode.INVALID_REQUEST, error_message=wanted.problem
                )
            )
            continue
        found = list(wanted.found_in(image))
        removed |= dict.fromkeys(found)
        results.append(DeleteAclsFilterResult(matching_acls=tuple(map(_matching, found))))
    if len(removed) > CHANGES_MAX:
        message = f"The filters mean {len(removed)} ACLs; one request may delete {CHANGES_MAX}."
        return Decision(response=_no_filter(request, Refusal(ErrorCode.INVALID_REQUEST, message)))
    return Decision(
        response=DeleteAclsResponse(filter_results=tuple(results)),
        changes=tuple(RemoveAccessControlEntryRecord(id=acl.id) for acl in removed),
    )


def _no_filter(request: DeleteAclsRequest, refusal: Refusal) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=refusal.error_code, error_message=refusal.message)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def _matching(acl: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
