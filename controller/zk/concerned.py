"""Which topics a request is about: of these alone a rule looks at the partitions.

Of all others it wants to know that they are there. A cluster has a few topics, and up to a million
partitions.
"""

from collections.abc import Collection, Iterator

from controller.metadata.znode_image import topic_id_of
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

__all__ = ["concerned"]


def concerned(body: object, known: Collection[str], moving: Collection[str]) -> list[str]:
    """Those of `known` that it is about, sorted.

    With a reassignment these are all that are `moving`, too: moves are written down together.
    """
    return sorted(set(_named(body, known, moving)).intersection(known))


def _named(body: object, known: Collection[str], moving: Collection[str]) -> Iterator[str]:
    match body:
        case CreateTopicsRequest(topics=topics) | CreatePartitionsRequest(topics=topics):
            yield from (topic.name for topic in topics)
        case DeleteTopicsRequest(topics=topics):
            ids = {topic_id_of(name): name for name in known}
            yield from (each.name or ids.get(each.topic_id, "") for each in topics)
        case AlterPartitionReassignmentsRequest(topics=topics):
            yield from moving
            yield from (topic.name for topic in topics)
        case ListPartitionReassignmentsRequest(topics=asked):
            yield from moving
            yield from (topic.name for topic in asked or ())
        case ElectLeadersRequest(topic_partitions=asked):
            yield from known if asked is None else (topic.topic for topic in asked)
        case _:
            pass  # configs: it is enough that a topic is there
