"""An image as a tree of names, to be browsed by path and compared leaf by leaf.

/brokers/1/fenced                    false
/topics/orders/partitions/0/leader   1
/configs/topic/orders/retention.ms   60000
/features/metadata.version           25

Topics and partitions, of which there may be a million, are made when they are looked at. A `/` in a
name is written %2F. Two images are first compared in columns, whatever rows their partitions have:
only topics that differ become parts of the trees.

Source: `controller.metadata.describe` says what an image holds.
"""

import fnmatch
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from controller.metadata.describe import describe, describe_partition
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partitions import CHUNK_BITS, NOBODY, PartitionColumns, Rows
from controller.metadata.topics import NO_ROW, Topics
from wire.metadata_records import BrokerFeature
from wire.primitives import uuid_text

__all__ = [
    "DEFAULT",
    "Change",
    "Node",
    "differences",
    "find",
    "first_difference",
    "image_differences",
    "leaves",
    "matches",
    "plain",
    "tree_of",
]

DEFAULT = "(default)"  # what has no name of its own: of all brokers, users ...
Node = Mapping[str, Any]
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class _Branch(Mapping[str, Any]):
    """Names, and what makes what is under them."""

    def __init__(self, names: Iterable[str], under: Callable[[str], Any]) -> None:
        self._names = dict.fromkeys(names)
        self._under = under

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._under(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def tree_of(image: MetadataImage, *, topics: Collection[str] | None = None) -> Node:
    """The tree of `controller.metadata.describe`, with what has an id or a name under it.

    `topics` may name those that are wanted.
    """
    stable = image.stable
    told: dict[str, Any] = dict(describe(stable._replace(topics=Topics())))
    for kind, key in (("brokers", "id"), ("controllers", "id"), ("delegation_tokens", "id")):
        told[kind] = _by(told[kind], key)
    for node_id, broker in stable.brokers.items():
        cordoned = broker.cordoned_log_dirs  # None: never told
        told["brokers"][str(node_id)] |= {
            "cordoned_log_dirs": None if cordoned is None else list(map(uuid_text, cordoned)),
            "features": _features(broker.features),
        }
    for node_id, controller in stable.controllers.items():
        told["controllers"][str(node_id)]["features"] = _features(controller.features)
    names = sorted(n for n in stable.topics.by_name if topics is None or n in topics)
    told["topics"] = _Branch(names, partial(_topic, stable))
    told["configs"] = _nested(
        (_resource(each["type"]), each["name"] or DEFAULT, each["values"])
        for each in told["configs"]
    )
    told["acls"] = _by(told["acls"], "id")
    told["client_quotas"] = {
        _part(",".join(f"{kind}={name or DEFAULT}" for kind, name in each["entity"].items())): each[
            "values"
        ]
        for each in told["client_quotas"]
    }
    told["scram_credentials"] = _nested(
        (_MECHANISMS.get(each["mechanism"], str(each["mechanism"])), each["user"], each)
        for each in told["scram_credentials"]
    )
    return told


def _features(supported: Mapping[str, BrokerFeature]) -> dict[str, str]:
    """The levels that a node supports: `7-30`."""
    return {
        name: f"{each.min_supported_version}-{each.max_supported_version}"
        for name, each in sorted(supported.items())
    }


def _topic(image: MetadataImage, name: str) -> Node:
    topic = image.topics.by_name[name]
    rows = {str(index): row for index, row in topic.partitions()}

    def partition(index: str) -> Node:
        told = describe_partition(int(index), image.partitions.state(rows[index]))
        del told["partition"]
        return told

    return {
        "id": uuid_text(topic.id),
        "configs": dict(sorted(image.config(ResourceType.TOPIC, name).items())),
        "partitions": _Branch(rows, partition),
    }


def _resource(kind: int) -> str:
    """`topic`, `broker`, `client-metrics`: as Kafka's tools say it."""
    try:
        return ResourceType(kind).name.lower().replace("_", "-")
    except ValueError:
        return str(kind)


def _nested(items: Iterable[tuple[str, str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for kind, name, under in items:
        found.setdefault(kind, {})[_part(name)] = under
    return found


def _by(items: Iterable[Mapping[str, Any]], key: str) -> dict[str, Any]:
    return {
        _part(str(item[key])): {k: value for k, value in item.items() if k != key} for item in items
    }


def _part(name: str) -> str:
    """A name as part of a path."""
    return name.replace("/", "%2F")


# --- looking --------------------------------------------------------------------------------


def find(tree: Node, path: str) -> Any:
    """Returns what lies at a path. Raises KeyError with the part that is not there."""
    found: Any = tree
    for part in filter(None, path.split("/")):
        if not isinstance(found, Mapping) or part not in found:
            raise KeyError(part)
        found = found[part]
    return found


def matches(tree: Node, pattern: str) -> Iterator[tuple[str, Any]]:
    """Yields what lies at a path with `*`, `?` or `[…]` in it, which match within one name."""
    return _matches(tree, "", [part for part in pattern.split("/") if part])


def _matches(node: Any, path: str, parts: list[str]) -> Iterator[tuple[str, Any]]:
    if not parts:
        yield path, node
    elif isinstance(node, Mapping):
        for name in fnmatch.filter(node, parts[0]):
            yield from _matches(node[name], f"{path}/{name}", parts[1:])


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path, in order."""
    if not isinstance(tree, Mapping):
        yield path, tree
        return
    for name, child in tree.items():
        yield from leaves(child, f"{path}/{name}")


def plain(tree: Any) -> Any:
    """Replaces mappings by dictionaries, as JSON wants it."""
    if not isinstance(tree, Mapping):
        return tree
    return {name: plain(child) for name, child in tree.items()}


@dataclass(frozen=True, slots=True)
class Change:
    """`before` or `after` is None where the path did not, or does no longer, exist."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """Yields what is not the same; a whole branch that came or went is one change."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if before != after:
            yield Change(path, plain(before), plain(after))
        return
    for name in dict.fromkeys((*before, *after)):
        yield from differences(before.get(name), after.get(name), f"{path}/{name}")


def first_difference(one: MetadataImage, other: MetadataImage) -> Change | None:
    return next(image_differences(one, other), None)


def image_differences(one: MetadataImage, other: MetadataImage) -> Iterator[Change]:
    """Compares their trees, but for topics that are the same."""
    topics = _changed_topics(one.stable, other.stable)
    return differences(tree_of(one, topics=topics), tree_of(other, topics=topics))


def _changed_topics(one: MetadataImage, other: MetadataImage) -> set[str]:
    """Returns the names of topics that only one image has, or that are not alike."""
    ours, theirs = one.topics.by_name, other.topics.by_name
    found = set(ours) ^ set(theirs)
    for name in set(ours) & set(theirs):
        is_alike = (
            ours[name].id == theirs[name].id
            and ours[name].partition_count == theirs[name].partition_count
            and one.config(ResourceType.TOPIC, name) == other.config(ResourceType.TOPIC, name)
        )
        if not is_alike:
            found.add(name)
    for number in range(len(one.partitions.chunks)):
        for row in _unlike_rows(one, other, number).tolist():
            place = one.partitions.place(row)
            assert place is not None, row
            topic = one.topic_by_id(place[0])
            assert topic is not None, place
            found.add(topic.name)
    return found


def _unlike_rows(one: MetadataImage, other: MetadataImage, number: int) -> Rows:
    """The rows of a chunk of the first image that the second lacks, or has otherwise."""
    chunk = one.partitions.chunks[number]
    if number < len(other.partitions.chunks) and chunk is other.partitions.chunks[number]:
        return np.empty(0, np.int32)
    places = np.flatnonzero(chunk.partition >= 0)
    rows = (places + (number << CHUNK_BITS)).astype(np.int32)
    theirs = other.topics.rows_of(chunk.topic_id[places], chunk.partition[places])
    known = np.flatnonzero(theirs != NO_ROW)
    ours_columns, their_columns = (
        one.partitions.columns(rows[known]),
        other.partitions.columns(theirs[known]),
    )
    both = ours_columns.is_columnar & their_columns.is_columnar
    alike = both & _equal(ours_columns, their_columns, _directory_numbers(one, other))
    for place in np.flatnonzero(~both).tolist():
        at, there = int(rows[known[place]]), int(theirs[known[place]])
        alike[place] = one.partitions.state(at) == other.partitions.state(there)
    is_unlike = np.ones(len(rows), np.bool_)
    is_unlike[known[alike]] = False
    return rows[is_unlike]


def _directory_numbers(one: MetadataImage, other: MetadataImage) -> npt.NDArray[np.int64]:
    """Maps each directory of the second table to its number in the first, -1 where it has none."""
    numbers = {directory: number for number, directory in enumerate(one.partitions.directories)}
    return np.array([numbers.get(each, -1) for each in other.partitions.directories], np.int64)


def _equal(
    one: PartitionColumns, other: PartitionColumns, directory_numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = (
        (one.isr == other.isr)
        & (one.leader == other.leader)
        & (one.leader_epoch == other.leader_epoch)
        & (one.partition_epoch == other.partition_epoch)
        & (one.recovering == other.recovering)
    )
    for slot in range(max(len(one.replicas), len(other.replicas))):
        ours, theirs = _slot(one, slot), _slot(other, slot)
        equal &= ours == theirs
        if slot < min(len(one.replicas), len(other.replicas)):
            same = one.directories[slot] == directory_numbers[other.directories[slot]]
            equal &= same | (ours == NOBODY)
    return equal


def _slot(columns: PartitionColumns, slot: int) -> Rows:
    nobody = np.full(len(columns.partition), NOBODY, np.int32)
    return columns.replicas[slot] if slot < len(columns.replicas) else nobody
