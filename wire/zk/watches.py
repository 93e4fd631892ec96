"""The watches that a session has left, and what they missed while nobody could be heard.

A server forgets a session's watches with the connection. Whoever reconnects leaves them again, by
reading: `again` says what to read, and `missed` tells from what the read shows whether the watch
should have fired meanwhile. ZooKeeper's own client has a request for that, with the same outcome:
changes are merged, and a node that was deleted and created again has changed.

Source: ZooKeeper's DataTree.setWatches, its client's primeConnection.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from wire.zk import session as zk

__all__ = ["Watches"]


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    is_of_children: bool


_Seen = tuple[int, ...] | None  # what a change would alter; None: there was no node


class Watches:
    def __init__(self) -> None:
        self._seen: dict[_Place, _Seen] = {}
        self.armed = 0  # since the beginning, those that were left again too
        self.told = 0  # events for which somebody waited

    def __len__(self) -> int:
        return len(self._seen)

    def clear(self) -> None:
        self._seen.clear()

    def note(self, operation: zk.Operation, result: zk.Result) -> None:
        """Has the operation left a watch, or ended one? Failed reads leave none, but `Exists` where
        there is no node.
        """
        if isinstance(operation, zk.GetData | zk.Exists | zk.GetChildren) and operation.watch:
            seen = _seen(result)
            if seen is not None or (isinstance(operation, zk.Exists) and _is_missing(result)):
                place = _place(operation)
                self.armed += place not in self._seen  # a watch that is there is not left twice
                self._seen[place] = seen
        elif isinstance(operation, zk.Unwatch) and isinstance(result, zk.Unwatched):
            self._seen.pop(_Place(operation.path, operation.is_of_children), None)

    def fired(self, event: zk.WatchFired) -> bool:
        """Was somebody waiting for this? Now nobody is."""
        places = [_Place(event.path, is_of_children) for is_of_children in _AFFECTED[event.kind]]
        waiting = [place for place in places if place in self._seen]
        for place in waiting:
            del self._seen[place]
        self.told += bool(waiting)
        return bool(waiting)

    def again(self) -> Iterable[zk.Exists | zk.GetChildren]:
        """The reads that leave every watch once more."""
        self.armed += len(self._seen)
        return [
            zk.GetChildren(path=place.path, watch=True)
            if place.is_of_children
            else zk.Exists(path=place.path, watch=True)
            for place in self._seen
        ]

    def missed(self, read: zk.Exists | zk.GetChildren, result: zk.Result) -> zk.WatchFired | None:
        """The event that the watch missed; None if nothing has changed, or nobody can know."""
        place = _place(read)
        if place not in self._seen or (isinstance(result, zk.Failed) and not _is_missing(result)):
            return None
        before, now = self._seen[place], _seen(result)
        if before == now:
            return None
        if now is None:
            kind = zk.WatchKind.DELETED
        elif before is None:
            kind = zk.WatchKind.CREATED
        elif place.is_of_children:
            kind = zk.WatchKind.CHILDREN_CHANGED
        else:
            kind = zk.WatchKind.DATA_CHANGED
        return zk.WatchFired(path=read.path, kind=kind)


_AFFECTED = {
    zk.WatchKind.CREATED: (False,),
    zk.WatchKind.DATA_CHANGED: (False,),
    zk.WatchKind.CHILDREN_CHANGED: (True,),
    zk.WatchKind.DELETED: (False, True),
}


def _place(read: zk.GetData | zk.Exists | zk.GetChildren) -> _Place:
    return _Place(read.path, isinstance(read, zk.GetChildren))


def _seen(result: zk.Result) -> _Seen:
    match result:
        case zk.Data(stat=stat) | zk.Found(stat=stat):
            return stat.czxid, stat.mzxid
        case zk.Children(stat=stat):
            return stat.czxid, stat.pzxid
        case _:
            return None


def _is_missing(result: zk.Result) -> bool:
    return isinstance(result, zk.Failed) and result.error is zk.Error.NO_NODE
