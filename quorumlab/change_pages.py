"""Pages of the changes that a node remembers: when it applied an offset, or saw a znode change.

The cores know only the driver's monotonic time. Pages tell wall clock, by what the two clocks show
when the page is asked for: after the wall clock was set, all times move with it.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from quorum.log.applied_times import AppliedTimes
from quorum.node.member import Member
from quorumlab.node_parts import NodeParts
from wire.http import Answer, Route

if TYPE_CHECKING:
    from quorum.zookeeper.znode_changes import ZnodeChanges

__all__ = ["applied_page", "change_routes", "parse_number", "parse_offsets", "znode_page"]

_OFFSETS_MAX = 1000  # in one question
_NUMBER_MAX = (1 << 63) - 1


def change_routes(node: NodeParts) -> Mapping[str, Route]:
    return {
        "/v1/applied": lambda query: _applied(node, query),
        "/v1/znode-changes": lambda query: _znode_changes(node, query),
    }


def _wall_offset_ms(node: NodeParts) -> int:
    """What to add to the driver's time: near 0, unless a clock was set since the node began."""
    return time.time_ns() // 1_000_000 - node.driver.now_ms()


def _applied(node: NodeParts, query: Mapping[str, str]) -> Answer:
    if not isinstance(node.member, Member):
        error = "this node has no metadata log: its design keeps its metadata in ZooKeeper"
        return Answer.json({"error": error}, 404)
    if node.register is not None:
        return Answer.json({"error": "the log of this node holds registers, no metadata"}, 404)
    try:
        offsets = parse_offsets(query.get("offsets", ""))
    except ValueError as error:
        return Answer.json({"error": str(error)}, 400)
    page = applied_page(node.member.applied_times, offsets, _wall_offset_ms(node))
    about = {"node_id": node.config.node_id, "started_ms": node.started_ms}
    return Answer.json({**about, **page})


def parse_offsets(text: str) -> tuple[int, ...]:
    """Raises ValueError with what is wrong."""
    names = text.split(",") if text else []
    if not names:
        raise ValueError("say which: ?offsets=12,15")
    if len(names) > _OFFSETS_MAX:
        raise ValueError(f"{len(names)} offsets are too many: ask for {_OFFSETS_MAX} at most")
    return tuple(parse_number("offsets", name) for name in names)


def parse_number(key: str, text: str) -> int:
    """Raises ValueError unless it is a whole number from 0 on, in ASCII, of 63 bits."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_NUMBER_MAX))
    if not is_number or int(text) > _NUMBER_MAX:
        raise ValueError(f"{key}: {text!r:.100} is no whole number from 0 to {_NUMBER_MAX}")
    return int(text)


def applied_page(
    times: AppliedTimes, offsets: tuple[int, ...], wall_offset_ms: int
) -> dict[str, object]:
    """`applied_ms` has each of `offsets`, in milliseconds since 1970. null: it is not applied yet,
    if it is not before `next_offset`, or it is before `oldest`, and forgotten.
    """
    found = {offset: times.when(offset) for offset in offsets}
    return {
        "next_offset": times.next_offset,
        "oldest": times.oldest,
        "applied_ms": {
            str(offset): when + wall_offset_ms if isinstance(when, int) else None
            for offset, when in found.items()
        },
    }


def _znode_changes(node: NodeParts, query: Mapping[str, str]) -> Answer:
    if node.zk is None:
        error = "this node has no znodes: its metadata is in the log of a quorum"
        return Answer.json({"error": error}, 404)
    try:
        after = parse_number("after", query.get("after", "0"))
    except ValueError as error:
        return Answer.json({"error": str(error)}, 400)
    page = znode_page(node.zk.znode_changes, after, _wall_offset_ms(node))
    about = {"node_id": node.config.node_id, "started_ms": node.started_ms}
    return Answer.json({**about, **page})


def znode_page(seen: "ZnodeChanges", after: int, wall_offset_ms: int) -> dict[str, object]:
    """The changes with numbers larger than `after`, each at its time in milliseconds since 1970."""
    return {
        "first": seen.first,
        "next": seen.next,
        "changes": [
            {
                "number": change.number,
                "at_ms": change.at_ms + wall_offset_ms,
                "path": change.path,
                "version": change.version,
                "value": change.value,
            }
            for change in seen.after(after)
        ],
    }
