"""Rewrites the addresses that brokers of somebody else's cluster advertise.

A client learns from brokers where brokers are. To lead it through proxies, every answer that names
an address must name the proxy's instead; nothing else is touched. An answer in a version that we
cannot read goes on as it came, and its client then goes past the proxies.

    client -> proxy (faults) -> rewriter (addresses) -> broker
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from struct import Struct
from typing import Any, Self

from jepsen_like.real.layout import HOST
from jepsen_like.real.relay import LENGTH, ServerThread, Streams, read_frame
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
        try:
            broker = await asyncio.open_connection(*address)
        except OSError:
            client[1].close()
            return
        naming: deque[tuple[int, int, int]] = deque()
        tasks = [
            asyncio.create_task(self._requests(client[0], broker[1], naming)),
            asyncio.create_task(self._answers(broker[0], client[1], naming)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            broker[1].close()
            client[1].close()

    async def _requests(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        naming: deque[tuple[int, int, int]],
    ) -> None:
        """Remembers requests whose answers name brokers: answers come in the order of requests."""
        while (frame := await read_frame(source)) is not None:
            api_key, version, correlation_id = _HEADER.unpack_from(frame)
            if version >= _NAMING.get(api_key, version + 1):
                naming.append((correlation_id, api_key, version))
            await _write(sink, frame)

    async def _answers(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        naming: deque[tuple[int, int, int]],
    ) -> None:
        while (frame := await read_frame(source)) is not None:
            (correlation_id,) = LENGTH.unpack_from(frame)  # it has the form of a length
            if naming and naming[0][0] == correlation_id:
                _, api_key, version = naming.popleft()
                frame = redirected(frame, api_key, version, self._proxies)
            await _write(sink, frame)


async def _write(sink: asyncio.StreamWriter, frame: bytes) -> None:
    sink.writelines((LENGTH.pack(len(frame)), frame))
    await sink.drain()
