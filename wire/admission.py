"""Admission decides about new connections that come faster than they may."""

from typing import NamedTuple

__all__ = ["Admission"]


class Admission(NamedTuple):
    """It is not read for `delay_ms`; after that it is served, or closed if it is refused."""

    delay_ms: int = 0
    is_refused: bool = False
