"""Rewrites the addresses that brokers of somebody else's cluster advertise.

Nothing else of an answer is touched. One in a version that we cannot read goes on as it came, and
its client then goes past the proxies.
"""

from collections.abc import Mapping
from typing import Any

from jepsen_like.real.layout import Address
from wire.api_table import api_by_key
from wire.apis import decode_response, encode_response
from wire.message import replace
from wire.messages.fetching import FetchResponse
from wire.messages.groups import FindCoordinatorResponse
from wire.messages.metadata import DescribeClusterResponse, MetadataResponse
from wire.messages.producing import ProduceResponse
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["redirected"]

# Those whose answers name brokers. Produce and Fetch do it to say who leads (KIP-951).
_NAMING = {0: 10, 1: 16, 3: 0, 10: 0, 60: 0}  # api key, and the first version that does


def redirected(answer: bytes, api_key: int, version: int, proxies: Mapping[int, Address]) -> bytes:
    """The same answer with other addresses, of those brokers that have a proxy."""
    api = api_by_key(api_key)
    if version < _NAMING.get(api_key, version + 1):
        return answer
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
