"""Access control entries: which of them a filter means, and how they are described.

They are kept and shown; nothing is allowed or denied by them yet.

Source: KIP-11, KIP-290 (prefixed patterns); Kafka's ResourcePatternFilter and AclApis.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import IntEnum

from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage
from wire.errors import ErrorCode
from wire.messages.acls import (
    AclDescription,
    DeleteAclsFilter,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from wire.metadata_records import AccessControlEntryRecord

__all__ = [
    "ANY",
    "AUTHORIZER",
    "OPERATIONS",
    "PERMISSIONS",
    "RESOURCE_TYPES",
    "SECURITY_DISABLED",
    "AclFilter",
    "Pattern",
    "describe_acls",
]

AUTHORIZER = "authorizer.class.name"  # without this key there are no ACLs, as in Kafka
SECURITY_DISABLED = Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
ANY = 1  # of every code below
RESOURCE_TYPES = range(2, 8)  # topic to user
OPERATIONS = range(2, 16)  # all to two-phase commit
PERMISSIONS = range(2, 4)  # deny, allow
_WILDCARD = "*"


class Pattern(IntEnum):
    MATCH = 2  # of a filter: whatever would apply to a resource of this name
    LITERAL = 3
    PREFIXED = 4


_PATTERNS = frozenset(Pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """None and ANY let everything through."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @classmethod
    def of(cls, asked: DescribeAclsRequest | DeleteAclsFilter) -> "AclFilter":
        return cls(
            resource_type=asked.resource_type_filter,
            resource_name=asked.resource_name_filter,
            pattern_type=asked.pattern_type_filter,
            principal=asked.principal_filter,
            host=asked.host_filter,
            operation=asked.operation,
            permission_type=asked.permission_type,
        )

    @property
    def problem(self) -> str | None:
        if not _may_be(self.resource_type, RESOURCE_TYPES):
            return "Unknown patternFilter."
        if not _may_be(self.pattern_type, _PATTERNS):
            return "Unknown patternFilter."
        if not _may_be(self.operation, OPERATIONS):
            return "Unknown entryFilter."
        if not _may_be(self.permission_type, PERMISSIONS):
            return "Unknown entryFilter."
        return None

    def matches(self, acl: AccessControlEntryRecord) -> bool:
        return (
            self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
            and self.resource_type in (ANY, acl.resource_type)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AccessControlEntryRecord) -> bool:
        if self.pattern_type not in (ANY, Pattern.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != Pattern.MATCH:
            return False
        if acl.pattern_type == Pattern.PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name == _WILDCARD

    def found_in(self, image: MetadataImage) -> Iterator[AccessControlEntryRecord]:
        return (acl for acl in image.acls.values() if self.matches(acl))


def _may_be(code: int, known: Container[int]) -> bool:
    return code == ANY or code in known


def describe_acls(
    image: MetadataImage, request: DescribeAclsRequest, *, has_authorizer: bool
) -> DescribeAclsResponse:
    """The entries that the filter means, by resource."""
    wanted = AclFilter.of(request)
    refusal = None if has_authorizer else SECURITY_DISABLED
    if refusal is None and wanted.problem is not None:
        refusal = Refusal(ErrorCode.INVALID_REQUEST, wanted.problem)
    if refusal is not None:
        return DescribeAclsResponse(error_code=refusal.error_code, error_message=refusal.message)
    by_resource: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in wanted.found_in(image):
        resource = acl.resource_type, acl.resource_name, acl.pattern_type
        by_resource.setdefault(resource, []).append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return DescribeAclsResponse(
        resources=tuple(
            DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(acls)
            )
            for (kind, name, pattern), acls in by_resource.items()
        )
    )
