"""What clients are told of the cluster, where nobody tells the broker: read when they ask.

No more is read than the answer is about: a client of one topic would else have the broker read the
partitions of all of them, which is what everybody else would wait for.

Source: seed 000, overview and discussion 6.
"""

from collections.abc import Callable, Collection, Mapping

from broker.groups.topic import OFFSETS_TOPIC
from broker.membership import Handler
from broker.zk.view import View
from quorum.effects import Request
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.metadata import MetadataRequest
from wire.zk.session import Session

__all__ = ["reading_first"]

_ROUTING = (
    MetadataRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
)


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
