"""What the controllers replicate through raftos: batches of records, as its log can carry them.

raftos sends one command a datagram, one after the other. So all batches that wait travel in one
command, and a batch that no datagram holds travels in several, its pieces. They are joined again by
the order of raftos' log, which is the same everywhere: pieces that are not followed by the rest
(their leader was lost) are dropped everywhere.

A command of a leader says where in the metadata log it expects its records, since the leader has
answered from that place already.

Pure. Decides nothing about who proposes when: see `quorum.raftos.proposals`.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ANYWHERE", "PIECE_BYTES_MAX", "Command", "Joining", "cut"]

# With base64 and JSON around it, well below the 65,507 bytes that UDP carries.
PIECE_BYTES_MAX = 40_000
ANYWHERE = -1  # the base offset of records that go wherever the log ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`records` are whole batches if there is one piece; none where only the commit matters."""

    proposer: int  # node id
    life: int  # of the proposer's process, so that numbers are never used again
    number: int
    piece: int = 0
    pieces: int = 1
    base_offset: int = ANYWHERE
    records: bytes = field(default=b"", repr=False)

    @property
    def proposal(self) -> tuple[int, int, int]:
        """What the pieces of one proposal have in common."""
        return self.proposer, self.life, self.number

    @property
    def is_last_piece(self) -> bool:
        return self.piece == self.pieces - 1

    def as_json(self) -> dict[str, int | str]:
        return {
            "proposer": self.proposer,
            "life": self.life,
            "number": self.number,
            "piece": self.piece,
            "pieces": self.pieces,
            "base_offset": self.base_offset,
            "records": b64encode(self.records).decode(),
        }

    @classmethod
    def of_json(cls, said: Mapping[str, int | str]) -> "Command":
        """Raises ValueError, or KeyError, for what `as_json` never says."""
        numbers = {name: int(value) for name, value in said.items() if name != "records"}
        return cls(**numbers, records=b64decode(str(said["records"])))


def cut(command: Command) -> tuple[Command, ...]:
    """The same in pieces that a datagram holds."""
    records = command.records
    starts = range(0, max(1, len(records)), PIECE_BYTES_MAX)
    return tuple(
        Command(
            proposer=command.proposer,
            life=command.life,
            number=command.number,
            piece=index,
            pieces=len(starts),
            base_offset=command.base_offset,
            records=records[start : start + PIECE_BYTES_MAX],
        )
        for index, start in enumerate(starts)
    )


class Joining:
    """Pieces on their way to a whole: one proposal at a time, in the order of raftos' log."""

    def __init__(self) -> None:
        self._pieces: list[Command] = []

    def take(self, command: Command) -> Command | None:
        """The whole proposal that `command` completes; None while pieces are missing."""
        if command.piece == 0:
            self._pieces = []
        if not self._continues(command):
            self._pieces = []
            return None
        self._pieces.append(command)
        if not command.is_last_piece:
            return None
        whole = b"".join(piece.records for piece in self._pieces)
        self._pieces = []
        return Command(
            proposer=command.proposer,
            life=command.life,
            number=command.number,
            base_offset=command.base_offset,
            records=whole,
        )

    def _continues(self, command: Command) -> bool:
        if command.piece != len(self._pieces):
            return False
        return not self._pieces or self._pieces[-1].proposal == command.proposal
