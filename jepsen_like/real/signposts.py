"""In front of brokers that somebody else runs: they seem to say that they listen somewhere else.

A client learns where brokers are from brokers. To lead it through proxies, every answer that names
an address must name the proxy's instead; nothing else is touched. An answer in a version that we
cannot read goes on as it came, and its client then goes past the proxies.

    client -> proxy (faults) -> signpost (addresses) -> broker
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from functools import partial
from struct import Struct
from typing import Any, Self

from jepsen_like.real.server_thread import ServerThread, Streams
from wire.api_table import api_by_key
from wire.apis import decode_response, encode_response
from wire.framing import FRAME_BYTES_MAX
from wire.message import replace
from wire.messages.fetching import FetchResponse
from wire.messages.groups import FindCoordinatorResponse
from wire.messages.metadata import DescribeClusterResponse, MetadataResponse
from wire.messages.producing import ProduceResponse
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["Signposts", "redirected"]

Address = tuple[str, int]
_LENGTH = Struct(">i")
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
        case MetadataResponse(brokers=brokers):
            return replace(body, brokers=tuple(elsewhere(each, each.node_id) for each in brokers))
        case DescribeClusterResponse(brokers=named):
            return replace(body, brokers=tuple(elsewhere(each, each.broker_id) for each in named))
        case FindCoordinatorResponse(coordinators=found):
            return replace(
                body, coordinators=tuple(elsewhere(each, each.node_id) for each in found)
            )
        case ProduceResponse(node_endpoints=ends) | FetchResponse(node_endpoints=ends):
            return replace(
                body, node_endpoints=tuple(elsewhere(each, each.node_id) for each in ends)
            )
        case _:
            return body


class Signposts:
    """Entering it listens, on one port for each broker; leaving it closes every connection.

    `proxies` says where each broker shall seem to be, by its id.
    """

    def __init__(
        self,
        brokers: Mapping[int, Address],
        ports: Mapping[int, int],
        proxies: Mapping[int, Address],
        *,
        host: str = "127.0.0.1",
    ) -> None:
        self._proxies = proxies
        accepts = {
            ports[node_id]: partial(self._accept, address) for node_id, address in brokers.items()
        }
        self._servers = ServerThread("signposts", host, accepts)

    def __enter__(self) -> Self:
        self._servers.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._servers.__exit__(*raised)

    async def _accept(self, address: Address, client: Streams) -> None:
        try:
            await self._connect(address, client)
        finally:
            client[1].close()

    async def _connect(self, address: Address, client: Streams) -> None:
        try:
            broker = await asyncio.open_connection(*address)
        except OSError:
            return
        naming: deque[tuple[int, int, int]] = deque()
        ways = [
            asyncio.create_task(self._requests(client[0], broker[1], naming)),
            asyncio.create_task(self._answers(broker[0], client[1], naming)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            broker[1].close()

    async def _requests(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        naming: deque[tuple[int, int, int]],
    ) -> None:
        """Remembers those whose answers name brokers: answers come in the order of requests."""
        async for frame in _frames(source):
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
        async for frame in _frames(source):
            (correlation_id,) = _LENGTH.unpack_from(frame)
            told = frame
            if naming and naming[0][0] == correlation_id:
                _, api_key, version = naming.popleft()
                told = redirected(frame, api_key, version, self._proxies)
            await _write(sink, told)


async def _frames(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Until the connection ends, or holds no frames."""
    try:
        while True:
            (length,) = _LENGTH.unpack(await source.readexactly(_LENGTH.size))
            if not _LENGTH.size <= length <= FRAME_BYTES_MAX:
                return
            yield await source.readexactly(length)
    except (asyncio.IncompleteReadError, OSError):
        return


async def _write(sink: asyncio.StreamWriter, frame: bytes) -> None:
    sink.write(_LENGTH.pack(len(frame)))
    sink.write(frame)
    await sink.drain()
