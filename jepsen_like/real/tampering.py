"""Changes that a proxy can make in the messages of clients: in a request, its answer, or both.

The proxy keeps the order of answers and the addresses; whoever tampers reads and writes frames.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jepsen_like.real.layout import Link

__all__ = ["Exchange", "Tamper"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What becomes of one request. Frames are without their length."""

    request: bytes | None  # sent on in its place; None: the node never sees it
    answer: Callable[[bytes], bytes]  # of the node's answer, or of b"" if the node was not asked


class Tamper(Protocol):
    """Called in the thread of the proxies: it must not block, and must not raise."""

    def exchange(self, link: Link, request: bytes) -> Exchange | None:
        """None: the request and its answer pass as they are."""
