"""What a watch missed while its connection was gone."""

import pytest

from wire.zk.session import (
    Children,
    Data,
    Error,
    Exists,
    Failed,
    Found,
    GetChildren,
    GetData,
    Result,
    Stat,
    WatchFired,
    WatchKind,
)
from wire.zk.watches import Watches

MISSING = Failed(error=Error.NO_NODE)
LOST = Failed(error=Error.CONNECTION_LOSS)


def stat(czxid: int = 1, mzxid: int = 1, pzxid: int = 1) -> Stat:
    return Stat(
        czxid=czxid,
        mzxid=mzxid,
        pzxid=pzxid,
        version=0,
        children_version=0,
        children_count=0,
        ephemeral_owner=0,
    )


def watching(read: GetData | Exists | GetChildren, result: Result) -> Watches:
    watches = Watches()
    watches.note(read, result)
    return watches


DATA = GetData(path="/n", watch=True)
EXISTS = Exists(path="/n", watch=True)
CHILDREN = GetChildren(path="/n", watch=True)


@pytest.mark.parametrize(
    ("read", "before", "after", "kind"),
    [
        (DATA, Data(data=b"", stat=stat()), Found(stat=stat()), None),
        (DATA, Data(data=b"", stat=stat()), Found(stat=stat(pzxid=2)), None),
        (DATA, Data(data=b"", stat=stat()), Found(stat=stat(mzxid=2)), WatchKind.DATA_CHANGED),
        (DATA, Data(data=b"", stat=stat()), Found(stat=stat(2, 2, 2)), WatchKind.DATA_CHANGED),
        (DATA, Data(data=b"", stat=stat()), MISSING, WatchKind.DELETED),
        (DATA, Data(data=b"", stat=stat()), LOST, None),
        (EXISTS, MISSING, MISSING, None),
        (EXISTS, MISSING, Found(stat=stat()), WatchKind.CREATED),
        (CHILDREN, Children(names=(), stat=stat()), Children(names=(), stat=stat(mzxid=2)), None),
        (
            CHILDREN,
            Children(names=(), stat=stat()),
            Children(names=(), stat=stat(pzxid=3)),
            WatchKind.CHILDREN_CHANGED,
        ),
        (CHILDREN, Children(names=(), stat=stat()), MISSING, WatchKind.DELETED),
    ],
)
def test_read_after_reconnecting_tells_what_was_missed(
    read: GetData | Exists | GetChildren, before: Result, after: Result, kind: WatchKind | None
) -> None:
    watches = watching(read, before)
    (again,) = watches.again()
    expected = None if kind is None else WatchFired(path="/n", kind=kind)
    assert watches.missed(again, after) == expected


def test_failed_read_leaves_no_watch_but_exists_does() -> None:
    assert len(watching(DATA, MISSING)) == 0
    assert len(watching(CHILDREN, MISSING)) == 0
    assert len(watching(EXISTS, MISSING)) == 1
    assert len(watching(EXISTS, LOST)) == 0


def test_deletion_ends_both_watches_of_a_path_and_is_told_once() -> None:
    watches = watching(DATA, Data(data=b"", stat=stat()))
    watches.note(CHILDREN, Children(names=(), stat=stat()))
    deleted = WatchFired(path="/n", kind=WatchKind.DELETED)
    assert watches.fired(deleted)
    assert not watches.fired(deleted)
    assert len(watches) == 0


def test_change_of_children_leaves_the_watch_of_the_data() -> None:
    watches = watching(DATA, Data(data=b"", stat=stat()))
    assert not watches.fired(WatchFired(path="/n", kind=WatchKind.CHILDREN_CHANGED))
    assert len(watches) == 1
