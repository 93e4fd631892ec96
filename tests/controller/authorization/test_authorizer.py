"""The authorizer against a naive twin, and what an example shows best."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import UserRules
from controller.metadata.security import ON_CLUSTER, Operation, Pattern
from tests.controller.authorization.entries import (
    ADMIN,
    ALICE,
    ALLOW,
    DENY,
    HOST,
    acl,
    on_cluster,
    subject,
)
from wire.metadata_records import AccessControlEntryRecord

O = Operation  # noqa: E741 - as in the modules
IMPLIED = {
    O.DESCRIBE: {O.READ, O.WRITE, O.DELETE, O.ALTER},
    O.DESCRIBE_CONFIGS: {O.ALTER_CONFIGS},
}
OPERATIONS = st.sampled_from([each for each in Operation if each is not O.ALL])
NAMES = st.text("ab", min_size=1, max_size=3)
ACLS = st.lists(
    st.builds(
        acl,
        st.sampled_from(Operation),
        st.sampled_from([Resource.TOPIC, Resource.GROUP]),
        NAMES | st.just("*"),
        principal=st.sampled_from(["User:alice", "User:bob", "User:*", "Group:alice"]),
        host=st.sampled_from(["*", HOST, "10.0.0.2"]),
        permission=st.sampled_from([ALLOW, ALLOW, DENY]),
        pattern=st.sampled_from([Pattern.LITERAL, Pattern.PREFIXED]),
    ),
    max_size=8,
)


def applies(each: AccessControlEntryRecord, kind: Resource, name: str) -> bool:
    is_named = each.resource_name in (name, "*")
    if each.pattern_type == Pattern.PREFIXED:
        is_named = name.startswith(each.resource_name)
    return each.resource_type == kind and is_named


def naive(
    acls: list[AccessControlEntryRecord],
    operation: Operation,
    kind: Resource,
    name: str,
    *,
    default: bool,
) -> bool:
    found = [each for each in acls if applies(each, kind, name)]
    own = [
        each
        for each in found
        if each.principal in ("User:alice", "User:*") and each.host in ("*", HOST)
    ]
    said = [(each.permission_type, each.operation) for each in own]
    if (DENY, operation) in said or (DENY, O.ALL) in said:
        return False
    by = {operation, O.ALL} | IMPLIED.get(operation, set())
    return any((ALLOW, each) in said for each in by) or (default and not found)


@given(acls=ACLS, operation=OPERATIONS, name=NAMES, default=st.booleans())
@settings(max_examples=100, deadline=None)
def test_decides_as_a_naive_one(
    acls: list[AccessControlEntryRecord], operation: Operation, name: str, default: bool
) -> None:
    alice = subject(*acls, rules=UserRules(allows_everyone=default))
    for _ in range(2):  # the second time from memory
        for kind in (Resource.TOPIC, Resource.GROUP):
            expected = naive(acls, operation, kind, name, default=default)
            assert alice.may(operation, kind, name) is expected


@given(acls=ACLS)
@settings(max_examples=60, deadline=None)
def test_may_write_somewhere_if_there_is_a_name_for_it(
    acls: list[AccessControlEntryRecord],
) -> None:
    """Kafka's is stricter than that where something is denied: a `*` denies all."""
    names = {each.resource_name for each in acls}
    names |= {f"{each}b" for each in names}
    alice = subject(*acls)
    has_name = any(alice.may(O.WRITE, Resource.TOPIC, each) for each in names)
    if alice.may_with_any(O.WRITE, Resource.TOPIC):
        assert has_name
    else:
        assert not has_name or any(each.permission_type == DENY for each in acls)


def test_idempotent_producer_needs_a_topic_that_is_left_to_it() -> None:
    prefix = acl(O.WRITE, name="a", pattern=Pattern.PREFIXED)
    denied = acl(O.WRITE, name="a", pattern=Pattern.PREFIXED, permission=DENY)
    assert subject(prefix).may_with_any(O.WRITE, Resource.TOPIC)
    assert not subject(prefix, denied).may_with_any(O.WRITE, Resource.TOPIC)
    literal = acl(O.WRITE, name="b")
    assert subject(prefix, denied, literal).may_with_any(O.WRITE, Resource.TOPIC)
    nothing = acl(O.WRITE, name="*", permission=DENY, principal="User:*")
    assert not subject(literal, nothing).may_with_any(O.WRITE, Resource.TOPIC)


def test_super_user_may_whatever_is_denied() -> None:
    nobody = acl(O.ALL, name="*", principal="User:*", permission=DENY)
    assert subject(nobody, principal=ADMIN).may(O.READ, Resource.TOPIC, "t")
    assert subject(nobody, principal=ADMIN).may_with_any(O.WRITE, Resource.TOPIC)
    assert not subject(nobody, principal=ALICE).may(O.READ, Resource.TOPIC, "t")


def test_bits_of_all_that_may_be_done_are_those_of_a_node_without_authorizer() -> None:
    assert subject(on_cluster(O.ALL)).operations(Resource.CLUSTER) == ON_CLUSTER
    assert subject().operations(Resource.CLUSTER) == 0


def test_implied_bits_are_there_too() -> None:
    assert subject(acl(O.READ)).operations(Resource.TOPIC, "seen") == 1 << O.READ | 1 << O.DESCRIBE
