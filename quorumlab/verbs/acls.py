"""`quorumlab acls`: entries that allow or deny, with the options and the meaning of kafka-acls.

Every principal that is named gets every operation on every resource that is named. `--producer` and
`--consumer` stand for what such a client needs.

Source: KIP-11, KIP-290, KIP-679; Kafka's AclCommand and AclEntry.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

from quorumlab.arguments import UsageError, did_you_mean
from quorumlab.output import answer, number_of, table_lines
from quorumlab.verbs.connecting import check, connected
from wire.messages.acls import (
    AclCreation,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from wire.security.principals import Principal

__all__ = ["add", "delete", "list_acls"]

_ANY = 1
_DENY, _ALLOW = 2, 3
_TOPIC, _GROUP, _CLUSTER, _TRANSACTIONAL_ID = 2, 3, 4, 5
_CLUSTER_NAME = "kafka-cluster"
_ANY_HOST = "*"
_PATTERNS = {"any": _ANY, "match": 2, "literal": 3, "prefixed": 4}
_RESOURCES = {
    _TOPIC: "topic",
    _GROUP: "group",
    _CLUSTER: "cluster",
    _TRANSACTIONAL_ID: "transactional-id",
    6: "delegation-token",
    7: "user",
}
_OPERATIONS = {
    name: code
    for code, name in enumerate(
        (
            *("All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
            *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens"),
            *("DescribeTokens", "TwoPhaseCommit"),
        ),
        2,
    )
}
_OPERATION_NAMES = {code: name for name, code in _OPERATIONS.items()}
_PERMISSIONS = {_DENY: "deny", _ALLOW: "allow"}
_ON_ALL = ("All", "Describe")
_ON_CONFIGURED = ("DescribeConfigs", "AlterConfigs")
_ALLOWED_ON = {  # what is ever asked of a kind of resource
    _TOPIC: (*_ON_ALL, *_ON_CONFIGURED, "Read", "Write", "Create", "Delete", "Alter"),
    _GROUP: (*_ON_ALL, *_ON_CONFIGURED, "Read", "Delete"),
    _CLUSTER: (*_ON_ALL, *_ON_CONFIGURED, "Create", "ClusterAction", "IdempotentWrite", "Alter"),
    _TRANSACTIONAL_ID: (*_ON_ALL, "Write", "TwoPhaseCommit"),
}


class _Resource(NamedTuple):
    kind: int
    name: str


class _Entry(NamedTuple):
    principal: str
    host: str
    operation: str
    permission: int


class _Wanted(NamedTuple):
    resource: _Resource
    entry: _Entry


# --- the verbs --------------------------------------------------------------------------------


def add(args: SimpleNamespace) -> int:
    wanted = list(_wanted(args))
    creations = tuple(
        AclCreation(
            resource_type=resource.kind,
            resource_name=resource.name,
            resource_pattern_type=_pattern_of(resource, args),
            principal=entry.principal,
            host=entry.host,
            operation=_OPERATIONS[entry.operation],
            permission_type=entry.permission,
        )
        for resource, entry in wanted
    )
    with connected(args) as client:
        results = client.ask(CreateAclsRequest(creations=creations), CreateAclsResponse).results
    for result in results:
        check(result.error_code, result.error_message)
    rows = [
        _row(each, each.resource_type, each.resource_name, each.resource_pattern_type)
        for each in creations
    ]
    _tell(args, rows)
    return 0


def list_acls(args: SimpleNamespace) -> int:
    principal = None if args.principal is None else _principal("--principal", args.principal)
    resources: list[_Resource | None] = [*_resources(args)] or [None]
    rows = []
    with connected(args) as client:
        for resource in resources:
            request = DescribeAclsRequest(
                **_filter(resource, args), principal_filter=principal, operation=_ANY
            )
            told = client.ask(request, DescribeAclsResponse)
            check(told.error_code, told.error_message)
            rows += [
                _row(acl, found.resource_type, found.resource_name, found.pattern_type)
                for found in told.resources
                for acl in found.acls
            ]
    _tell(args, rows)
    return 0


def delete(args: SimpleNamespace) -> int:
    if args.allow_principal or args.deny_principal or args.operation:
        filters = [
            DeleteAclsFilter(
                **_filter(resource, args, entry.permission),
                principal_filter=entry.principal,
                host_filter=entry.host,
                operation=_OPERATIONS[entry.operation],
            )
            for resource, entry in _wanted(args)
        ]
    else:
        filters = [DeleteAclsFilter(**_filter(each, args), operation=_ANY) for each in _named(args)]
    with connected(args) as client:
        told = client.ask(DeleteAclsRequest(filters=tuple(filters)), DeleteAclsResponse)
    rows = []
    for result in told.filter_results:
        check(result.error_code, result.error_message)
        for acl in result.matching_acls:
            check(acl.error_code, acl.error_message)
            rows.append(_row(acl, acl.resource_type, acl.resource_name, acl.pattern_type))
    lines = [f"Deleted {number_of(len(rows), 'entry', 'entries')}."]
    answer(args.format, rows, lines)
    return 0


def _tell(args: SimpleNamespace, rows: list[Mapping[str, str]]) -> None:
    rows.sort(key=lambda row: [*row.values()])
    answer(args.format, rows, table_lines(rows, _COLUMNS))


_COLUMNS = ("resource", "name", "pattern", "permission", "operation", "principal", "host")


def _row(acl: AclDescription, kind: int, name: str, pattern: int) -> Mapping[str, str]:
    patterns = {code: word for word, code in _PATTERNS.items()}
    return {
        "resource": _RESOURCES.get(kind, str(kind)),
        "name": name,
        "pattern": patterns.get(pattern, str(pattern)),
        "permission": _PERMISSIONS.get(acl.permission_type, str(acl.permission_type)),
        "operation": _OPERATION_NAMES.get(acl.operation, str(acl.operation)),
        "principal": acl.principal,
        "host": acl.host,
    }


# --- what the options mean --------------------------------------------------------------------


def _wanted(args: SimpleNamespace) -> Iterator[_Wanted]:
    """Raises UsageError for what no entry can say."""
    if not (args.allow_principal or args.deny_principal):
        raise UsageError("whom is it about? Give --allow-principal or --deny-principal")
    named = _named(args)
    if args.producer or args.consumer:
        operations_of = _of_clients(args, named)
    else:
        operations = [_operation(each) for each in args.operation] or ["All"]
        operations_of = dict.fromkeys(named, operations)
    for resource, operations in operations_of.items():
        for operation in operations:
            _refuse_senseless(resource, operation)
        for entry in _entries(args, operations):
            yield _Wanted(resource, entry)


def _entries(args: SimpleNamespace, operations: Iterable[str]) -> Iterator[_Entry]:
    for permission, word in ((_ALLOW, "allow"), (_DENY, "deny")):
        given, hosts = getattr(args, f"{word}_principal"), getattr(args, f"{word}_host")
        if hosts and not given:
            raise UsageError(f"--{word}-host: give --{word}-principal, too")
        principals = [_principal(f"--{word}-principal", each) for each in given]
        for each in product(principals, hosts or [_ANY_HOST], operations):
            yield _Entry(*each, permission)


def _of_clients(args: SimpleNamespace, named: list[_Resource]) -> dict[_Resource, list[str]]:
    role = "--producer" if args.producer else "--consumer"
    if args.operation or args.deny_principal:
        raise UsageError(f"{role}: leave --operation and --deny-principal out")
    kinds = {each.kind for each in named}
    if _TOPIC not in kinds:
        raise UsageError(f"{role}: which topic? Give --topic")
    if args.consumer and _GROUP not in kinds:
        raise UsageError("--consumer: which group? Give --group")
    needed: dict[int, list[str]] = {_TOPIC: ["Describe"]}
    if args.producer:
        needed[_TOPIC] += ["Write", "Create"]
        needed[_TRANSACTIONAL_ID] = ["Write", "Describe"]
    if args.consumer:
        needed[_TOPIC] += ["Read"]
        needed[_GROUP] = ["Read"]
    left = sorted(_RESOURCES[kind] for kind in kinds - needed.keys())
    if left:
        raise UsageError(f"{role}: it needs nothing of a {left[0]}: leave --{left[0]} out")
    return {each: needed[each.kind] for each in named}


def _named(args: SimpleNamespace) -> list[_Resource]:
    named = _resources(args)
    if not named:
        raise UsageError(
            "on what? Give --topic, --group, --transactional-id or --cluster; '*' is every name"
        )
    return named


def _resources(args: SimpleNamespace) -> list[_Resource]:
    named = [_Resource(_TOPIC, name) for name in args.topic]
    named += [_Resource(_GROUP, name) for name in args.group]
    named += [_Resource(_TRANSACTIONAL_ID, name) for name in args.transactional_id]
    if args.cluster:
        named.append(_Resource(_CLUSTER, _CLUSTER_NAME))
    return named


def _filter(
    resource: _Resource | None, args: SimpleNamespace, permission: int = _ANY
) -> dict[str, Any]:
    """The fields of a filter that say which resource; None: all there are."""
    pattern = _PATTERNS["any"] if resource is None else _pattern_of(resource, args)
    return {
        "resource_type_filter": _ANY if resource is None else resource.kind,
        "resource_name_filter": None if resource is None else resource.name,
        "pattern_type_filter": pattern,
        "permission_type": permission,
    }


def _pattern_of(resource: _Resource, args: SimpleNamespace) -> int:
    """There is one cluster, by its whole name."""
    is_cluster = resource.kind == _CLUSTER
    return _PATTERNS["literal" if is_cluster else args.resource_pattern_type]


def _refuse_senseless(resource: _Resource, operation: str) -> None:
    if operation not in _ALLOWED_ON[resource.kind]:
        kind = _RESOURCES[resource.kind]
        known = ", ".join(sorted(_ALLOWED_ON[resource.kind]))
        raise UsageError(f"--operation {operation}: nobody asks it of a {kind}; there are {known}")


def _operation(text: str) -> str:
    """As Kafka's tools take it: in any case, with or without underscores."""
    folded = {name.lower(): name for name in _OPERATIONS}
    found = folded.get(text.replace("_", "").replace("-", "").lower())
    if found is None:
        near = did_you_mean(text.capitalize(), _OPERATIONS)
        raise UsageError(f"--operation {text}: {near}one of {', '.join(_OPERATIONS)}")
    return found


def _principal(option: str, text: str) -> str:
    try:
        return str(Principal.parse(text))
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
