"""Where an error stands in the answer of each API, and how an answer is made that has it.

An API that changes something is answered without the broker: a real broker that gives such an error
has done nothing, so a producer that sends again must not find its records there twice. Only the
errors of `AFTERWARDS` are those of a broker that has done the work. The answer to an API that reads
is the broker's own, with the error put in.

Pure. Works on the canonical messages of `wire.messages`, so that it knows no version.
Source: Kafka's `getErrorResponse` of each request class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wire.canonical import canonical_class
from wire.errors import ErrorCode
from wire.message import element_type, fields_of, replace
from wire.primitives import ZERO_UUID

__all__ = [
    "AFTERWARDS",
    "PLACES",
    "Place",
    "Wanted",
    "asked_in",
    "refused",
    "spoiled",
    "topic_name",
    "without",
]

AFTERWARDS = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT)
Wanted = Callable[[Any], bool]  # is a topic, of a request or an answer, one that shall fail?
Path = tuple[str, ...]
_KEYS = ("name", "topic", "topic_id", "index", "partition_index", "partition", "member_id")
_NOWHERE: Mapping[str, Any] = {"low_watermark": -1}  # what has no default in an answer
# An answer with an error carries nothing else: a client must not take records from it.
_EMPTY: Mapping[str, Mapping[str, Any]] = {
    "fetch": {"records": b"", "aborted_transactions": ()},
    "find_coordinator": {"node_id": -1, "host": "", "port": -1},
    "list_offsets": {"offset": -1, "timestamp": -1},
    "metadata": {"partitions": ()},
    "describe_topic_partitions": {"partitions": ()},
    "offset_fetch": {"committed_offset": -1},
    "describe_producers": {"active_producers": ()},
    "describe_transactions": {"topics": ()},
    "list_transactions": {"transaction_states": ()},
}


@dataclass(frozen=True, slots=True)
class Place:
    """Paths are names of arrays, each in the elements of the one before; () is the message."""

    answer: Path  # down to the elements that have the error
    topics: int | None = None  # which of `answer` is the array of topics; None: it names none
    request: Path | None = None  # of an API that changes something: `answer` in the request
    unnamed: Path | None = None  # where the error stands if no topic is named, if elsewhere


_PARTITIONS = Place(("topics", "partitions"), 0)
PLACES: Mapping[str, Place] = {
    "produce": Place(
        ("responses", "partition_responses"), 0, request=("topic_data", "partition_data")
    ),
    "fetch": Place(("responses", "partitions"), 0),
    "list_offsets": _PARTITIONS,
    "metadata": Place(("topics",), 0),
    "offset_commit": Place(("topics", "partitions"), 0, request=("topics", "partitions")),
    "offset_fetch": Place(("groups", "topics", "partitions"), 1, unnamed=("groups",)),
    "find_coordinator": Place(("coordinators",)),
    "join_group": Place((), request=()),
    "heartbeat": Place((), request=()),
    "leave_group": Place((), request=()),
    "sync_group": Place((), request=()),
    "describe_groups": Place(("groups",)),
    "list_groups": Place(()),
    "consumer_group_heartbeat": Place((), request=()),
    "consumer_group_describe": Place(("groups",)),
    "create_topics": Place(("topics",), 0, request=("topics",)),
    "delete_topics": Place(("responses",), 0, request=("topics",)),
    "delete_records": Place(("topics", "partitions"), 0, request=("topics", "partitions")),
    "init_producer_id": Place((), request=()),
    "offset_for_leader_epoch": _PARTITIONS,
    "describe_configs": Place(("results",)),
    "create_partitions": Place(("results",), 0, request=("topics",)),
    "describe_cluster": Place(()),
    "describe_topic_partitions": Place(("topics",), 0),
    "add_offsets_to_txn": Place((), request=()),
    "end_txn": Place((), request=()),
    "txn_offset_commit": Place(("topics", "partitions"), 0, request=("topics", "partitions")),
    "describe_producers": _PARTITIONS,
    "describe_transactions": Place(("transaction_states",)),
    "list_transactions": Place(()),
}


def asked_in(request: Any, place: Place, wanted: Wanted) -> bool:
    """Does a request for a change concern what shall fail?"""
    if not place.request:
        return True
    return any(wanted(each) for each in getattr(request, place.request[0]))


def without(request: Any, place: Place, wanted: Wanted) -> Any | None:
    """The request without what shall fail; None if nothing is left of it."""
    if not place.request:
        return None
    name = place.request[0]
    rest = tuple(each for each in getattr(request, name) if not wanted(each))
    return replace(request, **{name: rest}) if rest else None


def refused(
    api: str, request: Any, place: Place, wanted: Wanted, error: ErrorCode, rest: Any | None
) -> Any:
    """The answer to a request for a change that failed; `rest` answers what is left of it."""
    response = canonical_class(api, "response")
    assert place.request is not None, api
    if not place.request:
        return _mirrored(request, response, (), (), error)
    name, asked = place.answer[0], place.request[0]
    kind = element_type(fields_of(response)[name].type)
    failed = tuple(
        _mirrored(each, kind, place.request[1:], place.answer[1:], error)
        for each in getattr(request, asked)
        if wanted(each)
    )
    if rest is None:
        return response(**{name: failed})
    return replace(rest, **{name: getattr(rest, name) + failed})


def _mirrored(asked: Any, kind: Any, request: Path, answer: Path, error: ErrorCode) -> Any:
    """An element of an answer, with the keys of the element that was asked for."""
    known, wanted = fields_of(asked.__class__), fields_of(kind)
    values = {key: getattr(asked, key) for key in _KEYS if key in known and key in wanted}
    if answer:
        inner = element_type(wanted[answer[0]].type)
        parts = getattr(asked, request[0])
        values[answer[0]] = tuple(
            _mirrored(each, inner, request[1:], answer[1:], error) for each in parts
        )
        return kind(**values)
    values |= {key: value for key, value in _NOWHERE.items() if key in wanted}
    return kind(**values, error_code=error)


def spoiled(
    api: str, answer: Any, place: Place, wanted: Wanted | None, error: ErrorCode
) -> Any | None:
    """The answer with the error in it; None if it does not tell of what shall fail.

    `wanted` is None where no topic was named.
    """
    path, topics = place.answer, place.topics
    if wanted is None:
        path, topics = path if place.unnamed is None else place.unnamed, None
    empty = _EMPTY.get(api, {})

    def at(message: Any, level: int) -> Any | None:
        if level == len(path):
            known = fields_of(message.__class__)
            values = {name: value for name, value in empty.items() if name in known}
            return replace(message, error_code=error, **values)
        elements = getattr(message, path[level]) or ()
        made = [
            at(each, level + 1) if level != topics or wanted is None or wanted(each) else None
            for each in elements
        ]
        if not any(each is not None for each in made):
            return None
        mixed = (new if new is not None else old for new, old in zip(made, elements, strict=True))
        return replace(message, **{path[level]: tuple(mixed)})

    return at(answer, 0)


def topic_name(topic: Any, names: Mapping[Any, str]) -> str | None:
    """The name of a topic in a request or an answer; `names` are by the ids that were seen."""
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    if name:
        return str(name)
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    return names.get(topic_id)
