"""Operations by kind, and watches as a client has them."""

from wire.zk.accounting import ZkCounts
from wire.zk.session import (
    Check,
    Children,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetData,
    Stat,
    WatchFired,
    WatchKind,
)
from wire.zk.watches import Watches

STAT = Stat(
    czxid=1, mzxid=1, pzxid=1, version=0, children_version=0, children_count=0, ephemeral_owner=0
)


def counted(*operations: Operation) -> dict[str, int]:
    counts = ZkCounts()
    for operation in operations:
        counts.asked(operation)
    return {name: count for name, count in counts.describe(Watches()).items() if count}


def test_operations_are_counted_by_kind() -> None:
    assert counted(
        GetData(path="/a"),
        GetData(path="/a", watch=True),
        Exists(path="/a"),
        GetChildren(path="/a"),
        Create(path="/a"),
        Delete(path="/a"),
        SetData(path="/a", data=b""),
        SetData(path="/a", data=b"", version=3),
    ) == {
        "zk.get": 2,
        "zk.exists": 1,
        "zk.children": 1,
        "zk.create": 1,
        "zk.delete": 1,
        "zk.set": 2,
        "zk.set.versioned": 1,
    }


def test_multi_is_one_operation_and_its_parts_are_counted_beside_it() -> None:
    writes = (
        Check(path="/e", version=1),
        SetData(path="/a", data=b"", version=1),
        SetData(path="/b", data=b"", version=1),
        Create(path="/c"),
        Delete(path="/d"),
    )
    assert counted(Multi(writes=writes)) == {
        "zk.multi": 1,
        "zk.check": 1,
        "zk.multi.set": 2,
        "zk.multi.create": 1,
        "zk.multi.delete": 1,
    }


def test_watch_that_is_there_is_not_left_twice_and_fires_once() -> None:
    watches, read = Watches(), GetChildren(path="/a", watch=True)
    for _ in range(2):
        watches.note(read, Children(names=(), stat=STAT))
    fired = WatchFired(path="/a", kind=WatchKind.CHILDREN_CHANGED)
    assert [watches.fired(fired), watches.fired(fired)] == [True, False]
    watches.note(read, Children(names=(), stat=STAT))
    told = ZkCounts().describe(watches)
    assert (told["zk.watches_armed"], told["zk.watches_fired"]) == (2, 1)


def test_watches_that_are_left_again_on_a_new_connection_count_again() -> None:
    watches = Watches()
    watches.note(GetChildren(path="/a", watch=True), Children(names=(), stat=STAT))
    assert len(list(watches.again())) == 1
    assert watches.armed == 2
