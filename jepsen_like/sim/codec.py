"""Messages through the wire's codecs and back, so that a simulation exercises those too.

A run draws one version for each API, as two nodes agree on one. Only versions that say all that the
quorum needs are drawn: a pre-vote cannot be expressed below Vote 2, and where the log names voters
by their disks (kraft.version 1), messages must say which disk speaks.
"""

from random import Random
from typing import Any

from wire.api_table import Versions, api_of
from wire.apis import decode_request, decode_response, encode_request, encode_response

__all__ = ["Codec"]

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


class Codec:
    """One version for each API, for a whole run."""

    __slots__ = ("_versions",)

    def __init__(self, random: Random, kraft_version: int = 0) -> None:
        drawn = _DRAWN if kraft_version == 0 else _WITH_DISKS
        self._versions = {
            name: random.choice(tuple(versions)) for name, versions in sorted(drawn.items())
        }

    def _version(self, name: str, newest: int) -> int:
        return self._versions.get(name, newest)

    def request(self, body: Any) -> Any:
        """`body` as the peer reads it."""
        api = api_of(type(body))
        version = self._version(api.name, api.versions.newest)
        frame = b"".join(encode_request(body, version, 1, "simulated"))
        return decode_request(frame).body

    def response(self, body: Any) -> Any:
        """`body` as the asker reads it."""
        api = api_of(type(body))
        version = self._version(api.name, api.versions.newest)
        frame = b"".join(encode_response(body, api.key, version, 1))
        return decode_response(frame, api.key, version)[1]
