"""What the leader of a term has promised to append, and what of it raftos has in its hands.

One command at a time: raftos sends an entry again with every command that follows, and a follower
that gets one twice cuts off all that it has behind it, acknowledged or not. So what is asked for
while a command is on its way waits, and then travels together.

A command that is committed in the leader's own term proves that it led after the command was
proposed. So questions whether it leads ride with the next command, an empty one if need be.
"""

from collections import deque
from dataclasses import dataclass, field

from quorum.raftos.commands import ANYWHERE, PIECE_BYTES_MAX, Command, cut

__all__ = ["Proposals"]


@dataclass(slots=True, kw_only=True)
class Proposals:
    """`end_offset` is where the next record goes once all that is promised is committed."""

    node_id: int
    life: int
    term: int
    number: int  # of the last proposal of this process
    end_offset: int = ANYWHERE
    asked: int = 0  # the last question whether this node leads
    confirmed: int = 0
    _waiting: deque[tuple[int, bytes]] = field(default_factory=deque)  # base offset, batch
    _pieces: deque[Command] = field(default_factory=deque)  # of the proposal under way
    _in_flight: Command | None = None
    _covers: int = 0  # the last question that the command in flight answers

    def begin(self, epoch_start: bytes) -> None:
        """The first records of the term go where the log will end, which only raftos knows."""
        self._waiting.append((ANYWHERE, epoch_start))

    def promise(self, batch: bytes, record_count: int) -> int:
        """Returns the offset after the batch."""
        self._waiting.append((self.end_offset, batch))
        self.end_offset += record_count
        return self.end_offset

    def ask(self) -> int:
        self.asked += 1
        return self.asked

    def next(self) -> Command | None:
        """What to propose now; None while a command is under way, or if there is nothing."""
        if self._in_flight is not None:
            return None
        if not self._pieces and (self._waiting or self.asked > self.confirmed):
            self._pieces.extend(cut(self._gather()))
        if not self._pieces:
            return None
        self._in_flight = self._pieces.popleft()
        self._covers = self.asked
        return self._in_flight

    def committed(self, command: Command) -> bool:
        """Is it the one that is under way?"""
        if command != self._in_flight:
            return False
        self._in_flight = None
        self.confirmed = self._covers
        return True

    def _gather(self) -> Command:
        """All batches that wait, as long as one command holds them; one batch at least, if any."""
        base_offset, size = ANYWHERE, 0
        batches: list[bytes] = []
        while self._waiting and (not batches or size + len(self._waiting[0][1]) <= PIECE_BYTES_MAX):
            offset, batch = self._waiting.popleft()
            base_offset = base_offset if batches else offset
            size += len(batch)
            batches.append(batch)
        self.number += 1
        return Command(
            proposer=self.node_id,
            life=self.life,
            number=self.number,
            base_offset=base_offset,
            records=b"".join(batches),
        )
