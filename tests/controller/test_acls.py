"""Access control entries: created once, found by filters, and not there without an authorizer."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from controller.decisions.security_changes import decide_create_acls, decide_delete_acls
from controller.metadata.image import MetadataImage
from controller.metadata.security import AUTHORIZER, describe_acls
from tests.controller.clusters import CONFIG, cluster, step
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

BASE = cluster(1)
GUARDED = replace(CONFIG, static_configs={AUTHORIZER: "StandardAuthorizer"})
ANY, TOPIC, GROUP, CLUSTER = 1, 2, 3, 4
MATCH, LITERAL, PREFIXED = 2, 3, 4
READ, WRITE = 3, 4
DENY, ALLOW = 2, 3


def acl(**others: Any) -> AclCreation:
    made = AclCreation(
        resource_type=TOPIC,
        resource_name="orders",
        principal="User:bob",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    return replace_message(made, **others)


def create(image: MetadataImage, *creations: AclCreation, config: Any = GUARDED) -> Any:
    return decide_create_acls(image, CreateAclsRequest(creations=creations), config, Random(1))


def created(*creations: AclCreation) -> MetadataImage:
    return step(BASE, *create(BASE, *creations).changes)


def wanted(**others: Any) -> DeleteAclsFilter:
    everything = DeleteAclsFilter(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    return replace_message(everything, **others)


def delete(image: MetadataImage, *filters: DeleteAclsFilter, config: Any = GUARDED) -> Any:
    return decide_delete_acls(image, DeleteAclsRequest(filters=filters), config)


def described(image: MetadataImage, *, has_authorizer: bool = True, **others: Any) -> Any:
    everything = DescribeAclsRequest(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    return describe_acls(
        image, replace_message(everything, **others), has_authorizer=has_authorizer
    )


def test_entry_that_exists_is_not_created_again() -> None:
    decision = create(BASE, acl(), acl(), acl(operation=WRITE))
    assert {result.error_code for result in decision.response.results} == {ErrorCode.NONE}
    assert len(decision.changes) == 2
    assert len({change.id for change in decision.changes}) == 2
    again = create(step(BASE, *decision.changes), acl())
    assert again.response.results[0].error_code is ErrorCode.NONE
    assert again.changes == ()


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (acl(resource_type=CLUSTER), "only valid name for the CLUSTER"),
        (acl(resource_name=""), "Invalid empty resource name"),
        (acl(resource_type=0), "Invalid resourceType"),
        (acl(resource_type=ANY), "Invalid resourceType"),
        (acl(resource_type=99), "Invalid resourceType"),
        (acl(resource_type=-1), "Invalid resourceType"),
        (acl(resource_pattern_type=MATCH), "Invalid patternType"),
        (acl(operation=ANY), "Invalid operation"),
        (acl(operation=99), "Invalid operation"),
        (acl(permission_type=ANY), "Invalid permissionType"),
        (acl(principal="bob"), "no colon is present"),
    ],
)
def test_wrong_entry_is_refused_by_itself(asked: AclCreation, reason: str) -> None:
    decision = create(BASE, asked, acl())
    refused, fine = decision.response.results
    assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert reason in refused.error_message
    assert fine.error_code is ErrorCode.NONE
    assert len(decision.changes) == 1


def test_cluster_has_one_resource() -> None:
    cluster_acl = acl(resource_type=CLUSTER, resource_name="kafka-cluster")
    assert create(BASE, cluster_acl).response.results[0].error_code is ErrorCode.NONE


LITERAL_ORDERS = acl()
PREFIX_ORD = acl(resource_name="ord", resource_pattern_type=PREFIXED)
EVERY_TOPIC = acl(resource_name="*")
DENIED_GROUP = acl(resource_type=GROUP, resource_name="g", permission_type=DENY, host="h")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (wanted(), 4),
        (wanted(resource_type_filter=TOPIC), 3),
        (wanted(permission_type=DENY), 1),
        (wanted(host_filter="h"), 1),
        (wanted(principal_filter="User:eve"), 0),
        (wanted(operation=WRITE), 0),
        (wanted(resource_name_filter="orders", pattern_type_filter=LITERAL), 1),
        (wanted(resource_name_filter="orders"), 1),
        (
            wanted(
                resource_type_filter=TOPIC,
                resource_name_filter="orders",
                pattern_type_filter=MATCH,
            ),
            3,
        ),
        (wanted(resource_name_filter="ord", pattern_type_filter=PREFIXED), 1),
        (wanted(resource_name_filter="orders", pattern_type_filter=PREFIXED), 0),
    ],
)
def test_filter_finds_what_it_means(asked: DeleteAclsFilter, found: int) -> None:
    image = created(LITERAL_ORDERS, PREFIX_ORD, EVERY_TOPIC, DENIED_GROUP)
    decision = delete(image, asked)
    (result,) = decision.response.filter_results
    assert len(result.matching_acls) == found
    assert len(decision.changes) == found
    assert len(step(image, *decision.changes).acls if found else image.acls) == 4 - found


def test_entry_that_two_filters_mean_is_deleted_once() -> None:
    image = created(acl())
    decision = delete(image, wanted(), wanted(resource_type_filter=TOPIC), wanted(operation=0))
    both, too, wrong = decision.response.filter_results
    assert len(both.matching_acls) == len(too.matching_acls) == 1
    assert wrong.error_code is ErrorCode.INVALID_REQUEST
    assert len(decision.changes) == 1


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
@pytest.mark.parametrize("code", [-1, 0, 99])
def test_filter_of_a_code_that_nobody_knows_is_refused(field: str, code: int) -> None:
    image = created(acl())
    filtered: dict[str, Any] = {field: code}
    decision = delete(image, wanted(**filtered))
    (refused,) = decision.response.filter_results
    assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert decision.changes == ()
    assert described(image, **filtered).error_code is ErrorCode.INVALID_REQUEST


def test_entries_are_described_by_resource() -> None:
    image = created(acl(), acl(operation=WRITE), EVERY_TOPIC)
    answer = described(image)
    assert [(r.resource_name, len(r.acls)) for r in answer.resources] == [("orders", 2), ("*", 1)]
    assert described(image, operation=0).error_code is ErrorCode.INVALID_REQUEST


def test_without_an_authorizer_there_are_no_acls() -> None:
    refused = create(BASE, acl(), config=CONFIG)
    assert refused.response.results[0].error_code is ErrorCode.SECURITY_DISABLED
    assert refused.response.results[0].error_message == "No Authorizer is configured."
    assert refused.changes == ()
    deleted = delete(created(acl()), wanted(), config=CONFIG)
    assert deleted.response.filter_results[0].error_code is ErrorCode.SECURITY_DISABLED
    assert deleted.changes == ()
    answer = described(created(acl()), has_authorizer=False)
    assert answer.error_code is ErrorCode.SECURITY_DISABLED


def test_one_request_does_not_create_more_than_there_is_room_for() -> None:
    many = [acl(resource_name=f"t{n}") for n in range(10_001)]
    large = [acl(resource_name=f"t{n}-" + "x" * 30_000) for n in range(140)]  # over 4 Mi characters
    for entries in (many, large):
        decision = create(BASE, *entries)
        assert {r.error_code for r in decision.response.results} == {ErrorCode.POLICY_VIOLATION}
        assert decision.changes == ()
    assert create(BASE, *large[1:-1]).changes
