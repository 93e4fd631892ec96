"""The effects on one log, in their order: what may begin now, and what has to wait.

Most effects are carried out at once, by the driver's thread. A sync runs beside them, one at a
time; it serves every token that was written before it began, and what is written meanwhile waits
for the next: group commit. Some effects need the log for themselves: while one of them runs in the
background, the later ones wait here, and it does not begin before a running sync has ended.

The segments that a trim has cut off are removed beside all that, after a sync of what they were cut
from. What could make a file of the same name again waits for it: a truncation may reach behind the
start, and what replaces or removes the whole log does.

A log that is being compacted goes on as ever, but for its end and its start: what rewrites or
removes segments ends that first, since they are being read.

Pure bookkeeping: `quorum.log.files.file_storage` does the work.
"""

from dataclasses import dataclass, field

from quorum.core.effects import (
    DeleteLog,
    Durability,
    OpenLog,
    ResetLog,
    SaveElection,
    Token,
    Truncate,
)
from quorum.core.storage import METADATA_LOG, LogEffect
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.cleaning_round import Round
from quorum.log.files.jobs import Pool
from quorum.log.files.segment import Segment
from quorum.log.files.segments import SegmentedLog
from quorum.log.files.sync_pace import SyncPace

__all__ = ["Alone", "LogQueue", "Swap", "pool_of"]

_NO_TOKEN = Token("", -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """No core asks for it: a compacted segment is to take the place of those that it is of."""

    log: str
    token: Token  # of the effect before
    round: Round
    cleaned: Segment


Alone = SaveElection | Truncate | ResetLog | OpenLog | DeleteLog | Swap


@dataclass(slots=True, kw_only=True)
class LogQueue:
    log: str
    pace: SyncPace
    segments: SegmentedLog | None = None  # None: not open; the job of `alone` owns it, if any
    waiting: list[LogEffect | Swap] = field(
        default_factory=list
    )  # few: an empty deque takes 700 bytes
    alone: Alone | None = None  # runs in the background
    last_token: Token = _NO_TOKEN  # of the last effect
    is_syncing: bool = False
    sync_token: Token | None = None  # the last that asked for a sync and is not covered by one yet
    sync_tokens: int = 0  # how many did
    has_rolled: bool = False  # a full segment waits to be synced, though nobody waits for it
    doomed: list[Segment] = field(default_factory=list)  # cut off, their files still there
    doomed_snapshots: list[OffsetAndEpoch] = field(default_factory=list)
    has_new_start: bool = False  # inside a segment, and not noted yet
    is_removing: bool = False
    cleaning: Round | None = None  # reads segments of it
    is_uncleanable: bool = False  # until the node starts again
    has_failed: bool = False

    def next_effect(self) -> LogEffect | Swap | None:
        """The effect that may begin now; it is no longer waiting. None: nothing may."""
        if not self.waiting or self.alone is not None or self.has_failed:
            return None
        effect = self.waiting[0]
        if isinstance(effect, Alone) and self.is_syncing:
            return None
        is_trimming = self.doomed or self.has_new_start or self.is_removing
        if isinstance(effect, Truncate | ResetLog | DeleteLog):
            if self.cleaning is not None:
                self.cleaning.cancel()
                return None
            if is_trimming:
                return None
        return self.waiting.pop(0)

    def want_sync(self, token: Token) -> None:
        self.sync_token = token
        self.sync_tokens += 1

    @property
    def is_sync_wanted(self) -> bool:
        return self.sync_token is not None or self.has_rolled

    def may_sync(self) -> bool:
        if self.is_syncing or self.alone is not None or self.has_failed:
            return False
        return self.sync_token is not None or self.has_rolled

    def take_sync(self) -> tuple[Token | None, int]:
        """The token that the sync that begins now makes durable, and how many it covers.

        None: only a rolled segment has to be synced.
        """
        token, count = self.sync_token, self.sync_tokens
        self.sync_token, self.sync_tokens, self.has_rolled = None, 0, False
        return token, count

    def may_remove(self) -> bool:
        if not (self.doomed or self.doomed_snapshots or self.has_new_start):
            return False
        if self.cleaning is not None:
            self.cleaning.cancel()
            return False
        is_syncing = self.is_syncing or self.alone is not None
        is_free = not self.is_removing and not is_syncing and not self.has_failed
        return is_free and not self.has_rolled

    def take_doomed(self) -> tuple[list[Segment], list[OffsetAndEpoch]]:
        """What the removal that begins now removes, the oldest first."""
        doomed, snapshots = self.doomed, self.doomed_snapshots
        self.doomed, self.doomed_snapshots, self.has_new_start = [], [], False
        return doomed, snapshots

    def fail(self) -> list[LogEffect | Swap]:
        """Nothing more happens to this log. What was still waiting is the caller's to answer."""
        self.has_failed = True
        waiting, self.waiting = self.waiting, []
        self.doomed.clear()
        self.doomed_snapshots.clear()
        return waiting


def pool_of(effect: Alone) -> Pool:
    """Where it runs: is it waited for, by the quorum or by a partition?"""
    match effect:
        case SaveElection() | ResetLog() | Truncate(durability=Durability.SYNCED):
            return Pool.SYNC if effect.log == METADATA_LOG else Pool.REWRITE
        case _:
            return Pool.BACKGROUND
