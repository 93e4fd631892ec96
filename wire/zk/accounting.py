"""What requests to ZooKeeper cost: the size of each on the wire, and how often a client asks what.

A server closes the connection on a request that is too large, so a client that puts many writes
into one `Multi` has to know their size before.

Counts are plain numbers, never sampled. A `Multi` counts once, under `multi`, with its writes under
`multi.set`, `multi.create` and `multi.delete` and its conditions under `check`. `set.versioned` are
those of `set` that hold only at a version.

Source: ZooKeeper's jute archive and its RequestHeader, MultiHeader, CreateRequest and so on.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from wire.zk import session as zk
from wire.zk.watches import Watches

__all__ = ["ZkCounts", "batches", "request_bytes"]


_HEADER = 8  # number and type of the request
_LENGTH = 4  # before every text and every piece of data
_INT = 4
_MULTI_HEADER = 9  # before each write, and once more at the end
_OPEN_ACL = 4 + 4 + _LENGTH + len("world") + _LENGTH + len("anyone")


def request_bytes(operation: zk.Operation) -> int:
    match operation:
        case zk.Multi(writes=writes):
            parts = (_MULTI_HEADER + _write_bytes(write) for write in writes)
            return _HEADER + sum(parts) + _MULTI_HEADER
        case zk.GetData(path=path) | zk.Exists(path=path) | zk.GetChildren(path=path):
            return _HEADER + _text(path) + 1
        case zk.Unwatch(path=path):
            return _HEADER + _text(path) + _INT
        case _:
            return _HEADER + _write_bytes(operation)


def batches(writes: Iterable[zk.Write], *, count_max: int) -> Iterator[tuple[zk.Write, ...]]:
    """The writes in their order, in as few groups as may go into a `Multi` each.

    A write that is too large is a group by itself, for the server to refuse.
    """
    group: list[zk.Write] = []
    size = empty = _HEADER + _MULTI_HEADER
    for write in writes:
        more = _MULTI_HEADER + _write_bytes(write)
        if group and (len(group) == count_max or size + more > zk.REQUEST_BYTES_MAX):
            yield tuple(group)
            group, size = [], empty
        group.append(write)
        size += more
    if group:
        yield tuple(group)


def _write_bytes(write: zk.Write) -> int:
    match write:
        case zk.Create(path=path, data=data):
            return _text(path) + _LENGTH + len(data) + _OPEN_ACL + _INT
        case zk.SetData(path=path, data=data):
            return _text(path) + _LENGTH + len(data) + _INT
        case zk.Delete(path=path) | zk.Check(path=path):
            return _text(path) + _INT
        case _:
            assert_never(write)


def _text(text: str) -> int:
    return _LENGTH + len(text.encode())


_NAMES: Mapping[type, str] = {
    zk.GetData: "get",
    zk.SetData: "set",
    zk.Create: "create",
    zk.Delete: "delete",
    zk.Exists: "exists",
    zk.GetChildren: "children",
    zk.Multi: "multi",
    zk.Unwatch: "unwatch",
}
_COUNTED = (
    *("get", "set", "set.versioned", "create", "delete", "exists", "children", "multi"),
    *("multi.set", "multi.create", "multi.delete", "check", "unwatch"),
)


class ZkCounts:
    def __init__(self) -> None:
        self._operations = dict.fromkeys(_COUNTED, 0)
        self.sent_bytes = 0  # with the client's own messages: sessions, pings
        self.received_bytes = 0

    def asked(self, operation: zk.Operation) -> None:
        """Count an operation that is being sent."""
        counts = self._operations
        counts[_NAMES[type(operation)]] += 1
        match operation:
            case zk.SetData(version=version):
                counts["set.versioned"] += version != zk.ANY_VERSION
            case zk.Multi(writes=writes):
                for write in writes:
                    is_check = isinstance(write, zk.Check)
                    counts["check" if is_check else f"multi.{_NAMES[type(write)]}"] += 1
            case _:
                pass

    def describe(self, watches: Watches) -> Mapping[str, int]:
        """All counts, and those of the client's `watches`, under names that begin with `zk.`."""
        return {
            **{f"zk.{name}": count for name, count in self._operations.items()},
            "zk.watches_armed": watches.armed,
            "zk.watches_fired": watches.told,
            "zk.bytes_sent": self.sent_bytes,
            "zk.bytes_received": self.received_bytes,
        }
