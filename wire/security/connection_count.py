"""How many connections a node keeps, in all, of a listener and of one address, whoever they are.

A node's listeners for clients count together, and so do those of controllers: a flood at the one
kind takes no room from the other. The listener between brokers, if there is another, is protected:
it goes by its own limit alone, and where that makes too many in all, the connection of another
listener that was used longest ago makes room.

Source: Kafka's ConnectionQuotas, which lets a client wait where we refuse it, and
Processor.closeExcessConnections; KIP-402, KIP-612.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from wire.primitives import INT32_MAX

__all__ = ["ConnectionCount", "ConnectionLimits", "Leaving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Those that hold for one listener."""

    of_all: int = 1000  # max.connections
    of_listener: int = INT32_MAX  # listener.name.NAME.max.connections
    of_host: int = INT32_MAX  # max.connections.per.ip
    of_hosts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    is_protected: bool = False


class Leaving(NamedTuple):
    """A connection that may be closed to make room."""

    active_at: float
    close: Callable[[], None]


class ConnectionCount:
    """Counts connections from the moment in which they are accepted."""

    def __init__(self) -> None:
        self.count = 0
        self._of_host: Counter[str] = Counter()
        self._of_listener: Counter[str] = Counter()
        self._lenders: list[Callable[[], Leaving | None]] = []

    def lend(self, lender: Callable[[], Leaving | None]) -> None:
        """`lender` says which connection of a listener could go first, if one may."""
        self._lenders.append(lender)

    def enter(self, listener: str, host: str, limits: ConnectionLimits) -> str | None:
        """Count one more, or say why it is one too many."""
        if self._of_listener[listener] >= limits.of_listener:
            return f"more than {limits.of_listener} connections of the listener"
        if self.count >= limits.of_all and not limits.is_protected:
            return f"more than {limits.of_all} connections"
        host_max = limits.of_hosts.get(host, limits.of_host)
        if self._of_host[host] >= host_max:
            return f"more than {host_max} connections of one address"
        self.count += 1
        self._of_listener[listener] += 1
        self._of_host[host] += 1
        if self.count > limits.of_all:
            self._make_room()
        return None

    def leave(self, listener: str, host: str) -> None:
        self.count -= 1
        self._of_listener[listener] -= 1
        self._of_host[host] -= 1
        if not self._of_host[host]:
            del self._of_host[host]

    def _make_room(self) -> None:
        offered = [each for each in (lend() for lend in self._lenders) if each is not None]
        if offered:
            min(offered, key=lambda each: each.active_at).close()
