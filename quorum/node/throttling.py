"""The seam between a driver and what bounds the use of a node by its clients.

A driver measures: what a request takes of the process, and when its answer leaves. A `Throttle`
decides how long the client waits after that. What it is told of a connection or a request that it
has no interest in costs one question.

Source: KIP-219: the answer leaves first and says how long the client has to wait; the connection
is not read for as long, whether the client obeys or not.
"""

from typing import Protocol

from quorum.core.effects import Request
from wire.admission import Admission

__all__ = ["Throttle"]


class Throttle(Protocol):
    """`use` is what it has to know of a request until the answer leaves; None: nothing."""

    @property
    def has_limits(self) -> bool:
        """Is there anything to be measured for?"""
        ...

    def connected(self, listener: str, host: str, now_ms: int) -> Admission: ...

    def received(self, request: Request) -> tuple[Request, object | None]:
        """The request as it is to be served, and its `use`."""
        ...

    def leaving(
        self, use: object, body: object, *, seconds: float, now_ms: int
    ) -> tuple[object, int]:
        """The answer, which says how long to wait, and how many ms the connection is not read.

        `seconds` is the request's share of the turn that answers it.
        """
        ...

    def written(self, use: object, *, seconds: float, now_ms: int) -> None:
        """To write the answer took so long."""
        ...
