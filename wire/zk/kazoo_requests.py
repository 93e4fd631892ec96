"""Operations as kazoo's requests, and its answers as results. Does no I/O.

kazoo's transactions do not raise. The reason of a failure lies in the list of answers: before it
are the writes that were rolled back, after it those that were not tried.

`root` is the path under which everything lies (the chroot of `zookeeper.connect`), or empty.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, assert_never

from kazoo import exceptions as kazoo
from kazoo.protocol import serialization as requests
from kazoo.protocol.states import EventType
from kazoo.security import OPEN_ACL_UNSAFE

from wire.zk import session as zk

__all__ = ["failure_of", "request_of", "result_of", "watch_fired"]


class NoWatcherError(kazoo.ZookeeperError):  # type: ignore[misc] # kazoo has no types
    """kazoo knows neither the request that ends a watch nor its error."""


@dataclass(frozen=True, slots=True)
class _RemoveWatches:
    path: str
    kind: int  # 1: of children, 2: of the node
    type: ClassVar[int] = 18

    def serialize(self) -> bytearray:
        return bytearray(requests.write_string(self.path) + requests.int_struct.pack(self.kind))

    @classmethod
    def deserialize(cls, _answer: bytes, _offset: int) -> None:
        """It is empty."""


kazoo.EXCEPTIONS[-121] = NoWatcherError
_EPHEMERAL = 1
_SEQUENTIAL = 2

_ERRORS = {
    kazoo.NoNodeError: zk.Error.NO_NODE,
    kazoo.NodeExistsError: zk.Error.NODE_EXISTS,
    kazoo.BadVersionError: zk.Error.BAD_VERSION,
    kazoo.NotEmptyError: zk.Error.NOT_EMPTY,
    kazoo.NoChildrenForEphemeralsError: zk.Error.NO_CHILDREN_FOR_EPHEMERALS,
    NoWatcherError: zk.Error.NO_WATCH,
    kazoo.SessionExpiredError: zk.Error.SESSION_EXPIRED,
    kazoo.ConnectionLoss: zk.Error.CONNECTION_LOSS,
    kazoo.ConnectionClosedError: zk.Error.CONNECTION_LOSS,
    kazoo.OperationTimeoutError: zk.Error.CONNECTION_LOSS,
}
_KINDS = {
    EventType.CREATED: zk.WatchKind.CREATED,
    EventType.DELETED: zk.WatchKind.DELETED,
    EventType.CHANGED: zk.WatchKind.DATA_CHANGED,
    EventType.CHILD: zk.WatchKind.CHILDREN_CHANGED,
}


def request_of(operation: zk.Operation, root: str, watcher: Callable[[Any], None]) -> Any:
    match operation:
        case zk.Create() | zk.SetData() | zk.Delete():
            return _write(operation, root, create=requests.Create2)
        case zk.Multi(writes=writes):
            return requests.Transaction([_write(write, root) for write in writes])
        case zk.GetData(path=path, watch=watch):
            return requests.GetData(_under(root, path), watcher if watch else None)
        case zk.Exists(path=path, watch=watch):
            return requests.Exists(_under(root, path), watcher if watch else None)
        case zk.GetChildren(path=path, watch=watch):
            return requests.GetChildren2(_under(root, path), watcher if watch else None)
        case zk.Unwatch(path=path, is_of_children=is_of_children):
            return _RemoveWatches(_under(root, path), 1 if is_of_children else 2)
        case _:
            assert_never(operation)


def _write(write: zk.Write, root: str, create: Any = requests.Create) -> Any:
    match write:
        case zk.Create(path=path, data=data):
            flags = _EPHEMERAL * write.is_ephemeral | _SEQUENTIAL * write.is_sequential
            return create(_under(root, path), data, OPEN_ACL_UNSAFE, flags)
        case zk.SetData(path=path, data=data, version=version):
            return requests.SetData(_under(root, path), data, version)
        case zk.Delete(path=path, version=version):
            return requests.Delete(_under(root, path), version)
        case zk.Check(path=path, version=version):
            return requests.CheckVersion(_under(root, path), version)
        case _:
            assert_never(write)


def result_of(operation: zk.Operation, answer: Any, root: str) -> zk.Result:
    match operation:
        case zk.Create() | zk.SetData() | zk.Delete():
            return _written(operation, answer, root)
        case zk.Multi(writes=writes):
            return _committed(writes, answer, root)
        case zk.GetData():
            data, stat = answer
            return zk.Data(data=data or b"", stat=_stat(stat))
        case zk.Exists():
            if answer is None:
                return zk.Failed(error=zk.Error.NO_NODE)
            return zk.Found(stat=_stat(answer))
        case zk.GetChildren():
            names, stat = answer
            return zk.Children(names=tuple(sorted(names)), stat=_stat(stat))
        case zk.Unwatch():
            return zk.Unwatched()
        case _:
            assert_never(operation)


def _committed(
    writes: tuple[zk.Write, ...], answers: list[Any], root: str
) -> zk.Committed | zk.Failed:
    for index, answer in enumerate(answers):
        if isinstance(answer, Exception) and not isinstance(answer, kazoo.RolledBackError):
            return zk.Failed(error=failure_of(answer).error, index=index)
    assert len(answers) == len(writes), (len(answers), len(writes))
    return zk.Committed(
        results=tuple(
            _written(write, answer, root) for write, answer in zip(writes, answers, strict=True)
        )
    )


def _written(
    write: zk.Write, answer: Any, root: str
) -> zk.Created | zk.Written | zk.Deleted | zk.Checked:
    match write:
        case zk.Create():
            path, stat = answer if isinstance(answer, tuple) else (answer, None)  # in a `Multi`
            return zk.Created(path=_from(root, path), stat=None if stat is None else _stat(stat))
        case zk.SetData():
            return zk.Written(stat=_stat(answer))
        case zk.Delete():
            return zk.Deleted()
        case zk.Check():
            return zk.Checked()
        case _:
            assert_never(write)


def failure_of(error: BaseException) -> zk.Failed:
    """An error that is no answer of the server leaves open whether anything was done."""
    known = _ERRORS.get(type(error))
    if known is None:
        is_answer = isinstance(error, kazoo.ZookeeperError)
        known = zk.Error.REFUSED if is_answer else zk.Error.CONNECTION_LOSS
    return zk.Failed(error=known)


def watch_fired(event: Any, root: str) -> zk.WatchFired | None:
    """None for the event that kazoo sends every watcher when it has lost the connection."""
    kind = _KINDS.get(event.type)
    return None if kind is None else zk.WatchFired(path=_from(root, event.path), kind=kind)


def _stat(stat: Any) -> zk.Stat:
    return zk.Stat(
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
