"""A broker sends its requests to the active controller through this channel.

The metadata log that the broker follows says who the active controller is; in ZooKeeper mode the
znode `/controller` does. The channel does not retry: each sender has a pace of its own.
"""

from typing import Protocol

from quorum.core.outbox import Answered, Outbox
from quorum.core.types import Endpoint, LeaderAndEpoch

__all__ = ["ControllerChannel", "Whereabouts"]


class Whereabouts(Protocol):
    """The whereabouts tell who the active controller is, and where."""

    @property
    def leader(self) -> LeaderAndEpoch: ...

    def endpoint_of(self, node_id: int) -> Endpoint | None: ...

    @property
    def kraft_version(self) -> int:
        """0 where there is no quorum."""
        ...


class ControllerChannel:
    __slots__ = ("_outbox", "whereabouts")

    def __init__(self, whereabouts: Whereabouts, outbox: Outbox) -> None:
        self.whereabouts = whereabouts
        self._outbox = outbox

    def ask(self, body: object, *, channel: str, timeout_ms: int, answered: Answered) -> bool:
        """Send to the active controller; False, and no answer, if it is not known."""
        leader_id = self.whereabouts.leader.leader_id
        endpoint = None if leader_id is None else self.whereabouts.endpoint_of(leader_id)
        if endpoint is None:
            return False
        self._outbox.ask(endpoint, body, channel=channel, timeout_ms=timeout_ms, answered=answered)
        return True
