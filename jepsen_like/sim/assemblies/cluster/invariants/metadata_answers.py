"""No Metadata answer of a broker is stale.

M-ANS   a Metadata answer says what the broker's image says: brokers, topics, leaders, ISRs

A broker prepares most of an answer once, for many clients, and drops what a change concerns. Here
the answer is compared with the image itself. An answer may also say what held since the turn began.
"""

from collections.abc import Callable, Iterator

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from jepsen_like.sim.assemblies.cluster.nodes import BROKER_LISTENER, BrokerOf
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic

__all__ = ["ImagesOfTurn", "MetadataAnswers", "untrue_in"]


class ImagesOfTurn(Observer):
    """A broker may show one image after the other within a turn: these are the ones it may show.

    A request is taken at the beginning of a turn, and the image may change before it is answered.
    So an invariant accepts whatever was true since the turn began.
    """

    def __init__(self, images_between: Callable[[int, int], Iterator[MetadataImage]]) -> None:
        self._images_between = images_between
        self._shown_at: dict[int, int] = {}  # by node: the offset, when its last turn ended

    def started(self, host: Host) -> None:
        self._shown_at.pop(host.node_id, None)

    def settled_broker(self, host: Host, broker: Broker) -> None:
        self._shown_at[host.node_id] = broker.metadata.published_offset + 1

    def of(self, host: Host, broker: Broker) -> Iterator[MetadataImage]:
        """The present one first, then those of the metadata log since the turn began."""
        yield broker.cluster.image
        last = broker.metadata.published_offset + 1
        yield from self._images_between(self._shown_at.get(host.node_id, 0), last)


class MetadataAnswers(Observer):
    """Raises `Violation`."""

    def __init__(self, broker_of: BrokerOf, images: ImagesOfTurn) -> None:
        self._broker_of = broker_of
        self._images = images

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        if not isinstance(response, MetadataResponse):
            return
        assert isinstance(request, MetadataRequest), request
        broker = self._broker_of(host)
        assert broker is not None, f"{host.node_id} answers, and is no broker"
        images = self._images.of(host, broker)
        untrue = untrue_in(request, response, next(images))
        was_true = (untrue_in(request, response, image.stable) is None for image in images)
        if untrue is not None and not any(was_true):
            raise Violation("M-ANS", f"broker {host.node_id} answers {untrue}")


def untrue_in(
    request: MetadataRequest, response: MetadataResponse, image: MetadataImage
) -> str | None:
    """Return the first thing in an answer that is not so in `image`."""
    addresses = _addresses(image)
    brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
    if brokers != addresses:
        return f"{brokers} for the brokers {addresses}"
    if request.topics is None:
        names = [topic.name for topic in response.topics]
        if names != sorted(image.topics.by_name):
            return f"{names} for the topics {sorted(image.topics.by_name)}"
    for topic in response.topics:
        if topic.error_code is ErrorCode.NONE:
            untrue = _untrue_of_topic(topic, image, frozenset(addresses))
            if untrue is not None:
                return untrue
    return None


def _addresses(image: MetadataImage) -> dict[int, tuple[str, int]]:
    return {
        broker.id: (place.host, place.port)
        for broker in image.brokers.values()
        for place in broker.end_points
        if not broker.fenced and place.name == BROKER_LISTENER
    }


def _untrue_of_topic(
    topic: MetadataResponseTopic, image: MetadataImage, reachable: frozenset[int]
) -> str | None:
    known = image.topic_by_id(topic.topic_id)
    if known is None or known.name != topic.name:
        return f"{topic.name} for the topic with id {topic.topic_id}"
    told = {
        each.partition_index: (
            each.leader_id,
            each.leader_epoch,
            each.replica_nodes,
            each.isr_nodes,
            set(each.offline_replicas),
            each.error_code is ErrorCode.NONE,
        )
        for each in topic.partitions
    }
    for index, state in image.partitions_of(known.id):
        if told.pop(index, None) != _told_of(state, reachable):
            return f"another state of {topic.name}-{index} than {state}; up: {sorted(reachable)}"
    return f"{topic.name} with {sorted(told)} more partitions" if told else None


def _told_of(state: PartitionState, reachable: frozenset[int]) -> tuple[object, ...]:
    return (
        state.leader,
        state.leader_epoch,
        state.replicas,
        state.isr,
        set(state.replicas) - reachable,
        state.leader in reachable,
    )
