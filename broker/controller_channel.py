"""The way to the active controller: whom to ask, on which connection.

The broker hears of the controller from the engine of the metadata log that it follows. Retries
are up to those who ask, since each of them has its own pace.
"""

from broker.outbox import Answered, Outbox
from quorum.application import MetadataLog

__all__ = ["ControllerChannel"]


class ControllerChannel:
    __slots__ = ("_log", "_outbox")

    def __init__(self, log: MetadataLog, outbox: Outbox) -> None:
        self._log = log
        self._outbox = outbox

    def ask(self, body: object, *, channel: str, timeout_ms: int, answered: Answered) -> bool:
        """Send to the active controller; False, and no answer, if it is not known."""
        leader_id = self._log.leader.leader_id
        endpoint = None if leader_id is None else self._log.endpoint_of(leader_id)
        if endpoint is None:
            return False
        self._outbox.ask(endpoint, body, channel=channel, timeout_ms=timeout_ms, answered=answered)
        return True
