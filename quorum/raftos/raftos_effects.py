"""What the core asks of the raftos library and hears from it, beside `quorum.core.effects`.

News come in the order in which they happened in this process.
"""

from dataclasses import dataclass

from quorum.core.effects import Effect, Event
from quorum.raftos.commands import Command

__all__ = ["Broken", "Committed", "News", "RaftosEvent", "RaftosRequest", "TermAndLeader"]


class RaftosRequest(Effect):
    """Replicate `command` as leader of `term`; without a command, lead no longer.

    It is not carried out where the library leads that term no longer: `TermAndLeader` says so. It
    leads to `Committed` unless leadership is lost, and maybe after that, too.
    """

    term: int
    command: Command | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The next command of raftos' log is applied, here: from the first one on, after every start.

    `is_replayed`: raftos' file had it when this process began.
    """

    term: int  # in which it was proposed
    command: Command
    is_replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TermAndLeader:
    """The present term, and its leader as far as the library knows."""

    term: int
    leader_id: int | None
    is_candidate: bool = False  # this node is, in this term


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The library cannot go on in this process; `reason` is for people."""

    reason: str


News = Committed | TermAndLeader | Broken


class RaftosEvent(Event):
    news: News
