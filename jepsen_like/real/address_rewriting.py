"""Rewrites the addresses that brokers of somebody else's cluster advertise.

A client learns from brokers where brokers are. To lead it through proxies, every answer that names
an address must name the proxy's instead; nothing else is touched. An answer in a version that we
cannot read goes on as it came, and its client then goes past the proxies.

    client -> proxy (faults) -> rewriter (addresses) -> broker
"""

from collections import deque
from collections.abc import Mapping
from functools import partial
from random import Random
from struct import Struct
from typing import Any, Self

from jepsen_like.real.impairments import Flow
from jepsen_like.real.layout import HOST
from jepsen_like.real.relay import LENGTH, NoFrame, Relay, ServerThread, Streams, pass_on
from wire.api_table import api_by_key
from wire.apis import decode_response, encode_response
from wire.message import replace
from wire.messages.fetching import FetchResponse
from wire.messages.groups import FindCoordinatorResponse
from wire.messages.metadata import DescribeClusterResponse, MetadataResponse
from wire.messages.producing import ProduceResponse
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["AddressRewriters", "redirected"]

Address = tuple[str, int]
_HEADER = Struct(">hhi")  # of a request: api key, version, correlation id
# Those whose answers name brokers. Produce and Fetch do it to say who leads (KIP-951).
_NAMING = {0: 10, 1: 16, 3: 0, 10: 0, 60: 0}  # api key, and the first version that does


def redirected(answer: bytes, api_key: int, version: int, proxies: Mapping[int, Address]) -> bytes:
    """The same answer with other addresses, of those brokers that have a proxy."""
    api = api_by_key(api_key)
    if api is None or not api.versions.oldest <= version <= api.versions.newest:
        return answer
    try:
        correlation_id, body = decode_response(answer, api_key, version)
        return b"".join(encode_response(_renamed(body, proxies), api_key, version, correlation_id))
    except (Malformed, CannotExpress):
        return answer


def _renamed(body: Any, proxies: Mapping[int, Address]) -> Any:
    def elsewhere(each: Any, node_id: int) -> Any:
        if node_id not in proxies:
            return each
        host, port = proxies[node_id]
        return replace(each, host=host, port=port)

    match body:
        case MetadataResponse(brokers=named):
            return replace(body, brokers=tuple(elsewhere(each, each.node_id) for each in named))
        case DescribeClusterResponse(brokers=named):
            return replace(body, brokers=tuple(elsewhere(each, each.broker_id) for each in named))
        case FindCoordinatorResponse(coordinators=named):
            named = tuple(elsewhere(each, each.node_id) for each in named)
            return replace(body, coordinators=named)
        case ProduceResponse(node_endpoints=named) | FetchResponse(node_endpoints=named):
            named = tuple(elsewhere(each, each.node_id) for each in named)
            return replace(body, node_endpoints=named)
        case _:
            return body


class AddressRewriters:
    """Entering it listens, on one port for each broker; leaving it closes every connection.

    `proxies`: the address that each broker, by its id, shall seem to have.
    """

    def __init__(
        self,
        brokers: Mapping[int, Address],
        ports: Mapping[int, int],
        proxies: Mapping[int, Address],
    ) -> None:
        self._proxies = proxies
        accepts = {
            ports[node_id]: partial(self._accept, address) for node_id, address in brokers.items()
        }
        self._servers = ServerThread("address-rewriters", HOST, accepts)

    def __enter__(self) -> Self:
        self._servers.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._servers.__exit__(*raised)

    async def _accept(self, address: Address, client: Streams) -> None:
        await pass_on(client, address, partial(_Rewriting, self._proxies, client))


class _Rewriting(Relay):
    def __init__(self, proxies: Mapping[int, Address], client: Streams, broker: Streams) -> None:
        flow = Flow(Random())  # nothing is ever laid on it
        super().__init__(asker=client, asked=broker, requests=flow, answers=flow)
        self._proxies = proxies
        self._naming: deque[tuple[int, int, int]] = deque()

    def reset(self) -> None:
        """Both ends see an orderly end: no fault is made here."""
        self._to_asker.close()
        self._to_asked.close()

    def _take_request(self, frame: bytes) -> None:
        """Remembers requests whose answers name brokers: answers come in the order of requests."""
        if len(frame) < _HEADER.size:
            raise NoFrame
        api_key, version, correlation_id = _HEADER.unpack_from(frame)
        if version >= _NAMING.get(api_key, version + 1):
            self._naming.append((correlation_id, api_key, version))
        super()._take_request(frame)

    def _take_answer(self, frame: bytes) -> None:
        if len(frame) < LENGTH.size:
            raise NoFrame
        (correlation_id,) = LENGTH.unpack_from(frame)  # it has the form of a length
        if self._naming and self._naming[0][0] == correlation_id:
            _, api_key, version = self._naming.popleft()
            frame = redirected(frame, api_key, version, self._proxies)
        super()._take_answer(frame)
