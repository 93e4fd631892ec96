"""Keeping the metadata log short: saving snapshots, and letting go of what they replace.

The log only ever begins where a snapshot ends. The oldest snapshot goes, and the log before the
next one with it, while all together is too large, or the oldest too old; the newest stays. The
first voters, as `format` left them, are a snapshot as any other: the oldest.

When a snapshot is taken is the member's business, which knows the state (`snapshot_schedule`).

Source: KIP-630; Kafka's KafkaRaftLog.maybeClean.
"""

from dataclasses import dataclass

from quorum.core.application import State
from quorum.core.effects import SaveSnapshot, SnapshotSaved, Trim, Trimmed
from quorum.core.types import OffsetAndEpoch
from quorum.log.snapshots import last_timestamp_ms, snapshot_content, snapshot_head
from quorum.raft.replica import Replica

__all__ = ["Compaction", "start_after_cleaning"]

_INTERVAL_MS = 60_000  # between looks at the age of snapshots


@dataclass(slots=True, kw_only=True)
class Compaction:
    """What is under way."""

    saving: int | None = None  # token of the snapshot that is being written
    trimming: tuple[int, int] | None = None  # token, and where the log is to start
    due_ms: int = 0  # when to look again

    def save(self, replica: Replica, state: State, last_timestamp_ms: int) -> None:
        log = replica.log
        assert self.saving is None, "one snapshot at a time"
        assert log.start_offset < state.end_offset <= log.committed_offset, (
            state.end_offset,
            log.committed_offset,
        )
        snapshot_id = OffsetAndEpoch(state.end_offset, log.epoch_before(state.end_offset))
        membership = replica.history.at(state.end_offset).head_records()
        content = snapshot_content(
            snapshot_head(last_timestamp_ms, membership),
            state.batches,
            epoch=snapshot_id.epoch,
            last_timestamp_ms=last_timestamp_ms,
        )
        self.saving = replica.outbox.on_log(SaveSnapshot, id=snapshot_id, content=content)

    def saved(self, replica: Replica, event: SnapshotSaved, now_ms: int) -> None:
        """A snapshot of ours is whole. The log may have been replaced by a later one meanwhile."""
        if event.token.number != self.saving:
            return
        self.saving = None
        file = event.file
        if file.id.offset <= replica.log.start_offset:
            return
        replica.log.add_snapshot(file)
        replica.outbox.trace(
            "snapshot_saved", offset=file.id.offset, epoch=file.id.epoch, bytes=file.size_bytes
        )
        self.due_ms = now_ms

    def poll(self, replica: Replica, now_ms: int) -> None:
        if self.trimming is not None or now_ms < self.due_ms:
            return
        self.due_ms = now_ms + _INTERVAL_MS
        start_offset = start_after_cleaning(replica, now_ms)
        if start_offset is not None:
            self.trim(replica, start_offset)

    def trim(self, replica: Replica, start_offset: int) -> None:
        """One snapshot at a time: how much log goes with it is known afterwards."""
        replica.log.trim(start_offset)
        replica.history.prune(start_offset)
        self.trimming = replica.outbox.on_log(Trim, start_offset=start_offset), start_offset
        replica.outbox.trace("trimmed", to=start_offset)

    def trimmed(self, replica: Replica, event: Trimmed, now_ms: int) -> None:
        if self.trimming is None or event.token.number != self.trimming[0]:
            return
        if self.trimming[1] == replica.log.start_offset:  # not replaced meanwhile
            replica.log.size_bytes = event.size_bytes
        self.trimming = None
        self.due_ms = now_ms

    def deadline_ms(self, replica: Replica) -> int | None:
        has_choice = self.trimming is None and len(replica.log.snapshots) > 1
        return self.due_ms if has_choice else None


def start_after_cleaning(replica: Replica, now_ms: int) -> int | None:
    """Where the log should begin, the oldest snapshot gone; None if that may stay."""
    log, settings = replica.log, replica.config.snapshots
    if len(log.snapshots) < 2:
        return None
    oldest, next_oldest = log.snapshots[:2]
    size_bytes = log.size_bytes + sum(file.size_bytes for file in log.snapshots)
    is_too_large = 0 <= settings.retention_bytes < size_bytes
    is_too_old = 0 <= settings.retention_ms < now_ms - last_timestamp_ms(oldest)
    return next_oldest.id.offset if is_too_large or is_too_old else None
