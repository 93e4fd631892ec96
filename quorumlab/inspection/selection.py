"""Which records are wanted: by type, by what they are about, by place and time, by expression."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from quorumlab.inspection.where import Condition
from wire.control_records import ControlRecord
from wire.metadata_records import MetadataRecord
from wire.record_json import type_name

__all__ = ["EVERYWHERE", "Selection", "parse_place", "parse_range", "parse_type"]

_BROKER_FIELDS = ("brokerId", "leader", "leaderId", "id")
_BROKER_LISTS = (
    "replicas",
    "isr",
    "removingReplicas",
    "addingReplicas",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)
EVERYWHERE = range(-1, 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is None, empty or unbounded selects everything."""

    types: frozenset[str] = frozenset()
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    offsets: range = EVERYWHERE
    times_ms: range = EVERYWHERE
    condition: Condition | None = None

    @property
    def takes_all(self) -> bool:
        return self == Selection()

    def takes(self, facts: Mapping[str, Any]) -> bool:
        """`facts` are those of `telling.TopicNames.facts`."""
        return (
            (not self.types or facts["type"] in self.types)
            and self.topic in (None, facts["topic"])
            and self.partition in (None, facts["partition"])
            and (self.broker is None or _names_broker(facts, self.broker))
            and facts["offset"] in self.offsets
            and facts["timestamp"] in self.times_ms
            and (self.condition is None or self.condition(facts))
        )


def _names_broker(facts: Mapping[str, Any], broker: int) -> bool:
    if any(facts.get(name) == broker for name in _BROKER_FIELDS):
        return True
    return any(broker in (facts.get(name) or ()) for name in _BROKER_LISTS)


def parse_type(text: str) -> str:
    """Kafka's name of a type from any usual spelling of it. Raises ValueError, and lists them."""
    known = {
        _bare(type_name(each)): type_name(each)
        for union in (MetadataRecord, ControlRecord)
        for each in get_args(union)
    }
    known[_bare("UNKNOWN")] = "UNKNOWN"
    found = known.get(_bare(text))
    if found is None:
        raise ValueError(f"no record type {text!r}; there are {', '.join(sorted(known.values()))}")
    return found


def _bare(name: str) -> str:
    return name.lower().replace("_", "").removesuffix("record")


def parse_range(text: str) -> range:
    """`100..200` (exclusive), `100..`, `..200`, or one offset. Raises ValueError."""
    match = re.fullmatch(r"(\d*)\.\.(\d*)|(\d+)", text)
    if match is None:
        raise ValueError(f"{text!r} is no range of offsets: write 100..200, 100.., ..200 or 100")
    if match[3]:
        return range(int(match[3]), int(match[3]) + 1)
    return range(int(match[1] or 0), int(match[2] or EVERYWHERE.stop))


def parse_place(text: str) -> tuple[int | None, int | None]:
    """An offset, or a time in ms: one of the two. Raises ValueError."""
    if text.isdecimal() and len(text) < 12:
        return int(text), None
    if text.isdecimal():
        return None, int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither an offset nor a time: write 1234, 2026-11-21T06:20:07Z, or"
            " milliseconds since 1970"
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return None, int(at.timestamp() * 1000)
