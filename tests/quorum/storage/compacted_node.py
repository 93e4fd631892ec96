"""A node with one compacted log on files in memory, and what was written to it.

Its jobs run when somebody waits for them, one after the other; `between` happens before each.
"""

from collections.abc import Callable
from random import Random
from typing import Self
from uuid import UUID

from jepsen_like.sim.disks.virtual_files import VirtualFiles
from jepsen_like.sim.disks.world_workers import QueuedWorkers
from quorum.core.cleaning import Clean, Cleaned
from quorum.core.effects import (
    Append,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    StorageFailed,
    Token,
)
from quorum.core.log_settings import CleaningOrder, CleaningRules, LogSettings
from quorum.core.producers import ProducerEntry, observe
from quorum.core.storage import StorageEffect, StorageEvent
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from tests.quorum.keyed_batches import Keyed, keyed_batch, read_records
from wire.batch import Compression, Record, headers, read_header

__all__ = ["LOG", "Node"]

LOG = "t-0"
_TOPIC = UUID(int=9)
_SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100, reread_bytes=0)
_HOUR_MS = 3_600_000


class _Workers(QueuedWorkers):
    def __init__(self) -> None:
        super().__init__()
        self.between: Callable[[], None] = lambda: None

    def wait(self) -> None:
        while self._waiting:
            self.between()
            self._waiting.pop(0)()


class Node:
    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.files = VirtualFiles(Random(seed))
        self.files.mkdir("/data")
        self.files.make_durable()
        self.written: dict[int, Record] = {}  # by offset, also what is not there any more
        self.ends: dict[int, int] = {}  # of the batches: base offset and last offset
        self.producers: dict[int, ProducerEntry] = {}
        self.now_ms = 10 * _HOUR_MS
        self.high_watermark: int | None = None  # None: all is committed
        self.said: list[str] = []
        self.log = LOG
        self.boundary = 0  # of two batches
        self._number = 0
        self.start_offset = self.end_offset = 0
        self.start()

    # --- its life -------------------------------------------------------------------------------

    def start(self) -> Opened:
        self.workers = _Workers()
        self.storage = FileStorage(
            "/data",
            disk=Disk(system=self.files),
            workers=self.workers,
            say=self.said.append,
        )
        return self._open()

    def _open(self) -> Opened:
        effect = OpenLog(log=self.log, token=self.token(), topic_id=_TOPIC, settings=_SETTINGS)
        (opened,) = self.do(effect)
        assert isinstance(opened, Opened), opened
        self.state = opened.state
        self.start_offset = opened.state.start_offset
        self.end_offset = opened.state.end_offset
        return opened

    def beside(self, log: str) -> "Node":
        """Another log of the same process."""
        other = object.__new__(Node)
        other.__dict__ |= self.__dict__
        other.log, other.written, other.ends, other.producers = log, {}, {}, {}
        other._open()
        return other

    def stop(self) -> None:
        self.storage.close(broker_epoch=1)

    def crash(self, *, power_loss: bool) -> None:
        """Kafka acknowledges without a sync, so that a power failure may take the end of it."""
        self.files.crash(power_loss=power_loss)
        self.start()
        for offset in [each for each in self.written if each >= self.end_offset]:
            del self.written[offset]

    def copy(self) -> Self:
        """Another node on a copy of its disk, as a killed process leaves it."""
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__
        other.written, other.said = dict(self.written), []
        other.producers = dict(self.producers)
        other.files = self.files.copy()
        other.start()
        return other

    # --- what is done to it -----------------------------------------------------------------------

    def token(self) -> Token:
        self._number += 1
        return Token("broker", self._number)

    def do(self, *effects: StorageEffect) -> list[StorageEvent]:
        for effect in effects:
            self.storage.perform(effect)
        return self.settle()

    def settle(self) -> list[StorageEvent]:
        events = self.storage.take_events()
        while self.storage.is_busy:
            self.workers.wait()
            events += self.storage.take_events()
        return events

    def append(
        self,
        records: list[Keyed],
        *,
        codec: Compression = Compression.NONE,
        gap: int = 0,
        epoch: int = 1,
        producer_id: int = -1,
    ) -> None:
        known = self.producers.get(producer_id)
        sequence = known.batches[-1].last_sequence + 1 if known is not None else 0
        batch = keyed_batch(
            self.end_offset + gap,
            records,
            codec=codec,
            timestamp_ms=self.now_ms,
            epoch=epoch,
            producer=(producer_id, 0, sequence) if producer_id >= 0 else (-1, -1, -1),
        )
        self.written |= {record.offset: record for record in read_records(batch)}
        header = read_header(batch)
        self.ends[header.base_offset] = header.last_offset
        observe(self.producers, header)
        self.end_offset = header.next_offset
        self.storage.perform(Append(log=self.log, token=self.token(), records=batch))
        self.storage.take_events()

    def order(self, **rules: float) -> Clean:
        last_batches = {
            (entry.producer_id, entry.batches[-1].last_offset) for entry in self.producers.values()
        }
        order = CleaningOrder(
            rules=CleaningRules(**{"dirty_ratio_min": 0.0, **rules}),  # type: ignore[arg-type]
            now_ms=self.now_ms,
            end_offset=self.end_offset if self.high_watermark is None else self.high_watermark,
            last_batches=frozenset(last_batches),
        )
        return Clean(log=self.log, token=self.token(), order=order)

    def clean(self, **rules: float) -> Cleaned:
        effect = self.order(**rules)
        (cleaned,) = [e for e in self.do(effect) if isinstance(e, Cleaned | StorageFailed)]
        assert isinstance(cleaned, Cleaned), cleaned
        assert cleaned.token == effect.token
        return cleaned

    # --- what is there ----------------------------------------------------------------------------

    def read(self, offset: int, *, bytes_max: int = 1 << 20) -> bytes:
        """Nothing where the log cannot answer at once."""
        self.storage.perform(
            Read(
                log=self.log,
                token=self.token(),
                start_offset=offset,
                end_offset=self.end_offset,
                bytes_max=bytes_max,
            )
        )
        answers = self.storage.take_answers()
        self.storage._events += [each for each in answers if not isinstance(each, ReadDone)]
        return b"".join(each.records for each in answers if isinstance(each, ReadDone))

    def batches(self) -> bytes:
        parts, offset = [], self.start_offset
        while offset < self.end_offset and (part := self.read(offset)):
            parts.append(part)
            *_, (_, last) = headers(part)
            offset = last.next_offset
        return b"".join(parts)

    def read_end(self, offset: int) -> int:
        """Where the last batch ends that ends before `offset`."""
        ends = [header.next_offset for _, header in headers(self.batches())]
        return max(each for each in ends if each <= offset)

    def records(self) -> list[Record]:
        return read_records(self.batches())

    def names(self, suffix: str = ".log") -> list[str]:
        return sorted(
            each for each in self.files.listdir(f"/data/{self.log}") if each.endswith(suffix)
        )

    def checkpoint(self) -> str:
        return self.files.content("/data/cleaner-offset-checkpoint").decode()
