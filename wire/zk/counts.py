"""How often a client has asked what of ZooKeeper: plain numbers, never sampled.

A `Multi` counts once, under `multi`, with what it writes under `multi.set`, `multi.create` and
`multi.delete` and its conditions under `check`. `set.versioned` are those of `set` that hold only
at a version.
"""

from collections.abc import Mapping
from typing import assert_never

from wire.zk.session import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetData,
    Write,
)
from wire.zk.watches import Watches

__all__ = ["ZkCounts"]

_NAMES = ("get", "set", "set.versioned", "create", "delete", "exists", "children", "multi")
_IN_MULTI = ("multi.set", "multi.create", "multi.delete", "check")


class ZkCounts:
    def __init__(self) -> None:
        self._operations = dict.fromkeys((*_NAMES, *_IN_MULTI), 0)
        self.sent_bytes = 0  # with the client's own messages: sessions, pings
        self.received_bytes = 0

    def asked(self, operation: Operation) -> None:
        """Count an operation that is being sent."""
        counts = self._operations
        match operation:
            case GetData():
                counts["get"] += 1
            case Exists():
                counts["exists"] += 1
            case GetChildren():
                counts["children"] += 1
            case SetData(version=version):
                counts["set"] += 1
                counts["set.versioned"] += version != ANY_VERSION
            case Create():
                counts["create"] += 1
            case Delete():
                counts["delete"] += 1
            case Multi(writes=writes):
                counts["multi"] += 1
                for write in writes:
                    counts[_name_in_multi(write)] += 1
            case _:
                assert_never(operation)

    def describe(self, watches: Watches) -> Mapping[str, int]:
        """All counts, and those of the client's `watches`, under names that begin with `zk.`."""
        return {
            **{f"zk.{name}": count for name, count in self._operations.items()},
            "zk.watches_armed": watches.armed,
            "zk.watches_fired": watches.told,
            "zk.bytes_sent": self.sent_bytes,
            "zk.bytes_received": self.received_bytes,
        }


def _name_in_multi(write: Write) -> str:
    match write:
        case SetData():
            return "multi.set"
        case Create():
            return "multi.create"
        case Delete():
            return "multi.delete"
        case Check():
            return "check"
        case _:
            assert_never(write)
