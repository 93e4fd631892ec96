"""Messages through the wire's codecs and back, so that a simulation exercises those too.

A run draws one version for each API, as two nodes agree on one. Where the log names voters by their
disks (kraft.version 1), messages must say which disk speaks. A node may run an older release, which
knows older versions only (`jepsen_like.sim.world.releases`): below Vote 2 there are no pre-votes.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple, Protocol

from wire.api_table import Versions, api_of
from wire.apis import decode_request, decode_response, encode_request, encode_response

__all__ = ["Codec", "InVersion", "Speech", "answer_in", "request_in"]

_DRAWN = {
    "begin_quorum_epoch": Versions(0, 1),
    "end_quorum_epoch": Versions(0, 1),
    "fetch": Versions(12, 18),
    "fetch_snapshot": Versions(0, 1),
    "vote": Versions(2, 2),
}
_WITH_DISKS = {
    "begin_quorum_epoch": Versions(1, 1),
    "end_quorum_epoch": Versions(1, 1),
    "fetch": Versions(17, 18),
    "fetch_snapshot": Versions(1, 1),
    "vote": Versions(2, 2),
}


class Speech(Protocol):
    """What becomes of a message `between` two nodes."""

    def request(self, body: Any, between: tuple[int, int]) -> Any: ...

    def response(self, body: Any, between: tuple[int, int]) -> Any: ...


class InVersion(NamedTuple):
    """A request that its sender says in a version of its own, whatever the run draws."""

    body: object
    version: int


def request_in(body: Any, version: int) -> Any:
    """The request as the peer reads it."""
    return decode_request(b"".join(encode_request(body, version, 1, "simulated"))).body


def answer_in(body: Any, version: int) -> Any:
    """The answer as the asker reads it."""
    key = api_of(type(body)).key
    return decode_response(b"".join(encode_response(body, key, version, 1)), key, version)[1]


class Codec:
    """One version for each API, for a whole run, but for nodes of an older release."""

    __slots__ = ("_versions", "older")

    def __init__(self, random: Random, kraft_version: int = 0) -> None:
        drawn = _DRAWN if kraft_version == 0 else _WITH_DISKS
        self._versions = {
            name: random.choice(tuple(versions)) for name, versions in sorted(drawn.items())
        }
        self.older: dict[int, Mapping[str, int]] = {}  # by node: the newest versions that it knows

    def _version(self, name: str, newest: int, between: tuple[int, int]) -> int:
        version = self._versions.get(name, newest)
        for node in between:
            if node in self.older:
                version = min(version, self.older[node].get(name, version))
        return version

    def request(self, body: Any, between: tuple[int, int]) -> Any:
        """`body` as the peer reads it. Raises `CannotExpress` if the peer's release is too old."""
        api = api_of(type(body))
        version = self._version(api.name, api.asked.newest, between)
        return request_in(body, version)

    def response(self, body: Any, between: tuple[int, int]) -> Any:
        """`body` as the asker reads it."""
        api = api_of(type(body))
        version = self._version(api.name, api.asked.newest, between)
        return answer_in(body, version)
