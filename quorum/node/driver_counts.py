"""What a driver counts while it runs: plain numbers, for /metrics and for benchmarks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorum.core.inbox import Inbox
from quorum.core.storage import SyncCounts
from wire.framing import Traffic

__all__ = ["ApiCounts", "DriverCounts"]


@dataclass(slots=True)
class ApiCounts:
    """Requests of one API, received and answered, and the time from the one to the other."""

    received: int = 0
    answered: int = 0
    seconds: float = 0.0
    seconds_max: float = 0.0

    def took(self, seconds: float) -> None:
        """One is answered, after so long."""
        self.answered += 1
        self.seconds += seconds
        self.seconds_max = max(self.seconds_max, seconds)


@dataclass(slots=True)
class DriverCounts:
    syncs: SyncCounts
    inbox: Inbox
    apis: dict[str, ApiCounts] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)  # requests to others, by API
    traffic: Traffic = field(default_factory=Traffic)
    turns: int = 0
    busy_seconds: float = 0.0

    def asked(self, api: str) -> None:
        self.sent[api] = self.sent.get(api, 0) + 1

    def describe(self) -> Mapping[str, object]:
        return {
            "requests": {name: counts.received for name, counts in self.apis.items()},
            "answered": {name: counts.answered for name, counts in self.apis.items()},
            "request_seconds": {name: counts.seconds for name, counts in self.apis.items()},
            "request_seconds_max": {name: counts.seconds_max for name, counts in self.apis.items()},
            "turns": self.turns,
            "busy_seconds": self.busy_seconds,
            "control_queue": len(self.inbox.control),
            "control_queue_longest": self.inbox.control_longest,
            "client_queue": len(self.inbox.clients),
            "client_queue_longest": self.inbox.clients_longest,
            "syncs": self.syncs.count,
            "sync_seconds": self.syncs.seconds,
            "sync_seconds_max": self.syncs.seconds_max,
            "synced_tokens": self.syncs.tokens,
            "syncs_inline": self.syncs.inline,
            "syncs_inline_too_slow": self.syncs.too_slow,
        }

    def of(self, name: str) -> ApiCounts:
        """The counts of the API `name`."""
        counts = self.apis.get(name)
        if counts is None:
            counts = self.apis[name] = ApiCounts()
        return counts
