"""Effects on their way to the driver, and messages that must wait for the disk.

An epoch, a vote or a leader that a message speaks of must survive a crash before the message
leaves: else this replica could contradict itself after a restart and vote twice (thesis 3.8). So
every message queued while an election is being saved is held until that is stored. Order among
messages is kept.
"""

from collections import deque
from collections.abc import Callable

from quorum.core.effects import (
    Append,
    Durability,
    Effect,
    Reply,
    SaveElection,
    Send,
    Stop,
    Token,
    Trace,
    Truncate,
)
from quorum.core.types import ElectionState

__all__ = ["OWNER", "Outbox", "waits_for"]

OWNER = "raft"


def waits_for(saved_by: int, stored: int) -> bool:
    """Must a message wait, given the last election's token and the last token stored?

    Thesis 3.8: each server persists its epoch and vote before it answers or asks.
    """
    return saved_by > stored


class Outbox:
    __slots__ = ("_held", "_log", "_number", "_saved_by", "_stored", "effects")

    def __init__(self, log: str) -> None:
        self._log = log
        self.effects: list[Effect] = []  # queued since they were last taken
        self._held: deque[tuple[int, Send | Reply]] = deque()  # ascending in tokens
        self._number = 0  # of the last token
        self._saved_by = 0  # the token of the last SaveElection
        self._stored = 0  # everything up to this token is as durable as it asked to be

    def token(self) -> Token:
        self._number += 1
        return Token(OWNER, self._number)

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
        self._saved_by = self.emit(SaveElection, election=election, kraft_version=kraft_version)

    def append(self, records: bytes, durability: Durability) -> int:
        """The token's number, whose `Stored` comes if SYNCED was asked for."""
        return self.emit(Append, records=records, durability=durability)

    def truncate(self, end_offset: int, durability: Durability) -> int:
        return self.emit(Truncate, end_offset=end_offset, durability=durability)

    def emit(self, kind: Callable[..., Effect], **fields: object) -> int:
        """Queue an effect on our log; returns the number of the token that its answer carries."""
        token = self.token()
        self.effects.append(kind(log=self._log, token=token, **fields))
        return token.number

    def trace(self, event: str, **fields: object) -> None:
        self.effects.append(Trace(event=event, fields=tuple(fields.items())))

    def stop(self, reason: str, exit_code: int) -> None:
        self.effects.append(Stop(reason=reason, exit_code=exit_code))

    def stored(self, number: int) -> None:
        """Release, in order, what waited for tokens up to `number`."""
        self._stored = max(self._stored, number)
        while self._held and not waits_for(self._held[0][0], self._stored):
            self.effects.append(self._held.popleft()[1])

    def take(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects
