"""Where the page has its past from: the metadata log of the quorum.

`ZnodeLog` stands in its place in ZooKeeper designs: see `znode_log`.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.entries import Entry
from quorumlab.inspection.states import Replay
from quorumlab.inspection.stories import Event, parse_subject, story
from quorumlab.inspection.target import Target
from quorumlab.top.cluster_view import LogEntry
from quorumlab.top.log_follower import LogFollower, log_entry
from quorumlab.web.positions import Positions
from wire.metadata_records import NoOpRecord

__all__ = ["MetadataLog", "Source"]

_ENTRIES_MAX = 100  # up to one offset


class Source(Protocol):
    """A sequence of changes, by offset, that grows while others read it."""

    name: str  # of what the slider runs over
    unit: str  # of a place in it
    away: str  # the state of a broker that the image has as fenced

    @property
    def note(self) -> str:
        """How far to believe it; empty: all the way."""
        ...

    def start(self) -> None: ...

    @property
    def state(self) -> Replay | None:
        """The newest; None before anything was read."""
        ...

    @property
    def entries(self) -> Sequence[LogEntry]:
        """The newest thousand, the oldest first."""
        ...

    @property
    def is_loading(self) -> bool: ...

    @property
    def problem(self) -> str: ...

    def first(self) -> int:
        """The oldest offset whose state `after` knows. Raises ClusterError as `after` does."""
        ...

    def after(self, offset: int) -> Replay:
        """Raises ClusterError before anything was read."""
        ...

    def entries_until(self, offset: int) -> Sequence[LogEntry]:
        """The last of them, the oldest first."""
        ...

    def story(self, subject: str) -> Sequence[Event]:
        """Raises ValueError for what has none, and ClusterError as `after` does."""
        ...


class MetadataLog:
    name = "metadata log"
    unit = "offset"
    away = "fenced"

    def __init__(self, follower: LogFollower, *, note: str = "") -> None:
        self.note = note
        self._follower = follower
        self._positions: Positions | None = None

    def start(self) -> None:
        self._follower.start()

    @property
    def state(self) -> Replay | None:
        return self._follower.state

    @property
    def entries(self) -> Sequence[LogEntry]:
        return self._follower.log

    @property
    def is_loading(self) -> bool:
        return self._follower.is_loading

    @property
    def problem(self) -> str:
        return "" if self.is_loading else self._follower.problem

    def first(self) -> int:
        return self._known().first

    def after(self, offset: int) -> Replay:
        return self._known().after(offset)

    def entries_until(self, offset: int) -> Sequence[LogEntry]:
        found = self._known().entries_until(offset)
        telling = ((entry, names) for entry, names in found if _tells(entry))
        return [log_entry(*each) for each in deque(telling, maxlen=_ENTRIES_MAX)]

    def story(self, subject: str) -> Sequence[Event]:
        about = parse_subject(subject)
        told = story(self._target, about)
        return [each for each in told if isinstance(each, Event)]

    @property
    def _target(self) -> Target:
        target = self._follower.target
        if target is None:
            raise ClusterError("the metadata log has not been read yet")
        return target

    def _known(self) -> Positions:
        """Begins anew where the log was read anew."""
        target = self._target
        if self._positions is None or self._positions.target is not target:
            self._positions = Positions(target)
        return self._positions


def _tells(entry: Entry) -> bool:
    return not isinstance(entry.content, NoOpRecord)
