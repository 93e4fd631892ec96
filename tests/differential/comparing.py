"""Two answers, field by field: where they differ, once what must differ is taken out.

What each side names by chance (ids of topics, members, directories, sessions, producers) is
equal if the one always stands where the other does: `Twins` remembers who stands for whom. Arrays
of entities are aligned by what names an element; what Kafka answers in the order of its hash maps
has no order to be compared.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any
from uuid import UUID

from wire import batch
from wire.varint import Malformed

__all__ = ["ABSENT", "Difference", "Twins", "differences"]

ABSENT = "(absent)"
ZERO_ID = UUID(int=0)
NOW_MS = 600_000

# Clocks, speeds, and sizes of disks.
IGNORED = frozenset(
    {
        "throttle_time_ms",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "total_bytes",
        "usable_bytes",
        "log_end_offset",
        "finalized_features_epoch",
    }
)
# What names an element of an array; the first that it has of each row.
NAMING = (
    "name", "topic_name", "topic", "group_id", "user", "key", "broker_id", "node_id", "replica_id",
    "api_key", "topic_id", "id_", "log_dir", "resource_type", "resource_name", "member_id",
    "partition_index", "partition", "partition_id", "index", "entity_type", "entity_name",
    "entity", "principal", "operation", "permission_type", "host", "pattern_type", "source",
    "mechanism", "text", "transactional_id", "producer_id",
)  # fmt: skip
IN_ORDER = frozenset(
    {"replica_nodes", "replicas", "synonyms", "record_errors", "batches", "rows", "headers"}
)
# Ints that each side counts for itself.
COUNTED = {
    "session_id": "session",
    "producer_id": "producer",
    "producer_id_start": "producer",
    "broker_epoch": "broker epoch",
}
NOBODY = {"session": 0, "producer": -1, "broker epoch": -1}

_TOKEN = re.compile(
    r"[\w.-]*-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # members
    r"|(?<![\w-])(?=[\w-]*[\d_-])[\w-]{22}(?![\w-])"  # ids as Kafka writes them
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`field` is where it is in the message, `at` names the elements on the way."""

    field: str
    at: str
    ours: str
    kafka: str

    def __str__(self) -> str:
        return f"{self.field} at {self.at}: ours {self.ours}, Kafka {self.kafka}"


@dataclass(slots=True)
class Twins:
    """Who stands for whom, by kind."""

    places: Callable[[str, str], str] = lambda text, side: text  # takes out ports and directories
    ports: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # by side
    _of_ours: dict[tuple[str, Any], Any] = field(default_factory=dict)
    _of_kafka: dict[tuple[str, Any], Any] = field(default_factory=dict)

    def are(self, kind: str, ours: Any, kafka: Any) -> bool:
        """Whether they stand for each other; from now on, if neither was seen before."""
        known = (self._of_ours.get((kind, ours)), self._of_kafka.get((kind, kafka)))
        if known == (None, None):
            self._of_ours[kind, ours] = kafka
            self._of_kafka[kind, kafka] = ours
            return True
        return known == (kafka, ours)

    def in_kafkas_words(self, text: str) -> str:
        """A text of ours with what ours names by chance as Kafka names it."""
        return _TOKEN.sub(lambda m: str(self._of_ours.get(("token", m.group()), m.group())), text)

    def of(self, kind: str, ours: Any) -> Any:
        return self._of_ours.get((kind, ours), ours)

    def alike(self, ours: str, kafka: str) -> tuple[str, str]:
        """Both texts, without what they may differ in."""
        ours, kafka = self.places(ours, "ours"), self.places(kafka, "kafka")
        mine, theirs = _TOKEN.findall(ours), _TOKEN.findall(kafka)
        if len(mine) == len(theirs):
            for one, other in zip(mine, theirs, strict=True):
                self.are("token", one, other)
        return self.in_kafkas_words(ours), kafka


def differences(ours: Any, kafka: Any, twins: Twins) -> list[Difference]:
    return list(_compared("", "", ours, kafka, twins))


def _compared(path: str, at: str, ours: Any, kafka: Any, twins: Twins) -> Iterator[Difference]:
    name = path.rpartition(".")[2].removesuffix("[]")
    if name in IGNORED:
        return
    match ours, kafka:
        case (Mapping(), Mapping()):
            for key in dict.fromkeys((*ours, *kafka)):
                below = f"{path}.{key}" if path else key
                inner = ours.get(key, ABSENT), kafka.get(key, ABSENT)
                yield from _compared(below, at, *inner, twins)
        case (list(), list()):
            yield from _arrays(path, at, ours, kafka, twins)
        case (bytes(), bytes()) if name == "records":
            if ours != kafka:
                batches = {"batches": _batches(ours)}, {"batches": _batches(kafka)}
                yield from _compared(path, at, *batches, twins)
        case _:
            mine, theirs = _in_words(name, ours, kafka, twins)
            if mine != theirs:
                yield Difference(field=path, at=at, ours=mine, kafka=theirs)


def _in_words(name: str, ours: Any, kafka: Any, twins: Twins) -> tuple[str, str]:
    """Two values as texts, equal if nothing but chance makes them differ."""
    match ours, kafka:
        case (str(), str()) if ABSENT not in (ours, kafka):
            mine, theirs = twins.alike(ours, kafka)
            return f'"{mine}"', f'"{theirs}"'
        case (UUID(), UUID()) if ZERO_ID not in (ours, kafka):
            return ("id", "id") if twins.are("id", ours, kafka) else (f"id {ours}", f"id {kafka}")
        case (int(), int()) if name == "port":
            ports = twins.ports
            return ports["ours"].get(ours, str(ours)), ports["kafka"].get(kafka, str(kafka))
        case (int(), int()) if _is_now(ours) and _is_now(kafka):
            return "now", "now"
        case (int(), int()) if _is_counted(name, ours, kafka):
            same = twins.are(COUNTED[name], ours, kafka)
            return (name, name) if same else (f"{name} {ours}", f"{name} {kafka}")
        case _:
            return _brief(ours), _brief(kafka)


def _is_counted(name: str, ours: int, kafka: int) -> bool:
    """An answer with an error has 0 where an id would stand."""
    return (
        name in COUNTED and NOBODY[COUNTED[name]] not in (ours, kafka) and (ours, kafka) != (0, 0)
    )


def _is_now(value: int) -> bool:
    """Whether a clock gave it, some minutes ago at most."""
    return abs(value - time.time() * 1000) < NOW_MS


def _brief(value: Any) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    if len(text) > 400:  # longer than the longest name that is drawn
        text = f"{text[:160]}... ({len(text)} characters)"
    return f'"{text}"' if isinstance(value, str) and value is not ABSENT else text


# --- arrays ----------------------------------------------------------------------------------


def _arrays(
    path: str, at: str, ours: Sequence[Any], kafka: Sequence[Any], twins: Twins
) -> Iterator[Difference]:
    name = path.rpartition(".")[2]
    if not all(isinstance(element, dict) for element in (*ours, *kafka)):
        if name not in IN_ORDER:
            ours, kafka = sorted(ours, key=str), sorted(kafka, key=str)
        if ours != kafka and not _same_ids(ours, kafka, twins):
            yield Difference(field=path, at=at, ours=_brief(ours), kafka=_brief(kafka))
        return
    if name in IN_ORDER or not any(_named(element, twins) for element in (*ours, *kafka)):
        for number, (mine, theirs) in enumerate(zip_longest(ours, kafka, fillvalue=ABSENT)):
            yield from _compared(f"{path}[]", f"{at}/#{number}", mine, theirs, twins)
        return
    mine_by, theirs_by = _by_name(ours, twins, "ours"), _by_name(kafka, twins, "kafka")
    for key in sorted({*mine_by, *theirs_by}):
        mine, theirs = mine_by.get(key, ABSENT), theirs_by.get(key, ABSENT)
        where = f"{at}/{'.'.join(key[0])}"
        if mine is ABSENT or theirs is ABSENT:
            there = (mine, ABSENT) if theirs is ABSENT else (ABSENT, theirs)
            said = (value if value is ABSENT else _brief(value) for value in there)
            yield Difference(field=f"{path}[]", at=where, ours=next(said), kafka=next(said))
        else:
            yield from _compared(f"{path}[]", where, mine, theirs, twins)


def _same_ids(ours: Sequence[Any], kafka: Sequence[Any], twins: Twins) -> bool:
    return len(ours) == len(kafka) and all(
        isinstance(mine, UUID) and isinstance(theirs, UUID) and twins.are("id", mine, theirs)
        for mine, theirs in zip(ours, kafka, strict=True)
    )


def _by_name(
    elements: Sequence[dict[str, Any]], twins: Twins, side: str
) -> dict[tuple[tuple[str, ...], int], dict[str, Any]]:
    """Elements of one name are told apart by their order."""
    found: dict[tuple[tuple[str, ...], int], dict[str, Any]] = {}
    for element in elements:
        name = _named(element, twins if side == "ours" else None)
        name = tuple(twins.places(part, side) for part in name)
        rank = 0
        while (name, rank) in found:
            rank += 1
        found[name, rank] = element
    return found


def _named(element: dict[str, Any], twins: Twins | None) -> tuple[str, ...]:
    """What names it; with `twins`, in the words of Kafka."""
    words = [(key, element[key]) for key in NAMING if key in element]
    if any(key in ("name", "topic") and value is not None for key, value in words):
        words = [(key, value) for key, value in words if not isinstance(value, UUID)]
    if len(words) > 1:
        words = [(key, value) for key, value in words if key not in COUNTED]
    return tuple(_naming(key, value, twins) for key, value in words)


def _naming(key: str, value: Any, twins: Twins | None) -> str:
    if isinstance(value, list):  # the parts of an entity of quotas
        return str(sorted(value, key=str))
    if twins is None:
        return str(value)
    if isinstance(value, UUID):
        return str(twins.of("id", value))
    if key in COUNTED:
        return str(twins.of(COUNTED[key], value))
    return twins.in_kafkas_words(str(value))


def _batches(content: bytes) -> list[dict[str, Any]]:
    """Headers and records; what cannot be read is told by its size."""
    found: list[dict[str, Any]] = []
    end = 0
    try:
        for position, header in batch.headers(content):
            whole = content[position : position + header.size_bytes]
            row = header._asdict()
            row["crc"] = "intact" if batch.is_intact(content, position, header) else "wrong"
            try:
                row["rows"] = [record._asdict() for record in batch.records_of(whole)]
            except Malformed as error:
                row["unread"] = f"{error}"
            found.append(row)
            end = position + header.size_bytes
        if end < len(content):
            found.append({"unread": f"{len(content) - end} bytes"})
    except Malformed as error:
        found.append({"unread": f"{len(content)} bytes: {error}"})
    return found
