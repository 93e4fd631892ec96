"""What clients are told of the cluster, where nobody tells the broker: read when they ask.

Source: seed 000, overview and discussion 6.
"""

from collections.abc import Callable, Mapping

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
                view.refresh(lambda: handle(request, max(asked_ms, now_ms())))
            else:  # nobody knows better
                handle(request, asked_ms)

        return read_first

    return {**routes, **{kind: after_reading(routes[kind]) for kind in _ROUTING}}
