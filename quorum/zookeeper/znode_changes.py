"""Changes of znodes as one client saw them: another value or version than it knew at a path.

Decides what is a change, and how many are remembered. Hears the results of all that the client
asks (`quorum.zookeeper.zk_effects.ask_by`) and asks nothing itself: a change that another client
made is seen when a result shows it, and what came between two reads is never seen.

    - a zxid numbers every write of the tree, so a znode has changed if its mzxid has;
    - a znode that is seen for the first time has changed if it was written after this client's
      own first write. Otherwise it was there before: a node that starts, and reads ten thousand
      znodes, sees no change;
    - a znode that was known is deleted if there is none any more, or its parent does not list it.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from wire.message import Value
from wire.zk import session as zk

__all__ = ["CHANGES_MAX", "VALUE_CHARACTERS_MAX", "ZnodeChange", "ZnodeChanges"]

CHANGES_MAX = 10_000
VALUE_CHARACTERS_MAX = 2000
_UTF8_BYTES_MAX = 4  # of a character
_PATHS_MAX = 100_000  # that are known; beyond it, the one known longest is forgotten
_UNNUMBERED = 0  # in the place of the zxid of what this client created in a `Multi`
_NEVER = 1 << 63  # beyond every zxid


class ZnodeChange(Value):
    number: int  # counts the changes that the client saw, from 1
    at_ms: int  # when it saw this one
    path: str
    version: int | None  # None: it was deleted
    value: str | None  # None if it was deleted, or if the result did not show the value


class ZnodeChanges:
    def __init__(self, *, kept_max: int = CHANGES_MAX, paths_max: int = _PATHS_MAX) -> None:
        self._paths_max = paths_max
        self._kept: deque[ZnodeChange] = deque(maxlen=kept_max)
        self.next = 1  # the number of the next change
        self._known: dict[str, int] = {}  # mzxids of what is there, by path
        self._unread: set[str] = set()  # known to have changed, with a value that is not
        self._children: dict[str, zk.Children] = {}
        self._first_zxid = _NEVER  # of this client's first write

    @property
    def first(self) -> int:
        """The number of the oldest change that is kept, or of the next if none is."""
        return self.next - len(self._kept)

    def after(self, number: int) -> Iterable[ZnodeChange]:
        """The changes with larger numbers, as far as they are kept. To be read at once."""
        return islice(self._kept, max(0, number + 1 - self.first), None)

    def note(self, operation: zk.Operation, result: zk.Result, now_ms: int) -> None:
        """Look at what the client was answered. Answers come in the order of the questions."""
        match operation, result:
            case zk.GetData(path=path), zk.Data(data=data, stat=stat):
                self._see(path, stat, data, now_ms)
            case zk.Exists(path=path), zk.Found(stat=stat):
                self._see(path, stat, None, now_ms)
            case zk.GetChildren(path=path), zk.Children():
                self._see_children(path, result, now_ms)
            case zk.Multi(writes=writes), zk.Committed(results=results):
                for write, written in zip(writes, results, strict=True):
                    self._see_write(write, written, now_ms)
            case zk.Create() | zk.SetData() | zk.Delete(), _:
                self._see_write(operation, result, now_ms)
            case zk.GetData() | zk.Exists() | zk.GetChildren(), zk.Failed(error=zk.Error.NO_NODE):
                self._see_none(operation.path, now_ms)
            case _:
                pass  # nothing was learned of a znode

    def _see(self, path: str, stat: zk.Stat, data: bytes | None, now_ms: int) -> None:
        known = self._known.get(path)
        if known == stat.mzxid and (data is None or path not in self._unread):
            return
        self._know(path, stat.mzxid)
        if known == _UNNUMBERED and stat.version == 0:
            return
        if known is not None or stat.mzxid > self._first_zxid:
            self._keep(path, stat.version, data, now_ms)

    def _see_children(self, path: str, found: zk.Children, now_ms: int) -> None:
        before = self._children.get(path)
        if before is not None and before.stat.pzxid == found.stat.pzxid:
            return
        self._make_room(self._children, path)
        self._children[path] = found
        if before is not None:
            names = set(found.names)
            for name in before.names:
                if name not in names:
                    self._see_none(f"{path.rstrip('/')}/{name}", now_ms)

    def _see_write(self, write: zk.Write, result: zk.Result, now_ms: int) -> None:
        match write, result:
            case zk.Create(data=data), zk.Created(path=path, stat=None):
                self._know(path, _UNNUMBERED)
                self._keep(path, 0, data, now_ms)
            case zk.Create(data=data), zk.Created(path=path, stat=zk.Stat() as stat):
                self._wrote(path, stat, data, now_ms)
            case zk.SetData(path=path, data=data), zk.Written(stat=stat):
                self._wrote(path, stat, data, now_ms)
            case zk.Delete(path=path), zk.Deleted():
                self._forget(path)
                self._keep(path, None, None, now_ms)
            case zk.SetData() | zk.Delete(), zk.Failed(error=zk.Error.NO_NODE):
                self._see_none(write.path, now_ms)
            case _:
                pass  # a condition, or a write that was not done

    def _wrote(self, path: str, stat: zk.Stat, data: bytes, now_ms: int) -> None:
        self._first_zxid = min(self._first_zxid, stat.mzxid)
        self._know(path, stat.mzxid)
        self._keep(path, stat.version, data, now_ms)

    def _see_none(self, path: str, now_ms: int) -> None:
        if path in self._known:
            self._forget(path)
            self._keep(path, None, None, now_ms)

    def _know(self, path: str, mzxid: int) -> None:
        self._make_room(self._known, path)
        self._known[path] = mzxid

    def _make_room(self, by_path: dict[str, int] | dict[str, zk.Children], path: str) -> None:
        if path not in by_path and len(by_path) >= self._paths_max:
            self._forget(next(iter(by_path)))

    def _forget(self, path: str) -> None:
        self._known.pop(path, None)
        self._unread.discard(path)
        self._children.pop(path, None)

    def _keep(self, path: str, version: int | None, data: bytes | None, now_ms: int) -> None:
        if data is None and version is not None:
            self._unread.add(path)
        else:
            self._unread.discard(path)
        value = None if data is None else _text(data)
        self._kept.append(
            ZnodeChange(number=self.next, at_ms=now_ms, path=path, version=version, value=value)
        )
        self.next += 1


def _text(data: bytes) -> str:
    head = data[: VALUE_CHARACTERS_MAX * _UTF8_BYTES_MAX]
    return head.decode(errors="replace")[:VALUE_CHARACTERS_MAX]
