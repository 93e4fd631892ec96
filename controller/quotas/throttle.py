"""The quotas of a node's clients, as its driver asks for them: who waits, and how long?

    producer_byte_rate   bytes of Produce requests
    consumer_byte_rate   bytes of records in the answers to Fetch requests, not to those of brokers
    request_percentage   share of the time of the node's thread; 100 is all of it

What nodes ask of each other is exempt, and so is ApiVersions, with which their connections begin
as well: no flood of clients may make a node wait. A request that a broker forwards is measured
where it is carried out: the answer says how long to wait, and the broker has its client wait.

Unlike Kafka's, an answer to a Fetch that goes beyond the quota keeps its records: the client has to
wait for as long, and nothing is read twice. As in Kafka, one answer has no more than the quota
allows in all windows but one, unless a single batch is larger.

Source: KIP-13, KIP-55, KIP-124, KIP-219; Kafka's KafkaApis, ClientQuotaManager and
ClientRequestQuotaManager.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controller.metadata.image import MetadataImage
from controller.quotas.client_rates import ClientRates, Throttling
from controller.quotas.connection_rates import ConnectionRates
from controller.quotas.limits import Limits
from controller.quotas.sampled_rate import Windows
from quorum.core.effects import Request
from quorum.core.inbox import is_control
from wire.admission import Admission
from wire.apis import decode_response, read_header
from wire.message import replace
from wire.messages.endpoints import Throttled
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.messages.producing import ProduceRequest
from wire.messages.registration import EnvelopeResponse
from wire.varint import Malformed

__all__ = ["ClientThrottle"]

_HEADER_BYTES = 8  # API, version and correlation id
_PRODUCE, _FETCH, _REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    user: str
    client_id: str
    produced_bytes: int  # 0: it is no Produce
    is_forwarded: bool
    frame_start: bytes  # names the version in which a controller answers


class ClientThrottle:
    """The `quorum.node.throttling.Throttle` of a node that has the metadata."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        windows: Windows,
        connection_rates: ConnectionRates,
    ) -> None:
        self._image = image
        self._windows = windows
        self._connections = connection_rates
        self._known = Limits({})
        self._rates = {
            _PRODUCE: ClientRates(windows),
            _FETCH: ClientRates(windows),
            _REQUEST: ClientRates(windows, throttle_max_ms=windows.length_ms),
        }
        self._throttling = {"produce": Throttling(), "fetch": Throttling(), "request": Throttling()}
        self._throttling["controller_mutation"] = Throttling()

    @property
    def has_limits(self) -> bool:
        return self._limits.has_any

    @property
    def _limits(self) -> Limits:
        quotas = self._image().client_quotas
        if self._known.quotas is not quotas:
            self._known = Limits(quotas)
        return self._known

    def connected(self, listener: str, host: str, now_ms: int) -> Admission:
        return self._connections.connected(self._image(), listener, host, now_ms)

    def received(self, request: Request) -> tuple[Request, _Use | None]:
        body = request.body
        if is_control(request):
            return request, None
        use = _Use(
            user=request.principal.name,
            client_id=request.client_id or "",
            produced_bytes=len(request.frame) if isinstance(body, ProduceRequest) else 0,
            is_forwarded=request.forwarded,
            frame_start=request.frame[:_HEADER_BYTES],
        )
        if isinstance(body, FetchRequest):
            request = self._bounded(request, body, use)
        return request, use

    def leaving(
        self, use: object, body: object, *, seconds: float, now_ms: int
    ) -> tuple[object, int]:
        assert isinstance(use, _Use), use
        if isinstance(body, EnvelopeResponse):
            return body, _told_ms(use, body)
        waits = {"request": self._spent(use, seconds, now_ms)}
        if use.produced_bytes:
            waits["produce"] = self._used(_PRODUCE, use, use.produced_bytes, now_ms)
        elif isinstance(body, FetchResponse):
            waits["fetch"] = self._used(_FETCH, use, _record_bytes(body), now_ms)
        elif isinstance(body, Throttled):
            waits["controller_mutation"] = body.throttle_time_ms
        longest = max(waits, key=lambda kind: waits[kind])
        wait_ms = waits[longest]
        self._throttling[longest].waited(wait_ms)
        if wait_ms and isinstance(body, Throttled):
            body = replace(body, throttle_time_ms=wait_ms)
        return body, 0 if use.is_forwarded else wait_ms

    def written(self, use: object, *, seconds: float, now_ms: int) -> None:
        assert isinstance(use, _Use), use
        self._spent(use, seconds, now_ms)

    def describe(self) -> Mapping[str, object]:
        """How often clients had to wait for a quota, and how long in all."""
        return {
            kind: {"count": each.count, "ms": each.total_ms}
            for kind, each in self._throttling.items()
        }

    def _spent(self, use: _Use, seconds: float, now_ms: int) -> int:
        return self._used(_REQUEST, use, seconds * 100, now_ms)

    def _used(self, key: str, use: _Use, amount: float, now_ms: int) -> int:
        limit = self._limits.of(key, use.user, use.client_id)
        return self._rates[key].used(amount, limit, now_ms)

    def _bounded(self, request: Request, body: FetchRequest, use: _Use) -> Request:
        limit = self._limits.of(_FETCH, use.user, use.client_id)
        if limit is None:
            return request
        seconds = (self._windows.count - 1) * self._windows.length_ms / 1000
        bytes_max = max(int(limit.bound * seconds), 1)
        if body.max_bytes <= bytes_max:
            return request
        return replace(request, body=replace(body, max_bytes=bytes_max))


def _record_bytes(body: FetchResponse) -> int:
    return sum(
        len(partition.records or b"") for topic in body.responses for partition in topic.partitions
    )


def _told_ms(use: _Use, envelope: EnvelopeResponse) -> int:
    """How long the controller says that the client has to wait."""
    if not (envelope.response_data and use.frame_start):
        return 0
    header = read_header(use.frame_start)
    try:
        _, body = decode_response(envelope.response_data, header.api_key, header.api_version)
    except Malformed:  # the client will judge it
        return 0
    return body.throttle_time_ms if isinstance(body, Throttled) else 0
