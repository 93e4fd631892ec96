"""The leader of a partition tells a broker through a queue to start or close a replica.

    sendStateChange(stateChange, followerBrokerId, leaderEpoch)

A queue is a node `/brokers/state/[broker_id]` with a sequential child for each request. The broker
takes them from the front, in order. While it is away its queue fills. A full queue keeps only the
newest close-replica of each partition, so that a broker that comes back deletes the replicas it
hosted; it reads from the assignments which replicas to start. If the queue is still full, the
leader gets FollowerStateChangeQueueFull, and tries again later.

Source: seed 002, "State change communication". How many requests make a queue full is ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.zk.zk_metadata import children, decoded
from quorum.zookeeper.zk_procedures import Procedure, one, one_by_one
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.session import Create, Created, Delete, GetData
from wire.zk.znodes import StateChange, StateChangeKind

__all__ = [
    "FollowerStateChangeQueueFull",
    "delete_request",
    "ensure_queue",
    "read_request",
    "requests_in",
    "retained",
    "send_state_change",
]


@dataclass(frozen=True, slots=True)
class FollowerStateChangeQueueFull:
    """The request was not queued."""

    broker_id: int


def retained(requests: Mapping[str, StateChange | None]) -> set[str]:
    """What a full queue keeps: the latest close-replica of each partition, by epoch, then place.

    `requests` by name, in order. None: one that cannot be read, and nobody will miss.
    """
    newest: dict[TopicPartition, tuple[int, str]] = {}
    for name, request in requests.items():
        if request is None or request.kind is not StateChangeKind.CLOSE_REPLICA:
            continue
        of = TopicPartition(request.topic, request.partition)
        newest[of] = max(newest.get(of, (request.leader_epoch, name)), (request.leader_epoch, name))
    return {name for _, name in newest.values()}


def send_state_change(
    broker_id: int, request: StateChange, *, queue_max: int
) -> Procedure[FollowerStateChangeQueueFull | None]:
    queue = paths.state_queue(broker_id)
    names = yield from children(queue)
    if len(names) >= queue_max:
        left = yield from _retain(queue, names)
        if left >= queue_max:
            return FollowerStateChangeQueueFull(broker_id)
    prefix, data = paths.state_queue_prefix(broker_id), request.encode()
    created = yield from one(Create(path=prefix, data=data, is_sequential=True))
    if not isinstance(created, Created):  # the broker was never here
        yield from ensure_queue(broker_id)
        yield from one(Create(path=prefix, data=data, is_sequential=True))
    return None


def _retain(queue: str, names: tuple[str, ...]) -> Procedure[int]:
    """How many requests are left."""
    results = yield from one_by_one(GetData(path=f"{queue}/{name}") for name in names)
    kept = retained(
        {
            name: decoded(result, StateChange.decode)
            for name, result in zip(names, results, strict=True)
        }
    )
    yield from one_by_one(Delete(path=f"{queue}/{name}") for name in names if name not in kept)
    return len(kept)


def ensure_queue(broker_id: int) -> Procedure[None]:
    yield from one(Create(path=paths.state_queue(broker_id)))


def requests_in(broker_id: int) -> Procedure[list[str]]:
    """The names of all that is queued, from the front; a watch fires for what comes."""
    names = yield from children(paths.state_queue(broker_id), watch=True)
    return sorted(names)


def read_request(broker_id: int, name: str) -> Procedure[StateChange | None]:
    """None: it cannot be read, and nobody will miss it."""
    found = yield from one(GetData(path=_path(broker_id, name)))
    return decoded(found, StateChange.decode)


def delete_request(broker_id: int, name: str) -> Procedure[None]:
    """Delete a request that has been obeyed."""
    yield from one(Delete(path=_path(broker_id, name)))


def _path(broker_id: int, name: str) -> str:
    return f"{paths.state_queue(broker_id)}/{name}"
