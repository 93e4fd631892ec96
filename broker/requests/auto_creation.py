"""Topics that clients ask for are created if nobody has done so (auto.create.topics.enable).

The controller is asked once for each name at a time; the client comes again for the result. What a
client asks for is asked in its name, in an envelope, so that the controller judges it by the
client's rights and quotas. What the broker needs itself, it asks for itself; so it does for a
client without bytes, in a simulation.

Source: Kafka's AutoTopicCreationManager; KIP-590.
"""

from functools import partial

from broker.cluster import Cluster
from broker.config import BrokerConfig
from broker.groups.offsets_topic import OFFSETS_TOPIC, offsets_topic
from broker.membership.controller_channel import ControllerChannel
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC, transactions_topic
from quorum.core.effects import Event, Request, body_of
from quorum.core.outbox import Outbox
from wire.api_table import api_of
from wire.apis import decode_response, encode_request
from wire.forwarding import wrap_request
from wire.messages.registration import EnvelopeResponse
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from wire.varint import Malformed

__all__ = ["AutoCreation"]

_IN_FLIGHT_MAX = 100
_API = api_of(CreateTopicsRequest)
_VERSION = _API.versions.newest
_CORRELATION_ID = 0  # of the one request in its envelope


class AutoCreation:
    def __init__(self, *, cluster: Cluster, controller: ControllerChannel, outbox: Outbox) -> None:
        self._cluster = cluster
        self._controller = controller
        self._outbox = outbox
        self._in_flight: set[str] = set()

    def create(self, name: str, asked_by: Request | None = None) -> None:
        """`asked_by` None: the broker itself needs it."""
        if name in self._in_flight or len(self._in_flight) >= _IN_FLIGHT_MAX:
            return
        topic = creatable_topic(name, self._cluster.config)
        timeout_ms = self._cluster.config.session_timeout_ms
        body: object = CreateTopicsRequest(topics=(topic,), timeout_ms=timeout_ms)
        if asked_by is not None and asked_by.frame:
            body = wrap_request(
                b"".join(encode_request(body, _VERSION, _CORRELATION_ID, asked_by.client_id)),
                client_host=asked_by.client_host,
                principal=asked_by.principal,
            )
        sent = self._controller.ask(
            body,
            channel="auto-creation",
            timeout_ms=timeout_ms,
            answered=partial(self._answered, name),
        )
        if sent:
            self._in_flight.add(name)

    def _answered(self, name: str, event: Event, _now_ms: int) -> None:
        self._in_flight.discard(name)
        self._outbox.trace("topic-auto-created", topic=name, error=_error_in(body_of(event)))


def _error_in(body: object) -> str:
    if isinstance(body, EnvelopeResponse):
        if not body.response_data:
            return body.error_code.name
        try:
            _, body = decode_response(body.response_data, _API.key, _VERSION)
        except Malformed:
            return "malformed answer"
    errors = body.topics if isinstance(body, CreateTopicsResponse) else ()
    return errors[0].error_code.name if errors else "no answer"


def creatable_topic(name: str, config: BrokerConfig) -> CreatableTopic:
    if name == OFFSETS_TOPIC:
        return offsets_topic(config.groups)
    if name == TRANSACTIONS_TOPIC:
        return transactions_topic(config.transactions)
    return CreatableTopic(
        name=name,
        num_partitions=config.num_partitions,
        replication_factor=config.default_replication_factor,
    )
