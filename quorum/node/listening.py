"""Where a node listens, and what is told when it cannot."""

import os
from dataclasses import dataclass, field

from wire.api_table import ListenerKind
from wire.security.protocols import ServerSecurity
from wire.serving import ServerLimits

__all__ = ["CannotListen", "Listener", "cannot_listen"]


class CannotListen(Exception):
    """An address that cannot be listened on; the message says which and why."""

    def __init__(self, told: str, port: int) -> None:
        super().__init__(told)
        self.port = port


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Port 0 stands for any free one."""

    name: str
    kind: ListenerKind
    host: str
    port: int
    security: ServerSecurity = field(default_factory=ServerSecurity)
    limits: ServerLimits | None = None


def cannot_listen(address: str, port: int, setting: str, error: OSError) -> CannotListen:
    """`setting` is the key that names the address."""
    number = error.errno or 0
    # asyncio wraps the reason in a sentence; a name that is not known has a negative number.
    reason = os.strerror(number) if number > 0 else error.strerror or str(error)
    return CannotListen(
        f"cannot listen on {address}: {reason}; change `{setting}`, or stop whoever has that port",
        port,
    )
