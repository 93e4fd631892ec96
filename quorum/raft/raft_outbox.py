"""Effects on their way to the driver, and messages that must wait for the disk.

An epoch, a vote or a leader that a message speaks of must survive a crash before the message
leaves: else this replica could contradict itself after a restart and vote twice (thesis 3.8). So
every message queued while an election is being saved is held until that is stored. Order among
messages is kept.
"""

from collections import deque
from collections.abc import Callable

from quorum.core.effects import Effect, Reply, SaveElection, Send
from quorum.core.outbox import EffectQueue
from quorum.core.types import ElectionState

__all__ = ["OWNER", "HoldingOutbox", "waits_for"]

OWNER = "raft"


def waits_for(saved_by: int, stored: int) -> bool:
    """Must a message wait, given the last election's token and the last token stored?

    Thesis 3.8: each server persists its epoch and vote before it answers or asks.
    """
    return saved_by > stored


class HoldingOutbox(EffectQueue):
    """It holds what a crash must not contradict; `RaftNode` routes the answers, by their types."""

    __slots__ = ("_held", "_log", "_saved_by", "_stored")

    def __init__(self, log: str) -> None:
        super().__init__(OWNER)
        self._log = log
        self._held: deque[tuple[int, Send | Reply]] = deque()  # ascending in tokens
        self._saved_by = 0  # the token of the last SaveElection
        self._stored = 0  # everything up to this token is as durable as it asked to be

    @property
    def is_saving_election(self) -> bool:
        """Could a crash still take the last epoch and vote back?"""
        return waits_for(self._saved_by, self._stored)

    def send(self, message: Send | Reply) -> None:
        """Send it, once the election that it may speak of is durable."""
        if waits_for(self._saved_by, self._stored):
            self._held.append((self._saved_by, message))
        else:
            self.effects.append(message)

    def save(self, election: ElectionState, kraft_version: int = 1) -> None:
        self._saved_by = self.on_log(SaveElection, election=election, kraft_version=kraft_version)

    def on_log(self, kind: Callable[..., Effect], **fields: object) -> int:
        """Queue an effect on our log; returns the number of the token that its answer carries."""
        token = self.token()
        self.effects.append(kind(log=self._log, token=token, **fields))
        return token.number

    def stored(self, number: int) -> None:
        """Release, in order, what waited for tokens up to `number`."""
        self._stored = max(self._stored, number)
        while self._held and not waits_for(self._held[0][0], self._stored):
            self.effects.append(self._held.popleft()[1])
