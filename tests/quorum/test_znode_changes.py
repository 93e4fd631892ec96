"""What counts as a change of a znode: results that differ from what the client knew there."""

import pytest

from quorum.zookeeper.znode_changes import (
    VALUE_CHARACTERS_MAX,
    ZnodeChange,
    ZnodeChanges,
)
from wire.zk.session import (
    Check,
    Checked,
    Children,
    Committed,
    Create,
    Created,
    Data,
    Delete,
    Deleted,
    Error,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Result,
    SetData,
    Stat,
    Written,
)

OWN = 100  # the zxid of the client's first write, in most of these tests
MISSING = Failed(error=Error.NO_NODE)
Seen = tuple[str, int | None, str | None]


def stat(mzxid: int, version: int = 0, pzxid: int = 1) -> Stat:
    return Stat(
        czxid=1,
        mzxid=mzxid,
        pzxid=pzxid,
        version=version,
        children_version=0,
        children_count=0,
        ephemeral_owner=0,
    )


def get(changes: ZnodeChanges, path: str, mzxid: int, version: int = 0, data: bytes = b"v") -> None:
    changes.note(GetData(path=path), Data(data=data, stat=stat(mzxid, version)), 7)


def exists(changes: ZnodeChanges, path: str, mzxid: int, version: int = 0) -> None:
    changes.note(Exists(path=path), Found(stat=stat(mzxid, version)), 7)


def children(changes: ZnodeChanges, path: str, pzxid: int, *names: str) -> None:
    changes.note(GetChildren(path=path), Children(names=names, stat=stat(1, 0, pzxid)), 7)


def registered() -> ZnodeChanges:
    """The client has written its own znode, and was told of by number 1."""
    changes = ZnodeChanges()
    changes.note(Create(path="/own", data=b"me"), Created(path="/own", stat=stat(OWN)), 5)
    return changes


def seen(changes: ZnodeChanges, after: int = 1) -> list[Seen]:
    return [(each.path, each.version, each.value) for each in changes.after(after)]


def test_a_value_that_was_read_again_and_differs_is_a_change_with_number_and_time() -> None:
    changes = registered()
    get(changes, "/t", 50, 3, b"old")
    get(changes, "/t", 50, 3, b"old")
    changes.note(GetData(path="/t"), Data(data=b"new", stat=stat(120, 4)), 33)
    get(changes, "/t", 120, 4, b"new")
    assert list(changes.after(0)) == [
        ZnodeChange(number=1, at_ms=5, path="/own", version=0, value="me"),
        ZnodeChange(number=2, at_ms=33, path="/t", version=4, value="new"),
    ]
    assert (changes.first, changes.next) == (1, 3)


def test_what_was_there_before_the_client_is_no_change_and_what_came_later_is_one() -> None:
    changes = ZnodeChanges()
    get(changes, "/before", 90)  # nothing of its own is written yet
    changes.note(Create(path="/own"), Created(path="/own", stat=stat(OWN)), 5)
    get(changes, "/old", 99)
    get(changes, "/young", 101)
    get(changes, "/before", 90)
    assert seen(changes) == [("/young", 0, "v")]


def test_a_znode_that_was_made_again_has_changed_though_its_version_has_not() -> None:
    changes = registered()
    get(changes, "/t", 50, 0)
    get(changes, "/t", 150, 0)
    assert seen(changes) == [("/t", 0, "v")]


@pytest.mark.parametrize(
    ("operation", "result", "expected"),
    [
        (Create(path="/n-", data=b"x"), Created(path="/n-07", stat=stat(130)), ("/n-07", 0, "x")),
        (SetData(path="/n", data=b"x"), Written(stat=stat(130, 4)), ("/n", 4, "x")),
        (Delete(path="/n"), Deleted(), ("/n", None, None)),
    ],
)
def test_own_writes_are_changes_and_are_none_when_they_are_read(
    operation: Operation, result: Result, expected: Seen
) -> None:
    changes = registered()
    changes.note(operation, result, 7)
    assert seen(changes) == [expected]
    path, version, _ = expected
    if version is None:
        changes.note(Exists(path=path), MISSING, 7)
    else:
        get(changes, path, 130, version, b"x")
    assert seen(changes) == [expected]


def test_every_write_of_a_multi_is_a_change_and_its_conditions_are_none() -> None:
    changes = registered()
    writes = (
        Check(path="/epoch", version=1),
        Create(path="/made", data=b"1"),
        SetData(path="/set", data=b"2"),
        Delete(path="/gone"),
    )
    results = (Checked(), Created(path="/made"), Written(stat=stat(130, 9)), Deleted())
    changes.note(Multi(writes=writes), Committed(results=results), 7)
    expected = [("/made", 0, "1"), ("/set", 9, "2"), ("/gone", None, None)]
    assert seen(changes) == expected
    get(changes, "/made", 130)  # of which the result did not tell the zxid
    get(changes, "/set", 130, 9)
    assert seen(changes) == expected
    get(changes, "/made", 140, 1, b"3")
    assert seen(changes)[3:] == [("/made", 1, "3")]


def test_a_multi_that_was_not_done_is_no_change() -> None:
    changes = registered()
    writes = (SetData(path="/n", data=b"x"),)
    changes.note(Multi(writes=writes), Failed(error=Error.BAD_VERSION, index=0), 7)
    assert seen(changes) == []


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        (GetData(path="/t"), MISSING),
        (Exists(path="/t"), MISSING),
        (GetChildren(path="/t"), MISSING),
        (SetData(path="/t", data=b""), MISSING),
        (Delete(path="/t"), MISSING),
    ],
)
def test_a_known_znode_that_is_missing_was_deleted_once(
    operation: Operation, result: Result
) -> None:
    changes = registered()
    changes.note(operation, result, 7)
    assert seen(changes) == [], "it was never known"
    get(changes, "/t", 50)
    changes.note(operation, result, 7)
    changes.note(operation, result, 7)
    assert seen(changes) == [("/t", None, None)]
    get(changes, "/t", 160)
    assert seen(changes)[1:] == [("/t", 0, "v")]


@pytest.mark.parametrize("error", [Error.CONNECTION_LOSS, Error.SESSION_EXPIRED, Error.BAD_VERSION])
def test_other_failures_show_nothing(error: Error) -> None:
    changes = registered()
    get(changes, "/t", 50)
    changes.note(GetData(path="/t"), Failed(error=error), 7)
    changes.note(SetData(path="/t", data=b"x"), Failed(error=error), 7)
    changes.note(Create(path="/t"), MISSING, 7)  # it is the parent that is missing
    assert seen(changes) == []


@pytest.mark.parametrize("parent", ["/ids", "/"])
def test_a_known_child_that_is_not_listed_any_more_was_deleted(parent: str) -> None:
    changes = registered()
    children(changes, parent, 10, "1", "2", "3")
    get(changes, f"{parent.rstrip('/')}/2", 50)
    children(changes, parent, 10)  # the same list, by its zxid
    assert seen(changes) == []
    children(changes, parent, 20, "3", "4")
    assert seen(changes) == [(f"{parent.rstrip('/')}/2", None, None)], "1 was never known"


def test_a_change_without_a_value_is_told_again_with_it_once() -> None:
    changes = registered()
    exists(changes, "/t", 50)
    get(changes, "/t", 50)
    assert seen(changes) == [], "both were there before"
    exists(changes, "/t", 150, 1)
    exists(changes, "/t", 150, 1)
    assert seen(changes) == [("/t", 1, None)]
    get(changes, "/t", 150, 1, b"new")
    get(changes, "/t", 150, 1, b"new")
    assert seen(changes) == [("/t", 1, None), ("/t", 1, "new")]


@pytest.mark.parametrize("character", ["a", "é", "𝄞"])
def test_long_values_are_cut_at_a_whole_character(character: str) -> None:
    changes = registered()
    get(changes, "/t", 150, 0, (character * (VALUE_CHARACTERS_MAX + 1)).encode())
    assert seen(changes) == [("/t", 0, character * VALUE_CHARACTERS_MAX)]


def test_a_value_that_is_no_text_is_told_all_the_same() -> None:
    changes = registered()
    get(changes, "/t", 150, 0, b"\xff!")
    assert seen(changes) == [("/t", 0, "\N{REPLACEMENT CHARACTER}!")]


def test_only_the_last_changes_are_kept_and_their_numbers_go_on() -> None:
    changes = ZnodeChanges(kept_max=4)
    for version in range(6):
        changes.note(SetData(path="/n", data=b""), Written(stat=stat(200 + version, version)), 7)
    numbers = {after: [each.number for each in changes.after(after)] for after in (0, 2, 4, 6, 9)}
    assert numbers == {0: [3, 4, 5, 6], 2: [3, 4, 5, 6], 4: [5, 6], 6: [], 9: []}
    assert (changes.first, changes.next) == (3, 7)


def test_what_is_known_longest_is_forgotten_for_what_is_new() -> None:
    changes = ZnodeChanges(paths_max=2)
    for parent in ("/a", "/b", "/c"):
        get(changes, f"{parent}/1", 50)
    for parent in ("/a", "/b", "/c"):
        changes.note(GetData(path=f"{parent}/1"), MISSING, 7)
    assert seen(changes, 0) == [("/b/1", None, None), ("/c/1", None, None)]
    for parent in ("/a", "/b", "/c"):
        children(changes, parent, 10, "1")
    for parent in ("/c", "/a"):
        get(changes, f"{parent}/1", 50)
        children(changes, parent, 20)
    assert seen(changes, 2) == [("/c/1", None, None)], "the list of /a is forgotten"


def test_nothing_is_kept_before_the_first_change() -> None:
    changes = ZnodeChanges()
    assert (changes.first, changes.next, list(changes.after(0))) == (1, 1, [])
