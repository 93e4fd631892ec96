"""An image as a tree of names, to be browsed by path and compared leaf by leaf.

/brokers/1/fenced                    false
/topics/orders/partitions/0/leader   1
/configs/topic/orders/retention.ms   60000
/features/metadata.version           25
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.metadata.describe import describe
from controller.metadata.image import MetadataImage

__all__ = ["Change", "Node", "differences", "find", "leaves", "tree_of"]

Node = Mapping[str, Any]
_RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}


def tree_of(image: MetadataImage) -> Node:
    """Of `controller.metadata.describe`, with what has an id or a name under it."""
    told = dict(describe(image.stable))
    told["brokers"] = _by(told["brokers"], "id")
    told["controllers"] = _by(told["controllers"], "id")
    told["topics"] = {
        name: {**topic, "partitions": _by(topic["partitions"], "partition")}
        for name, topic in _by(told["topics"], "name").items()
    }
    configs: dict[str, dict[str, Any]] = {}
    for each in told["configs"]:  # type: ignore[attr-defined]
        kind = _RESOURCES.get(each["type"], str(each["type"]))
        configs.setdefault(kind, {})[each["name"] or "(default)"] = each["values"]
    told["configs"] = configs
    return told


def _by(items: Any, name: str) -> dict[str, Any]:
    return {str(item[name]): {k: v for k, v in item.items() if k != name} for item in items}


def find(tree: Node, path: str) -> Any:
    """What lies at a path. Raises KeyError with the part that is not there."""
    found: Any = tree
    for part in filter(None, path.split("/")):
        if not isinstance(found, Mapping) or part not in found:
            raise KeyError(part)
        found = found[part]
    return found


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path, in order."""
    if not isinstance(tree, Mapping):
        yield path, tree
        return
    for name, child in tree.items():
        yield from leaves(child, f"{path}/{name}")


@dataclass(frozen=True, slots=True)
class Change:
    """`before` or `after` is None where the path did not, or does no longer, exist."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """What is not the same; whole branches that came or went are one change."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if before != after:
            yield Change(path, before, after)
        return
    for name in dict.fromkeys((*before, *after)):
        yield from differences(before.get(name), after.get(name), f"{path}/{name}")
