"""Partition logs in memory, for tests of brokers: each batch is a segment of its own."""

from dataclasses import dataclass, field
from uuid import UUID

from quorum.core.cleaning import Clean, Cleaned
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    Effect,
    EpochStart,
    Event,
    FindTimestamp,
    FoundLog,
    LogState,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    ResetLog,
    Retain,
    SaveHighWatermarks,
    SaveProducers,
    StorageFailed,
    Stored,
    TimestampFound,
    Token,
    Trim,
    Trimmed,
    Truncate,
)
from quorum.core.log_settings import LogSettings
from quorum.core.producers import AbortedTransaction, ProducerEntry, observe
from wire.batch import BatchHeader, headers, read_header, records_of
from wire.transaction_markers import read_marker

__all__ = ["Disk", "MemoryLog"]


@dataclass
class MemoryLog:
    """A log that forgets nothing and never fails."""

    topic_id: UUID
    directory_id: UUID
    settings: LogSettings | None = None
    batches: list[bytes] = field(default_factory=list)
    start_offset: int = 0
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def headers(self) -> list[BatchHeader]:
        return [read_header(batch) for batch in self.batches]

    @property
    def end_offset(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else self.start_offset

    def append(self, data: bytes) -> None:
        for position, header in headers(data):
            assert header.base_offset >= self.end_offset, (header, self.end_offset)
            self.batches.append(data[position : position + header.size_bytes])

    def truncate(self, end_offset: int) -> None:
        self.batches = [b for b in self.batches if read_header(b).next_offset <= end_offset]
        self.aborted = [each for each in self.aborted if each.last_offset < end_offset]

    def aborted_in(self, records: bytes) -> tuple[AbortedTransaction, ...]:
        found = [header for _, header in headers(records)]
        return tuple(
            each
            for each in self.aborted
            if found
            and each.first_offset < found[-1].next_offset
            and each.last_offset >= found[0].base_offset
        )

    def trim(self, start_offset: int) -> None:
        self.batches = [b for b in self.batches if read_header(b).next_offset > start_offset]
        self.start_offset = max(self.start_offset, start_offset)

    def retain(self, effect: Retain) -> None:
        for batch in tuple(self.batches):
            header = read_header(batch)
            excess = 0
            if effect.bytes_max is not None:
                excess = sum(map(len, self.batches)) - effect.bytes_max
            is_old = effect.since_ms is not None and header.max_timestamp_ms < effect.since_ms
            if header.next_offset > effect.end_offset or not (is_old or excess >= len(batch)):
                return
            self.trim(header.next_offset)

    def read(self, start_offset: int, end_offset: int, bytes_max: int) -> bytes:
        found = b""
        for batch in self.batches:
            header = read_header(batch)
            if header.next_offset <= start_offset or header.next_offset > end_offset:
                continue
            if found and len(found) + len(batch) > bytes_max:
                break
            found += batch
        return found

    def state(self, log: str, high_watermark: int) -> LogState:
        epochs: list[EpochStart] = []
        producers: dict[int, ProducerEntry] = {}
        for batch in self.batches:
            header = read_header(batch)
            if not epochs or epochs[-1].epoch != header.leader_epoch:
                epochs.append(EpochStart(header.leader_epoch, header.base_offset))
            observe(producers, header, read_marker(batch, header))
        return LogState(
            log=log,
            topic_id=self.topic_id,
            directory_id=self.directory_id,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            last_epoch=epochs[-1].epoch if epochs else -1,
            epochs=tuple(epochs),
            high_watermark=high_watermark,
            producers=tuple(producers.values()),
        )

    def find(self, token: Token, effect: FindTimestamp) -> TimestampFound:
        for batch in self.batches:
            for record in records_of(batch):
                if record.offset < effect.end_offset and record.timestamp_ms >= effect.timestamp_ms:
                    return TimestampFound(
                        token=token,
                        log=effect.log,
                        offset=record.offset,
                        timestamp_ms=record.timestamp_ms,
                        leader_epoch=read_header(batch).leader_epoch,
                    )
        return TimestampFound(
            token=token, log=effect.log, offset=-1, timestamp_ms=-1, leader_epoch=-1
        )


@dataclass
class Disk:
    logs: dict[str, MemoryLog] = field(default_factory=dict)
    strays: dict[str, MemoryLog] = field(default_factory=dict)  # set aside
    checkpoint: dict[tuple[str, int], int] = field(default_factory=dict)
    saved_producers: dict[str, SaveProducers] = field(default_factory=dict)
    cleaned: list[Clean] = field(default_factory=list)  # what was asked for
    clean_again_ms: int | None = None  # what is answered
    failed: set[UUID] = field(default_factory=set)  # directories that fail at the next use

    @property
    def found(self) -> tuple[FoundLog, ...]:
        return tuple(
            FoundLog(log=name, topic_id=log.topic_id, directory_id=log.directory_id)
            for name, log in self.logs.items()
            if log.directory_id not in self.failed
        )

    def perform(self, effect: Effect) -> Event | None:
        match effect:
            case SaveHighWatermarks():
                self.checkpoint |= {(topic, index): at for topic, index, at in effect.entries}
                return None
            case DeleteLog():
                log = self.logs.pop(effect.log, None)
                topic, _, index = effect.log.rpartition("-")
                self.checkpoint.pop((topic, int(index)), None)
                if log is not None and effect.is_stray:
                    self.strays[effect.log] = log
                return None
            case OpenLog():
                return self._open(effect)
            case SaveProducers():
                self.saved_producers[effect.log] = effect
                return None
            case (
                Append()
                | Truncate()
                | Trim()
                | Retain()
                | Clean()
                | ResetLog()
                | Configure()
                | Read()
                | FindTimestamp()
            ):
                log = self.logs[effect.log]
                if log.directory_id in self.failed:
                    return self._failure(effect.log, effect.token, log.directory_id)
                if isinstance(effect, Truncate | ResetLog):
                    self._lower(effect)
                return self._perform_on(log, effect)
            case _:
                raise AssertionError(f"not an effect on a disk: {effect}")

    def _open(self, effect: OpenLog) -> Event:
        if effect.directory_id in self.failed:
            return self._failure(effect.log, effect.token, effect.directory_id)
        new = MemoryLog(effect.topic_id, effect.directory_id, effect.settings)
        log = self.logs.setdefault(effect.log, new)
        log.settings = effect.settings
        topic, _, index = effect.log.rpartition("-")
        high_watermark = self.checkpoint.get((topic, int(index)), 0)
        return Opened(token=effect.token, state=log.state(effect.log, high_watermark))

    def _lower(self, effect: Truncate | ResetLog) -> None:
        """As the files do: a checkpoint that is too high would be wrong."""
        topic, _, index = effect.log.rpartition("-")
        key = topic, int(index)
        saved = self.checkpoint.pop(key, None)
        if saved is not None and isinstance(effect, Truncate):
            self.checkpoint[key] = min(saved, effect.end_offset)

    def _failure(self, log: str, token: Token, directory_id: UUID) -> StorageFailed:
        return StorageFailed(log=log, token=token, reason="pulled out", directory_id=directory_id)

    def _perform_on(self, log: MemoryLog, effect: Effect) -> Event | None:
        match effect:
            case Append():
                log.append(effect.records)
                log.aborted += effect.aborted
            case Truncate():
                log.truncate(effect.end_offset)
                return Stored(token=effect.token, log=effect.log)
            case ResetLog():
                log.batches, log.aborted, log.start_offset = [], [], effect.start.offset
                return Stored(token=effect.token, log=effect.log)
            case Configure():
                log.settings = effect.settings
            case Trim():
                log.trim(effect.start_offset)
                return self._trimmed(log, effect)
            case Retain():
                log.retain(effect)
                return self._trimmed(log, effect)
            case Clean():
                self.cleaned.append(effect)
                size_bytes = sum(map(len, log.batches))
                return Cleaned(
                    token=effect.token,
                    log=effect.log,
                    size_bytes=size_bytes,
                    next_ms=self.clean_again_ms,
                )
            case Read():
                found = log.read(effect.start_offset, effect.end_offset, effect.bytes_max)
                aborted = log.aborted_in(found) if effect.wants_aborted else ()
                return ReadDone(token=effect.token, log=effect.log, records=found, aborted=aborted)
            case FindTimestamp():
                return log.find(effect.token, effect)
            case _:
                raise AssertionError(effect)
        return None

    def _trimmed(self, log: MemoryLog, effect: Trim | Retain) -> Trimmed:
        return Trimmed(
            token=effect.token,
            log=effect.log,
            start_offset=log.start_offset,
            size_bytes=sum(map(len, log.batches)),
            oldest_ms=read_header(log.batches[0]).max_timestamp_ms if log.batches else -1,
        )
