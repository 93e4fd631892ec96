"""Storage in files: carries out the storage effects of one node, for all its logs.

What takes no waiting happens at once, in the driver's thread: appends go to the page cache, reads
come mostly out of it, a new log is a few small files, and a sync is inline if the last ones of its
log were fast and nothing else is under way (`sync_pace`). What waits for the medium runs in the
four small pools of threads that `jobs.Pool` names, so that a slow recovery delays no vote: syncs
and elections, for which somebody waits; truncations; recovery, deletion and checkpoints; snapshots.
`log_queue` keeps the order within a log, `log_directories` does the blocking work.

A failed write or sync ends its log for good: `StorageFailed`, and so it does all the logs of that
data directory. A sync is never tried again, because the kernel may have dropped what it could not
write.

Source: Kafka's LogManager, UnifiedLog and KafkaRaftLog.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never
from uuid import UUID

from quorum.core.cleaning import Clean
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    Durability,
    FoundLog,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    ResetLog,
    SaveElection,
    SaveHighWatermarks,
    SaveProducers,
    StorageFailed,
    Stored,
    TimestampFound,
    Token,
    Trimmed,
    Truncate,
)
from quorum.core.storage import (
    METADATA_LOG,
    Loaded,
    LogEffect,
    Say,
    SnapshotEffect,
    StorageEffect,
    StorageError,
    StorageEvent,
    SyncCounts,
)
from quorum.log.files.at_once import AtOnce, append, at_once
from quorum.log.files.checkpoint_writes import CheckpointWrites
from quorum.log.files.cleanings import Cleanings
from quorum.log.files.disk import Disk
from quorum.log.files.jobs import Jobs, Outcome, Pool, Workers
from quorum.log.files.log_directories import LogDirectories, StorageSettings
from quorum.log.files.log_directory import LogDirectory
from quorum.log.files.log_queue import Alone, LogQueue, Swap, pool_of
from quorum.log.files.snapshot_jobs import SnapshotJobs
from quorum.log.files.sync_pace import SyncPace
from quorum.log.files.threads import Threads
from wire.message import replace
from wire.primitives import ZERO_UUID

__all__ = ["FileStorage", "StorageSettings"]

Unanswered = Configure | SaveProducers | DeleteLog  # nothing that is told to anybody rests on them


class FileStorage:
    """`quorum.core.storage.Storage` on real files."""

    def __init__(
        self,
        directories: str | Mapping[str, UUID],
        *,
        metadata_directory: str | None = None,
        settings: StorageSettings | None = None,
        disk: Disk | None = None,
        workers: Workers | None = None,
        say: Say = lambda line: None,
    ) -> None:
        """`directories` are those for partitions: their ids by path, or the only one's path.

        They must have been opened by `quorum.node.directories`. Without a `metadata_directory`
        the first is that, too. Raises `StorageError`.
        """
        settings = settings or StorageSettings()
        if isinstance(directories, str):
            directories = {directories: ZERO_UUID}
        self.syncs = SyncCounts()
        self._inline_sync_seconds = settings.inline_sync_seconds
        self._disk = disk or Disk(descriptors_max=settings.descriptors_max)
        self._say = say
        self._workers = workers = workers or Threads()
        self._directories = LogDirectories(
            self._disk,
            directories,
            metadata_directory=metadata_directory or next(iter(directories)),
            settings=settings,
            sleep=workers.sleep,
            say=say,
        )
        self._queues: dict[str, LogQueue] = {}
        self._unsynced: list[LogQueue] = []  # may be due for a sync
        self._events: list[StorageEvent] = []
        self._last_read: tuple[Read, ReadDone] | None = None  # since when nothing else was done
        self._jobs = Jobs(workers)
        self._checkpoints = CheckpointWrites(self._jobs, finish=self._finish_housekeeping)
        self._snapshots = SnapshotJobs(
            self._directories.snapshots,
            self._jobs,
            report=lambda event: self._events.append(event),
            fail=lambda token, error: self._fail(self._queue(METADATA_LOG), token, error),
        )
        self._cleanings = Cleanings(
            self._directories,
            self._jobs,
            workers,
            say=say,
            report=lambda event: self._events.append(event),
            advance=self._advance,
        )
        self._jobs.submit(
            Pool.BACKGROUND, self._directories.remove_deleted, self._finish_housekeeping
        )

    # --- what Storage asks for --------------------------------------------------------------

    @property
    def fsyncs(self) -> int:
        """Calls that made a file or a directory durable, since the beginning."""
        return self._disk.syncs

    def load(self, log: str, topic_id: UUID) -> Loaded:
        queue = self._queue(log)
        assert queue.segments is None, f"{log} is open"
        queue.segments, state = self._directories.open(log, topic_id)
        self._snapshots.found(state.snapshots)
        return Loaded(election=self._directories.read_election(log), state=state)

    @property
    def found(self) -> tuple[FoundLog, ...]:
        """The partition logs that lay in the directories at the start."""
        return self._directories.found

    @property
    def offline(self) -> tuple[UUID, ...]:
        """The directories that could not be read at the start."""
        return tuple(self._directories.offline)

    @property
    def is_busy(self) -> bool:
        """Something runs in the background, or has run and was not taken yet."""
        return self._jobs.are_running

    def wake_with(self, wake: Callable[[], None]) -> None:
        self._jobs.wake_with(wake)

    def perform(self, effect: StorageEffect) -> None:
        if isinstance(effect, SaveHighWatermarks):
            for checkpoint in self._directories.set_high_watermarks(effect.entries):
                self._checkpoints.save(checkpoint)
            return
        if isinstance(effect, OpenLog) and not self._place(effect):
            return
        queue = self._queues.get(effect.log) or self._queue(effect.log)
        if queue.has_failed:
            self._refuse(effect, "it has failed", self._directories.home(effect.log).id)
            return
        if isinstance(effect, SnapshotEffect):
            self._perform_snapshot(queue, effect)
            return
        queue.last_token = effect.token
        if type(effect) is Append and not queue.waiting and queue.alone is None:
            self._append(queue, effect)
        else:
            queue.waiting.append(effect)
            self._advance(queue)

    def _append(self, queue: LogQueue, effect: Append) -> None:
        self._last_read = None  # nothing waits, and it makes nothing possible but a sync
        try:
            append(queue, effect)
        except StorageError as error:
            self._fail(queue, effect.token, error)
        if queue.may_sync():  # not if it has failed
            self._unsynced.append(queue)

    def _place(self, effect: OpenLog) -> bool:
        """Is there a directory for it? A log whose directory has failed may begin in another."""
        home = self._directories.place(effect.log, effect.directory_id)
        if home is None:
            self._refuse(effect, "its directory is offline", effect.directory_id)
            return False
        queue = self._queues.get(effect.log)
        if queue is not None and queue.has_failed:
            del self._queues[effect.log]
        return True

    def _refuse(
        self, effect: LogEffect | Swap | SnapshotEffect, reason: str, directory_id: UUID
    ) -> None:
        """Say so, lest a message that rests on the effect leaves."""
        if isinstance(effect, Swap):
            self._cleanings.swapped(effect)
        elif not isinstance(effect, Unanswered):
            self._events.append(
                StorageFailed(
                    log=effect.log, token=effect.token, reason=reason, directory_id=directory_id
                )
            )

    def _perform_snapshot(self, queue: LogQueue, effect: SnapshotEffect) -> None:
        """In no order with the effects on the log itself, which never wait for it."""
        assert effect.log == METADATA_LOG, effect.log
        try:
            self._snapshots.perform(effect)
        except StorageError as error:
            self._fail(queue, effect.token, error)

    def take_answers(self) -> list[StorageEvent]:
        self._last_read = None  # of the effects taken together
        events, self._events = self._events, []
        return events

    def take_events(self) -> list[StorageEvent]:
        self._jobs.run_here()
        while self._unsynced or self._jobs.finished:
            queues, self._unsynced = self._unsynced, []
            for queue in queues:
                if queue.may_sync():
                    self._begin_sync(queue)
            self._jobs.settle()
        return self.take_answers()

    def close(self, *, broker_epoch: int | None) -> None:
        """As `Storage.close`. No mark is left if a log has failed."""
        events: list[StorageEvent] = []
        self._snapshots.abandon()
        self._cleanings.abandon()
        while self.is_busy:
            self._jobs.wait()
            events += self.take_events()
        for queue in self._queues.values():
            job = partial(self._close_log, queue)
            self._jobs.submit(Pool.BACKGROUND, job, self._finish_housekeeping)
        self._jobs.wait()
        self._jobs.shut_down()
        self._jobs.settle()
        self._leave_marks(broker_epoch)
        self._disk.close()
        self._events = events

    def _leave_marks(self, broker_epoch: int | None) -> None:
        """Leave the marks of an orderly stop, if it was one, where a directory can be written."""
        try:
            self._directories.save_recovery_points()
            for directory in self._directories.data if broker_epoch is not None else ():
                if not directory.is_offline:
                    assert broker_epoch is not None
                    directory.leave_mark(broker_epoch)
        except StorageError as error:
            self._say(f"storage: {error}")

    def _close_log(self, queue: LogQueue) -> None:
        """In a thread. A log that cannot be closed in order is recovered at the next start."""
        if queue.segments is None or queue.has_failed:
            return
        try:
            self._directories.close(queue.log, queue.segments)
        except StorageError as error:
            queue.fail()
            self._directories.home(queue.log).is_offline = True
            self._say(f"storage failed log={queue.log}: {error}")

    # --- order ------------------------------------------------------------------------------

    def _queue(self, log: str) -> LogQueue:
        queue = self._queues.get(log)
        if queue is None:
            pace = SyncPace(self._inline_sync_seconds)
            queue = self._queues[log] = LogQueue(log=log, pace=pace)
        return queue

    def _advance(self, queue: LogQueue) -> None:
        """Begin what may begin."""
        while queue.waiting and (effect := queue.next_effect()) is not None:
            if isinstance(effect, Alone):
                self._begin_alone(queue, effect)
                continue
            try:
                event = self._at_once(queue, effect)
            except StorageError as error:
                self._fail(queue, effect.token, error)
                break
            if isinstance(event, Trimmed) and queue.log == METADATA_LOG:
                queue.doomed_snapshots += self._snapshots.trim(event.start_offset)
            if event is not None:
                self._events.append(event)
        if queue.may_remove():
            self._begin_removal(queue)
        if queue.may_sync():
            self._unsynced.append(queue)

    def _at_once(
        self, queue: LogQueue, effect: AtOnce | Clean
    ) -> ReadDone | TimestampFound | Trimmed | None:
        """All followers that wait for the same records get the same bytes, read once."""
        if isinstance(effect, Clean):
            self._cleanings.ask(queue, effect)
            return None
        if not isinstance(effect, Read):
            self._last_read = None
            return at_once(queue, effect)
        if (
            self._last_read is not None
            and replace(self._last_read[0], token=effect.token) == effect
        ):
            return replace(self._last_read[1], token=effect.token)
        done = at_once(queue, effect)
        assert isinstance(done, ReadDone)
        self._last_read = effect, done
        return done

    def _fail(self, queue: LogQueue, token: Token, error: StorageError) -> None:
        """The log fails, and its directory with all that lies there."""
        if queue.has_failed:
            return
        home = self._directories.home(queue.log)
        home.is_offline = True
        self._say(f"storage failed log={queue.log} directory={home.path}: {error}")
        self._fail_alone(queue, token, home, str(error))
        for other in tuple(self._queues.values()):
            if not other.has_failed and self._directories.lies_in(other.log, home):
                self._fail_alone(other, other.last_token, home, f"its directory failed: {error}")

    def _fail_alone(self, queue: LogQueue, token: Token, home: LogDirectory, reason: str) -> None:
        self._events.append(
            StorageFailed(log=queue.log, token=token, reason=reason, directory_id=home.id)
        )
        running = [] if queue.alone is None else [queue.alone]
        for effect in (*running, *queue.fail()):
            self._refuse(effect, reason, home.id)

    # --- syncs ------------------------------------------------------------------------------

    def _begin_sync(self, queue: LogQueue) -> None:
        """Without a token, only a rolled segment is synced, which nobody waits for."""
        assert queue.segments is not None, queue.log
        token, count = queue.take_sync()
        if token is None:
            unsynced, pool = queue.segments.unsynced_rolled(), Pool.BACKGROUND
        else:
            unsynced, pool = queue.segments.unsynced(), Pool.SYNC

        def job() -> float:
            started = self._workers.seconds()
            self._directories.sync(queue.log, unsynced)
            seconds = self._workers.seconds() - started
            if token is None:
                self._directories.save_recovery_points()
            self.syncs.add(seconds, tokens=count)
            return seconds

        if token is not None and queue.pace.is_inline and not self._jobs.are_running:
            self.syncs.inline += 1
            try:
                self._synced(queue, token, job(), is_inline=True)
            except StorageError as error:
                self._fail(queue, token, error)
        else:
            queue.is_syncing = True
            self._jobs.submit(pool, job, partial(self._finish_sync, queue, token))

    def _finish_sync(self, queue: LogQueue, token: Token | None, outcome: Outcome) -> None:
        queue.is_syncing = False
        if queue.has_failed:
            return
        try:
            seconds = outcome.result()
        except StorageError as error:
            self._fail(queue, token or queue.last_token, error)
            return
        self._synced(queue, token, seconds, is_inline=False)

    def _synced(
        self, queue: LogQueue, token: Token | None, seconds: float, *, is_inline: bool
    ) -> None:
        assert queue.segments is not None, queue.log
        queue.segments.synced()
        if queue.pace.took(seconds) and is_inline:
            self.syncs.too_slow += 1
            self._say(
                f"storage: a sync of {queue.log} stopped this node for {seconds * 1000:.0f} ms;"
                " the next ones run in a thread"
            )
        if token is not None:
            self._events.append(Stored(log=queue.log, token=token))
        if not is_inline or queue.may_remove():  # nothing came in during an inline sync
            self._advance(queue)

    # --- removing ---------------------------------------------------------------------------

    def _begin_removal(self, queue: LogQueue) -> None:
        assert queue.segments is not None, queue.log
        start_offset = queue.segments.start_offset if queue.has_new_start else None
        doomed, snapshot_ids = queue.take_doomed()
        queue.is_removing = True

        def job() -> None:
            if start_offset is not None:
                self._directories.save_start(queue.log, start_offset)
            self._directories.remove(queue.log, doomed)
            self._directories.snapshots.remove(snapshot_ids)

        self._jobs.submit(Pool.BACKGROUND, job, partial(self._finish_removal, queue))

    def _finish_removal(self, queue: LogQueue, outcome: Outcome) -> None:
        queue.is_removing = False
        if queue.has_failed:
            return
        try:
            outcome.result()
        except StorageError as error:
            self._fail(queue, queue.last_token, error)
            return
        self._advance(queue)

    # --- alone ------------------------------------------------------------------------------

    def _begin_alone(self, queue: LogQueue, effect: Alone) -> None:
        """Whatever waits for a sync by now is served by the same job."""
        queue.alone = effect
        self._last_read = None
        is_sync_due = queue.is_sync_wanted
        token, _ = queue.take_sync()
        pool = pool_of(effect)
        job = partial(self._directories.carry_out, effect, queue.segments, is_sync_due=is_sync_due)
        finish = partial(self._finish_alone, queue, effect, token)
        if isinstance(effect, Swap):
            finish = partial(self._finish_swap, queue, effect, token)
        else:
            self._cleanings.forget(queue)
        is_short = isinstance(effect, OpenLog) and self._directories.is_new(effect.log)
        submit = self._jobs.submit_here if is_short else partial(self._jobs.submit, pool)
        submit(job, finish)

    def _finish_alone(
        self, queue: LogQueue, effect: Alone, token: Token | None, outcome: Outcome
    ) -> None:
        queue.alone = None
        if queue.has_failed:
            return
        try:
            result = outcome.result()
        except StorageError as error:
            self._fail(queue, effect.token, error)
            return
        match effect:
            case OpenLog():
                queue.segments, state = result
                self._events.append(Opened(token=effect.token, state=state))
            case DeleteLog():
                queue.segments = None
                token = None  # whoever deletes a log no longer waits for what was in it
            case SaveElection() | ResetLog() | Truncate(durability=Durability.SYNCED):
                token = effect.token
            case Truncate() | Swap():
                pass
            case _:
                assert_never(effect)
        self._advance(queue)
        if token is not None and not queue.has_failed:  # also what waited is written by now
            self._events.append(Stored(log=queue.log, token=token))
        is_idle = queue.segments is None and queue.alone is None and not queue.waiting
        if is_idle and self._queues.get(queue.log) is queue:
            del self._queues[queue.log]
            self._directories.forget(queue.log)

    def _finish_swap(
        self, queue: LogQueue, effect: Swap, token: Token | None, outcome: Outcome
    ) -> None:
        self._finish_alone(queue, effect, token, outcome)
        self._cleanings.swapped(effect)

    def _finish_housekeeping(self, outcome: Outcome) -> None:
        """Nobody waits for it, and the logs are as good without it: a line in the log will do."""
        try:
            outcome.result()
        except StorageError as error:
            self._say(f"storage: {error}")
