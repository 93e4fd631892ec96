"""Batches of one producer for one partition are appended in the order in which they came.

A connection has several requests under way. If the first batch of a transaction waits for its
coordinator, those behind it wait in line: appended before it, or refused for coming too early, they
would be answered behind it, and a client takes that for a gap that it can not close. (Kafka reads
no further request of a connection until the one before is answered.)

Source: Kafka's SocketServer, which mutes a channel.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["BatchLines", "Turn"]

Place = tuple[str, int, int]  # topic, partition, producer id
Act = Callable[[int], None]  # (now_ms)


@dataclass(slots=True, eq=False)
class Turn:
    act: Act | None = None  # None: its coordinator has not answered yet


class BatchLines:
    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[Place, deque[Turn]] = {}

    def has(self, place: Place) -> bool:
        return place in self._lines

    def wait(self, place: Place) -> Turn:
        """A batch is the last in line, and its coordinator is asked."""
        turn = Turn()
        self._lines.setdefault(place, deque()).append(turn)
        return turn

    def follow(self, place: Place, act: Act) -> None:
        """A batch of which nobody has to be asked waits for those before it."""
        self._lines[place].append(Turn(act))

    def ready(self, place: Place, turn: Turn, act: Act, now_ms: int) -> None:
        """Act when it is its turn, which may be now."""
        turn.act = act
        line = self._lines[place]
        while line and line[0].act is not None:
            first = line.popleft().act
            assert first is not None
            first(now_ms)
        if not line:
            del self._lines[place]
