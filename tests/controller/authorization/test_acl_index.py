"""An index that follows changes says what one that is made anew says."""

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.authorization.acl_index import Resource, difference
from controller.authorization.authorizer import Authorizer, UserRules
from controller.metadata.security import Operation, Pattern
from tests.controller.authorization.entries import ALICE, DENY, HOST, acl, subject
from wire.metadata_records import AccessControlEntryRecord

Acls = dict[UUID, AccessControlEntryRecord]
KINDS = (Resource.TOPIC, Resource.GROUP)
NAMES = ("a", "ab", "abc", "b", "*")
ENTRIES = st.builds(
    acl,
    st.sampled_from((Operation.READ, Operation.WRITE, Operation.ALL)),
    kind=st.sampled_from(KINDS),
    name=st.sampled_from(NAMES),
    principal=st.sampled_from(("User:alice", "User:*", "User:bob")),
    host=st.sampled_from(("*", HOST, "10.9.9.9")),
    permission=st.sampled_from((DENY, 3)),
    pattern=st.sampled_from((Pattern.LITERAL, Pattern.PREFIXED)),
)
# Of each change: entries to add, places of those to remove, and whether the order is another one.
CHANGES = st.lists(
    st.tuples(st.lists(ENTRIES, max_size=3), st.lists(st.integers(0, 9)), st.booleans()),
    max_size=5,
)


def changed(
    acls: Acls, added: list[AccessControlEntryRecord], gone: list[int], number: int
) -> Acls:
    kept = {key: each for place, (key, each) in enumerate(acls.items()) if place not in gone}
    return kept | {UUID(int=number + place): each for place, each in enumerate(added)}


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_decisions_are_those_of_the_entries_of_now(
    changes: list[tuple[list[AccessControlEntryRecord], list[int], bool]],
) -> None:
    authorizer, acls = Authorizer(UserRules(allows_everyone=True)), Acls()
    held = authorizer.subject(ALICE, HOST)
    for number, (added, gone, turns) in enumerate(changes):
        acls = changed(acls, added, gone, 10 * number)
        if turns:
            acls = dict(reversed(acls.items()))
        authorizer.index.follow(acls)
        fresh = subject(*acls.values(), rules=UserRules(allows_everyone=True))
        for kind in KINDS:
            for operation in (Operation.READ, Operation.DESCRIBE):
                asked = [held.may(operation, kind, name) for name in NAMES]
                assert asked == [fresh.may(operation, kind, name) for name in NAMES]
            found = held.may_with_any(Operation.WRITE, kind)
            assert found is fresh.may_with_any(Operation.WRITE, kind)
    authorizer.index.follow({})
    assert all(not (each.literal or each.prefixed) for each in authorizer.index.names.values())


def test_a_change_costs_no_more_than_what_is_changed() -> None:
    acls = {UUID(int=number): acl(Operation.READ, name=f"t-{number}") for number in range(100)}
    new = acl(Operation.WRITE)
    after = changed(acls, [new], [40], 1000)
    assert difference(acls, after) == ([acls[UUID(int=40)]], [new])
    assert difference(acls, dict(acls)) == ([], [])
    assert difference({}, acls) == ([], list(acls.values()))
    assert difference(acls, {}) == (list(acls.values()), [])
