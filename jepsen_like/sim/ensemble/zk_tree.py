"""The tree of znodes of one ZooKeeper server: a state machine that every server applies alike.

A write is decided where it is applied: conditions, the numbers of sequential nodes, all or nothing
of a multi. The same writes in the same order give the same results and the same tree. A write that
is refused has a zxid, too.

Decides nothing about order, sessions or who watches: see `jepsen_like.sim.ensemble.zk_ensemble`.

Source: ZooKeeper's PrepRequestProcessor (which error comes first) and DataTree (which watches).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from wire.zk.session import (
    ANY_VERSION,
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
    Result,
    SetData,
    Stat,
    WatchFired,
    WatchKind,
    Write,
    Written,
)

__all__ = ["Applied", "Tree"]

_Change = Create | SetData | Delete | Multi
_Done = Created | Written | Deleted | Checked
_Undo = Callable[[], None]


class Applied(NamedTuple):
    result: Result
    events: tuple[WatchFired, ...]  # in the order in which watches hear of them


@dataclass(slots=True)
class _Node:
    data: bytes
    czxid: int
    mzxid: int
    pzxid: int
    ephemeral_owner: int = 0
    version: int = 0
    children: dict[str, None] = field(default_factory=dict)
    created: int = 0  # children ever: the next sequential one's number

    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            pzxid=self.pzxid,
            version=self.version,
            children_version=2 * self.created - len(self.children),
            children_count=len(self.children),
            ephemeral_owner=self.ephemeral_owner,
        )


class _Refused(Exception):
    def __init__(self, error: Error) -> None:
        super().__init__(error)
        self.error = error


class Tree:
    def __init__(self) -> None:
        self._nodes = {"/": _Node(b"", 0, 0, 0)}
        self._ephemeral: dict[int, dict[str, None]] = {}  # by session, in order of creation

    # --- writes -------------------------------------------------------------------------

    def apply(self, write: _Change, *, zxid: int, session_id: int) -> Applied:
        writes = write.writes if isinstance(write, Multi) else (write,)
        results: list[_Done] = []
        events: list[WatchFired] = []
        undo: list[_Undo] = []
        for index, part in enumerate(writes):
            try:
                result, undo_part = self._perform(part, zxid, session_id)
            except _Refused as refused:
                for each in reversed(undo):
                    each()
                at = index if isinstance(write, Multi) else -1
                return Applied(Failed(error=refused.error, index=at), ())
            undo.append(undo_part)
            results.append(result)
            events += _events(result, part)
        if isinstance(write, Multi):
            bare = (Created(path=r.path) if isinstance(r, Created) else r for r in results)
            return Applied(Committed(results=tuple(bare)), tuple(events))
        return Applied(results[0], tuple(events))

    def close(self, session_id: int, *, zxid: int) -> tuple[WatchFired, ...]:
        """Delete what is ephemeral of a session that has ended."""
        events: list[WatchFired] = []
        for path in list(self._ephemeral.pop(session_id, ())):
            self._delete(path, zxid)
            events += _events(Deleted(), Delete(path=path))
        return tuple(events)

    def _perform(self, write: Write, zxid: int, session_id: int) -> tuple[_Done, _Undo]:
        match write:
            case Create():
                return self._create(write, zxid, session_id)
            case SetData(path=path, data=data, version=version):
                node = self._at(path, version)
                return self._set(node, data, zxid)
            case Delete(path=path, version=version):
                node = self._at(path, version)
                if path == "/":
                    raise _Refused(Error.REFUSED)
                if node.children:
                    raise _Refused(Error.NOT_EMPTY)
                return Deleted(), self._delete(path, zxid)
            case Check(path=path, version=version):
                self._at(path, version)
                return Checked(), lambda: None
            case _:
                assert_never(write)

    def _at(self, path: str, version: int) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            raise _Refused(Error.NO_NODE)
        if version not in (ANY_VERSION, node.version):
            raise _Refused(Error.BAD_VERSION)
        return node

    def _create(self, create: Create, zxid: int, session_id: int) -> tuple[_Done, _Undo]:
        above, name = _split(create.path)
        parent = self._at(above, ANY_VERSION)
        path = create.path
        if create.is_sequential:
            digits = f"{parent.created:010}"
            path, name = path + digits, name + digits
        if path in self._nodes:
            raise _Refused(Error.NODE_EXISTS)
        if parent.ephemeral_owner:
            raise _Refused(Error.NO_CHILDREN_FOR_EPHEMERALS)
        owner = session_id if create.is_ephemeral else 0
        node = _Node(create.data, zxid, zxid, zxid, ephemeral_owner=owner)
        before = parent.pzxid
        self._add(path, node)
        parent.created += 1
        parent.pzxid = zxid

        def undo() -> None:
            self._remove(path)
            parent.created -= 1
            parent.pzxid = before

        return Created(path=path, stat=node.stat()), undo

    def _set(self, node: _Node, data: bytes, zxid: int) -> tuple[_Done, _Undo]:
        before = node.data, node.mzxid, node.version
        node.data, node.mzxid, node.version = data, zxid, node.version + 1

        def undo() -> None:
            node.data, node.mzxid, node.version = before

        return Written(stat=node.stat()), undo

    def _delete(self, path: str, zxid: int) -> _Undo:
        node = self._remove(path)
        parent = self._nodes[_split(path)[0]]
        before = parent.pzxid
        parent.pzxid = zxid

        def undo() -> None:
            self._add(path, node)
            parent.pzxid = before

        return undo

    def _add(self, path: str, node: _Node) -> None:
        above, name = _split(path)
        self._nodes[path] = node
        self._nodes[above].children[name] = None
        if node.ephemeral_owner:
            self._ephemeral.setdefault(node.ephemeral_owner, {})[path] = None

    def _remove(self, path: str) -> _Node:
        above, name = _split(path)
        node = self._nodes.pop(path)
        del self._nodes[above].children[name]
        if node.ephemeral_owner:
            self._ephemeral.get(node.ephemeral_owner, {}).pop(path, None)
        return node

    # --- reads --------------------------------------------------------------------------

    def read(self, read: GetData | Exists | GetChildren) -> Result:
        node = self._nodes.get(read.path)
        if node is None:
            return Failed(error=Error.NO_NODE)
        match read:
            case GetData():
                return Data(data=node.data, stat=node.stat())
            case Exists():
                return Found(stat=node.stat())
            case GetChildren():
                return Children(names=tuple(sorted(node.children)), stat=node.stat())
            case _:
                assert_never(read)

    def data(self, path: str) -> bytes | None:
        """None if there is no such node."""
        node = self._nodes.get(path)
        return None if node is None else node.data

    def paths(self) -> list[str]:
        """All that there is, for whoever looks on."""
        return sorted(self._nodes)


def _split(path: str) -> tuple[str, str]:
    above, _, name = path.rpartition("/")
    return above or "/", name


def _events(result: _Done, write: Write) -> list[WatchFired]:
    match result:
        case Created(path=path):
            kind = WatchKind.CREATED
        case Deleted():
            path, kind = write.path, WatchKind.DELETED
        case Written():
            return [WatchFired(path=write.path, kind=WatchKind.DATA_CHANGED)]
        case Checked():
            return []
        case _:
            assert_never(result)
    above = WatchFired(path=_split(path)[0], kind=WatchKind.CHILDREN_CHANGED)
    return [WatchFired(path=path, kind=kind), above]
