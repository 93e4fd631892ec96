"""Operations as kazoo's requests, and its answers as results. Does no I/O.

kazoo's transactions do not raise. The reason of a failure lies in the list of answers: before it
are the writes that were rolled back, after it those that were not tried.

`root` is the path under which everything lies (the chroot of `zookeeper.connect`), or empty.
"""

from collections.abc import Callable
from typing import Any, assert_never

from kazoo import exceptions as kazoo
from kazoo.protocol import serialization as requests
from kazoo.protocol.states import EventType
from kazoo.security import OPEN_ACL_UNSAFE

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
    WatchFired,
    WatchKind,
    Write,
    Written,
)

__all__ = ["failure_of", "request_of", "result_of", "watch_fired"]

_EPHEMERAL = 1
_SEQUENTIAL = 2

_ERRORS = {
    kazoo.NoNodeError: Error.NO_NODE,
    kazoo.NodeExistsError: Error.NODE_EXISTS,
    kazoo.BadVersionError: Error.BAD_VERSION,
    kazoo.NotEmptyError: Error.NOT_EMPTY,
    kazoo.NoChildrenForEphemeralsError: Error.NO_CHILDREN_FOR_EPHEMERALS,
    kazoo.SessionExpiredError: Error.SESSION_EXPIRED,
    kazoo.ConnectionLoss: Error.CONNECTION_LOSS,
    kazoo.ConnectionClosedError: Error.CONNECTION_LOSS,
    kazoo.OperationTimeoutError: Error.CONNECTION_LOSS,
}
_KINDS = {
    EventType.CREATED: WatchKind.CREATED,
    EventType.DELETED: WatchKind.DELETED,
    EventType.CHANGED: WatchKind.DATA_CHANGED,
    EventType.CHILD: WatchKind.CHILDREN_CHANGED,
}


def request_of(operation: Operation, root: str, watcher: Callable[[Any], None]) -> Any:
    match operation:
        case Create():
            return _create(requests.Create2, operation, root)
        case SetData() | Delete():
            return _write(operation, root)
        case Multi(writes=writes):
            return requests.Transaction([_write(write, root) for write in writes])
        case GetData(path=path, watch=watch):
            return requests.GetData(_under(root, path), watcher if watch else None)
        case Exists(path=path, watch=watch):
            return requests.Exists(_under(root, path), watcher if watch else None)
        case GetChildren(path=path, watch=watch):
            return requests.GetChildren2(_under(root, path), watcher if watch else None)
        case _:
            assert_never(operation)


def _write(write: Write, root: str) -> Any:
    match write:
        case Create():
            return _create(requests.Create, write, root)
        case SetData(path=path, data=data, version=version):
            return requests.SetData(_under(root, path), data, version)
        case Delete(path=path, version=version):
            return requests.Delete(_under(root, path), version)
        case Check(path=path, version=version):
            return requests.CheckVersion(_under(root, path), version)
        case _:
            assert_never(write)


def _create(kind: Any, create: Create, root: str) -> Any:
    flags = _EPHEMERAL * create.is_ephemeral | _SEQUENTIAL * create.is_sequential
    return kind(_under(root, create.path), create.data, OPEN_ACL_UNSAFE, flags)


def result_of(operation: Operation, answer: Any, root: str) -> Result:
    match operation:
        case Create() | SetData() | Delete():
            return _written(operation, answer, root)
        case Multi(writes=writes):
            return _committed(writes, answer, root)
        case GetData():
            data, stat = answer
            return Data(data=data or b"", stat=_stat(stat))
        case Exists():
            return Failed(error=Error.NO_NODE) if answer is None else Found(stat=_stat(answer))
        case GetChildren():
            names, stat = answer
            return Children(names=tuple(sorted(names)), stat=_stat(stat))
        case _:
            assert_never(operation)


def _committed(writes: tuple[Write, ...], answers: list[Any], root: str) -> Committed | Failed:
    for index, answer in enumerate(answers):
        if isinstance(answer, Exception) and not isinstance(answer, kazoo.RolledBackError):
            return Failed(error=failure_of(answer).error, index=index)
    assert len(answers) == len(writes), (len(answers), len(writes))
    return Committed(
        results=tuple(
            _written(write, answer, root) for write, answer in zip(writes, answers, strict=True)
        )
    )


def _written(write: Write, answer: Any, root: str) -> Created | Written | Deleted | Checked:
    match write:
        case Create():
            path, stat = answer if isinstance(answer, tuple) else (answer, None)  # in a `Multi`
            return Created(path=_from(root, path), stat=None if stat is None else _stat(stat))
        case SetData():
            return Written(stat=_stat(answer))
        case Delete():
            return Deleted()
        case Check():
            return Checked()
        case _:
            assert_never(write)


def failure_of(error: BaseException) -> Failed:
    """What is no answer of the server leaves open whether anything was done."""
    known = _ERRORS.get(type(error))
    if known is None:
        is_answer = isinstance(error, kazoo.ZookeeperError)
        known = Error.REFUSED if is_answer else Error.CONNECTION_LOSS
    return Failed(error=known)


def watch_fired(event: Any, root: str) -> WatchFired | None:
    """None for what kazoo tells every watcher when it has lost the connection."""
    kind = _KINDS.get(event.type)
    return None if kind is None else WatchFired(path=_from(root, event.path), kind=kind)


def _stat(stat: Any) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        pzxid=stat.pzxid,
        version=stat.version,
        children_version=stat.cversion,
        children_count=stat.numChildren,
        ephemeral_owner=stat.ephemeralOwner,
    )


def _under(root: str, path: str) -> str:
    return (root + path).removesuffix("/") or "/"


def _from(root: str, path: str) -> str:
    return path.removeprefix(root) or "/"
