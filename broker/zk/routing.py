"""What clients are told of the cluster, where nobody tells the broker: read when they ask.

The image is as old as the last such request. Where a controller tells the broker, an ISR in it may
be a minute old (`broker.zk.isr_writes`). `quorumlab status` asks how the cluster is now: for
it ZooKeeper is read apart, and the image stays as it is.

No more is read than the answer is about: a client of one topic would else have the broker read the
partitions of all of them, which is what everybody else would wait for.

Source: seed 000, overview and discussion 6.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from broker.group_config import OFFSETS_TOPIC
from broker.membership import Handler
from broker.outbox import Outbox
from broker.zk.view import Reading, View
from quorum.core.effects import Reply, Request
from wire.messages.groups import FindCoordinatorRequest
from wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from wire.zk.session import Session

__all__ = ["ReadClusterRequest", "ReadClusterResponse", "reading_apart", "reading_first"]

_ROUTING = (
    MetadataRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
)


@dataclass(frozen=True, slots=True)
class ReadClusterRequest:
    """Asked by the node itself; it has no form on the wire. None: all topics."""

    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadClusterResponse:
    read: Reading | None  # None while there is no session


def reading_apart(session: Session, view: View, outbox: Outbox) -> dict[type, Handler]:
    """Routes that read the cluster as it is now, and leave the image of the broker alone."""

    def read_apart(request: Request, _now_ms: int) -> None:
        def answer(read: Reading | None) -> None:
            outbox.emit(Reply(token=request.token, body=ReadClusterResponse(read)))

        assert isinstance(request.body, ReadClusterRequest), request.body
        if session.is_connected:
            view.read_apart(answer, request.body.topics)
        else:
            answer(None)

    return {ReadClusterRequest: read_apart}


def reading_first(
    routes: Mapping[type, Handler], session: Session, view: View, now_ms: Callable[[], int]
) -> Mapping[type, Handler]:
    """`routes`, with the cluster read before any of these is answered; `now_ms`: by then."""

    def after_reading(handle: Handler) -> Handler:
        def read_first(request: Request, asked_ms: int) -> None:
            if session.is_connected:
                view.refresh(
                    lambda: handle(request, max(asked_ms, now_ms())), _named(request.body, view)
                )
            else:  # nobody knows better
                handle(request, asked_ms)

        return read_first

    return {**routes, **{kind: after_reading(routes[kind]) for kind in _ROUTING}}


def _named(body: object, view: View) -> Collection[str] | None:
    """The topics that the answer is about; None: all."""
    match body:
        case DescribeClusterRequest():
            return ()
        case FindCoordinatorRequest():
            return (OFFSETS_TOPIC,)
        case MetadataRequest(topics=tuple(topics)):
            return [each.name or view.name_of(each.topic_id) for each in topics]
        case DescribeTopicPartitionsRequest(topics=topics) if topics:
            return [each.name for each in topics]
        case _:
            return None
