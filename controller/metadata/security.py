"""Access control as the metadata keeps and shows it: ACLs and SCRAM credentials.

What an ACL allows, `controller.authorization` decides. Where nobody does, every client may do
whatever the kind of resource has; describing APIs answer so with a bit field, in which bit n stands
for the operation of code n.

Source: KIP-11, KIP-290 (prefixed patterns), Kafka's ResourcePatternFilter and AclApis; KIP-430,
Kafka's AclEntry.supportedOperations; RFC 5802, KIP-554, KIP-900, Kafka's ScramImage.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Container, Iterator
from enum import IntEnum

from controller.metadata.configs import NO_ERROR, Refusal
from controller.metadata.image import MetadataImage
from wire.errors import ErrorCode
from wire.messages import acls as messages
from wire.messages.scram_users import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from wire.metadata_records import AccessControlEntryRecord

__all__ = [
    "ANY",
    "AUTHORIZER",
    "ON_CLUSTER",
    "ON_GROUP",
    "ON_TOPIC",
    "OPERATIONS",
    "PERMISSIONS",
    "RESOURCE_TYPES",
    "SECURITY_DISABLED",
    "WILDCARD",
    "Mechanism",
    "Operation",
    "Pattern",
    "acls_found",
    "describe_acls",
    "describe_scram_credentials",
    "filter_problem",
    "mechanism_of",
    "server_key",
    "stored_key",
]


class Operation(IntEnum):
    """Codes of Kafka's AclOperation."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_O = Operation
_CONFIGS = (_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)
ON_TOPIC = _bits(_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE, *_CONFIGS)
ON_CLUSTER = _bits(
    _O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION, _O.IDEMPOTENT_WRITE, *_CONFIGS
)
ON_GROUP = _bits(_O.READ, _O.DELETE, _O.DESCRIBE, *_CONFIGS)

AUTHORIZER = "authorizer.class.name"  # without this key there are no ACLs, as in Kafka
SECURITY_DISABLED = Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
ANY = 1  # of every code below
RESOURCE_TYPES = range(2, 8)  # topic to user
OPERATIONS = range(2, 16)  # all to two-phase commit
PERMISSIONS = range(2, 4)  # deny, allow
WILDCARD = "*"  # as the name of a resource or of a user, and as a host: any


class Pattern(IntEnum):
    MATCH = 2  # of a filter: whatever would apply to a resource of this name
    LITERAL = 3
    PREFIXED = 4


_PATTERNS = frozenset(Pattern)


def filter_problem(asked: messages.DeleteAclsFilter) -> str | None:
    """Why nothing can match the filter, in which None and ANY let everything through."""
    has_pattern = _may_be(asked.pattern_type_filter, _PATTERNS)
    if not has_pattern or not _may_be(asked.resource_type_filter, RESOURCE_TYPES):
        return "Unknown patternFilter."
    is_entry = _may_be(asked.operation, OPERATIONS) and _may_be(asked.permission_type, PERMISSIONS)
    return None if is_entry else "Unknown entryFilter."


def _may_be(code: int, known: Container[int]) -> bool:
    return code == ANY or code in known


def acls_found(
    image: MetadataImage, asked: messages.DeleteAclsFilter
) -> Iterator[AccessControlEntryRecord]:
    return (acl for acl in image.acls.values() if matches(asked, acl))


def matches(asked: messages.DeleteAclsFilter, acl: AccessControlEntryRecord) -> bool:
    return (
        asked.principal_filter in (None, acl.principal)
        and asked.host_filter in (None, acl.host)
        and asked.operation in (ANY, acl.operation)
        and asked.permission_type in (ANY, acl.permission_type)
        and asked.resource_type_filter in (ANY, acl.resource_type)
        and _matches_pattern(asked.resource_name_filter, asked.pattern_type_filter, acl)
    )


def _matches_pattern(name: str | None, pattern: int, acl: AccessControlEntryRecord) -> bool:
    if pattern not in (ANY, Pattern.MATCH, acl.pattern_type):
        return False
    if name is None or name == acl.resource_name:
        return True
    if pattern != Pattern.MATCH:
        return False
    if acl.pattern_type == Pattern.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name == WILDCARD


def describe_acls(
    image: MetadataImage, request: messages.DescribeAclsRequest, *, has_authorizer: bool
) -> messages.DescribeAclsResponse:
    """The entries that the filter means, by resource."""
    if not has_authorizer:
        return SECURITY_DISABLED.told(messages.DescribeAclsResponse)
    wrong = filter_problem(request)
    if wrong is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, wrong).told(messages.DescribeAclsResponse)
    by_resource: dict[tuple[int, str, int], list[messages.AclDescription]] = {}
    for acl in acls_found(image, request):
        resource = acl.resource_type, acl.resource_name, acl.pattern_type
        by_resource.setdefault(resource, []).append(
            messages.AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return messages.DescribeAclsResponse(
        resources=tuple(
            messages.DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(acls)
            )
            for (kind, name, pattern), acls in by_resource.items()
        )
    )


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
        results=tuple(
            _credentials_of(user, infos.get(user, []), times) for user, times in asked.items()
        )
    )


def _credentials_of(
    user: str, infos: list[CredentialInfo], times: int
) -> DescribeUserScramCredentialsResult:
    if times > 1:
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
        refusal = Refusal(ErrorCode.DUPLICATE_RESOURCE, message)
    elif not infos:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        refusal = Refusal(ErrorCode.RESOURCE_NOT_FOUND, message)
    else:
        refusal = NO_ERROR
    shown = () if refusal.message else tuple(infos)
    return refusal.told(DescribeUserScramCredentialsResult, user=user, credential_infos=shown)
