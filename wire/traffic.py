"""The bytes of frames that a process has sent and received, by API: plain numbers, never sampled.

An exchange counts under the API of its request. What came in an envelope counts under
its own, while its sender has sent an envelope. What belongs to no request, as a frame that is
refused, is not counted.
"""

from collections import defaultdict
from collections.abc import Sequence

__all__ = ["Traffic"]


class Traffic:
    """Shared by the listeners and the connections of a process, on one event loop."""

    __slots__ = ("received_bytes", "sent_bytes")

    def __init__(self) -> None:
        self.sent_bytes: dict[int, int] = defaultdict(int)  # by API key
        self.received_bytes: dict[int, int] = defaultdict(int)

    def sent(self, api_key: int, frame: Sequence[bytes]) -> None:
        """A frame, in pieces, with its length."""
        self.sent_bytes[api_key] += sum(map(len, frame))

    def received(self, api_key: int, frame: bytes) -> None:
        """A frame without the four bytes of its length."""
        self.received_bytes[api_key] += len(frame) + 4
