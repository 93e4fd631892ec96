"""Topics that clients ask for are created if nobody has done so (auto.create.topics.enable).

The controller is asked once for each name at a time; the client comes again for the result.

Source: Kafka's AutoTopicCreationManager.
"""

from functools import partial

from broker.cluster import Cluster
from broker.config import BrokerConfig
from broker.groups.offsets_topic import OFFSETS_TOPIC, offsets_topic
from broker.membership.controller_channel import ControllerChannel
from quorum.core.effects import Event, body_of
from quorum.core.outbox import Outbox
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

__all__ = ["AutoCreation"]

_IN_FLIGHT_MAX = 100


class AutoCreation:
    def __init__(self, *, cluster: Cluster, controller: ControllerChannel, outbox: Outbox) -> None:
        self._cluster = cluster
        self._controller = controller
        self._outbox = outbox
        self._in_flight: set[str] = set()

    def create(self, name: str, _now_ms: int) -> None:
        if name in self._in_flight or len(self._in_flight) >= _IN_FLIGHT_MAX:
            return
        topic = creatable_topic(name, self._cluster.config)
        timeout_ms = self._cluster.config.session_timeout_ms
        sent = self._controller.ask(
            CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms),
            channel="auto-creation",
            timeout_ms=timeout_ms,
            answered=partial(self._answered, name),
        )
        if sent:
            self._in_flight.add(name)

    def _answered(self, name: str, event: Event, _now_ms: int) -> None:
        self._in_flight.discard(name)
        body = body_of(event)
        errors = body.topics if isinstance(body, CreateTopicsResponse) else ()
        self._outbox.trace(
            "topic-auto-created",
            topic=name,
            error=errors[0].error_code.name if errors else "no answer",
        )


def creatable_topic(name: str, config: BrokerConfig) -> CreatableTopic:
    if name == OFFSETS_TOPIC:
        return offsets_topic(config.groups)
    return CreatableTopic(
        name=name,
        num_partitions=config.num_partitions,
        replication_factor=config.default_replication_factor,
    )
