"""Recovery of a log: read it back, keep what is whole, and decide what to do about the rest.

A log is a sequence of whole batches with intact checksums, rising offsets and rising epochs; the
metadata log has no gaps, and below its recovery point the epochs that leader-epoch-checkpoint says.
Where that ends, or where a segment does not begin where the one before it ended, the log ends, and
everything behind that place goes. (Only Kafka's compaction leaves gaps between segments.)

- silently, if it is nothing but preallocated zeros;
- with a line in the log, if it lies at or behind the recovery point: it was never synced, so
  nobody was told of it. A power failure may well leave a hole and intact batches behind it;
- not at all, if it lies below the recovery point: then records that may have been acknowledged are
  damaged, and `CorruptLog` says where. The same for a log that ends before its recovery point.

Without a recovery point (a directory that Kafka wrote) an intact batch behind the damage decides:
if there is one, this is no torn tail.

Recovery syncs what it keeps before anyone hears of it: a replica counts it as its own from then on.
It writes again what lies behind the recovery point, since an earlier sync of that may have failed.
A new log is not synced: its first sync covers that it is there. Nor is a partition's log that was
closed in order and ends at its recovery point: an orderly stop has synced it, and its directory.
Segments wholly below the recovery point are taken on trust, except in the metadata log, which is
small and read whole. So is a large log that was closed in order, but for its end (`resumption`).

Source: Kafka's LogLoader and LogSegment.recover, which cut off at the first damage in all cases.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from quorum.core.effects import EpochStart
from quorum.core.log_settings import LogSettings
from quorum.core.producers import AbortedTransaction, ProducerEntry, observe
from quorum.core.storage import Say, StorageError
from quorum.log.epochs import EpochCache
from quorum.log.files.checkpoints import EPOCHS, format_epochs, parse_epochs
from quorum.log.files.disk import Disk
from quorum.log.files.resumption import adopt_snapshots, resume, take_producers
from quorum.log.files.segment import Segment, batches_in
from quorum.log.files.segments import SegmentedLog
from quorum.log.files.sequence import Noted, Seen
from quorum.log.files.swapping import finish_swaps
from quorum.log.open_transactions import only_open
from wire.batch import HEADER_BYTES, CorruptBatch, is_intact, read_header
from wire.transaction_markers import read_marker
from wire.varint import Malformed

__all__ = [
    "WAY_OUT",
    "CorruptLog",
    "Recovered",
    "is_loss",
    "open_log",
    "write_again",
]

_SEGMENT_NAME = re.compile(r"(\d{20})\.log")
_INDEX_NAME = re.compile(r"(\d{20})\.(index|timeindex|txnindex|open)")
_LEFTOVER_SUFFIXES = (".tmp", ".deleted", ".cleaned", ".swap", ".part")
_SEARCH_BYTES_MAX = 64 << 20  # how far behind the damage an intact batch is looked for
_PRODUCERS_BYTES = 16 << 20  # at the end of a log, by which its producers are known
_MAGIC_AT = 16
_CHUNK_BYTES = 1 << 20
WAY_OUT = (
    "Do not start this node on it as it is: restore the directory from a backup, or, if enough"
    " other replicas are healthy, remove it and let them fill it again."
)


class CorruptLog(StorageError):
    """Records that may have been acknowledged are damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    log: SegmentedLog
    producers: tuple[ProducerEntry, ...] = ()
    control_batches: tuple[bytes, ...] = ()  # of what was read
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class _Damage:
    """Why the log ends with the last batch of `segment`, although its files go on."""

    segment: Segment
    problem: str
    end_offset: int  # of what is sound

    def __str__(self) -> str:
        return f"{self.segment.path} is damaged at byte {self.segment.size_bytes}: {self.problem}"


def _create_log(disk: Disk, directory: str, settings: LogSettings) -> Recovered:
    """Make an empty log in an empty directory. Nothing is synced: its first sync covers all."""
    segment = Segment(disk, directory, settings, base_offset=0)
    segment.create()
    log = SegmentedLog(
        disk,
        directory,
        settings,
        segments=[segment],
        epochs=EpochCache(),
        start_offset=0,
        is_new=True,
    )
    return Recovered(log=log, is_new=True)


def open_log(
    disk: Disk,
    directory: str,
    settings: LogSettings,
    *,
    recovery_point: int | None,
    start_offset: int = 0,
    cleaned_offset: int = 0,
    reads_all: bool = False,
    was_closed: bool = False,
    say: Say = lambda line: None,
) -> Recovered:
    """Recover the log in `directory`, or make an empty one.

    `recovery_point` is None if it is not known; `reads_all` checks what lies below it, too;
    `was_closed` if the last process that had it open has synced it, and its directory, at its end.
    The log starts with its first segment, or at `start_offset` if that is later. Up to
    `cleaned_offset` it was compacted.
    """
    if disk.make_directory(directory):
        return _create_log(disk, directory, settings)
    names = finish_swaps(disk, directory)
    segments = _find_segments(disk, directory, settings, names)
    known_epochs = _read_epochs(disk, directory, say)
    seen = None
    if not reads_all:
        adopt_snapshots(disk, directory, names, segments)
        producers = take_producers(disk, directory, names, end_offset=recovery_point or 0)
        epochs = EpochCache(known_epochs or ())
        was_left = was_closed and producers is not None
        if was_left and resume(disk, segments, epochs, end_offset=recovery_point or 0):
            seen = Seen(epochs=epochs, producers=producers or {})
    if seen is None:
        seen = _read_back(
            disk,
            directory,
            segments,
            known_epochs,
            recovery_point=recovery_point,
            cleaned_offset=cleaned_offset,
            reads_all=reads_all,
            was_closed=was_closed,
            say=say,
        )
    end_offset = segments[-1].end_offset
    start_offset = min(max(start_offset, segments[0].base_offset), end_offset)
    if not seen.epochs.entries:
        _keep_last_epoch(seen.epochs, known_epochs or (), end_offset)
    seen.epochs.truncate_start(start_offset)
    if known_epochs != seen.epochs.entries and (seen.epochs.entries or known_epochs):
        disk.replace(f"{directory}/{EPOCHS}", format_epochs(seen.epochs.entries))
    log = SegmentedLog(
        disk,
        directory,
        settings,
        segments=segments,
        epochs=seen.epochs,
        start_offset=start_offset,
        producers=seen.producers.values(),
    )
    return Recovered(
        log=log,
        producers=tuple(seen.producers.values()),
        control_batches=tuple(seen.control_batches),
    )


def _read_back(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    known_epochs: Sequence[EpochStart] | None,
    *,
    recovery_point: int | None,
    cleaned_offset: int,
    reads_all: bool,
    was_closed: bool,
    say: Say,
) -> Seen:
    """Read the segments that hold what lies behind the recovery point; cut off what is unsound."""
    first = 0
    if not reads_all and known_epochs is not None:
        first = _first_to_read(segments, recovery_point or 0)
    noted = Noted(known_epochs or (), recovery_point or 0) if reads_all else None
    seen = Seen(noted, end_offset=segments[first].base_offset, known=known_epochs or ())
    for entry in known_epochs or ():
        if entry.start_offset < segments[first].base_offset:
            seen.epochs.assign(entry.epoch, entry.start_offset)
    _adopt(disk, segments[: first + 1], say)
    _recall_producers(disk, segments, first, seen, say)
    damage = _read_segments(disk, segments[first:], seen, cleaned_offset=cleaned_offset)
    _refuse_loss(disk, directory, segments, damage, recovery_point)
    if damage is not None:
        _cut_off(disk, damage, segments, say)
    synced_offset = (recovery_point or 0) if was_closed and damage is None else -1
    if synced_offset < 0:
        for segment in segments[first:]:
            segment.distrusts_index_files = not reads_all
            segment.transactions.write_again()
        write_again(disk, segments[first:], recovery_point)
    _sync(disk, directory, segments[first:], synced_offset)
    return seen


def is_loss(end_offset: int, recovery_point: int) -> bool:
    """Are synced records missing from a log that ends there?"""
    return end_offset < recovery_point


def _find_segments(
    disk: Disk, directory: str, settings: LogSettings, names: Sequence[str]
) -> list[Segment]:
    """Return at least one segment; the leftovers of interrupted operations are removed."""
    segments, present = [], frozenset(names)
    for name in names:
        match = _SEGMENT_NAME.fullmatch(name)
        if match:
            segments.append(Segment(disk, directory, settings, base_offset=int(match[1])))
            segments[-1].transactions.find(present)
            continue
        index = _INDEX_NAME.fullmatch(name)
        is_orphan = index is not None and f"{index[1]}.log" not in names
        if is_orphan or name.endswith(_LEFTOVER_SUFFIXES):
            disk.remove(f"{directory}/{name}")
    if not segments:
        segments.append(Segment(disk, directory, settings, base_offset=0))
        segments[0].create()
    return segments


def _read_epochs(disk: Disk, directory: str, say: Say) -> tuple[EpochStart, ...] | None:
    """None if the file is missing or damaged: the batches themselves say the same."""
    path = f"{directory}/{EPOCHS}"
    content = disk.read_whole(path)
    if content is None:
        return None
    try:
        return parse_epochs(content, path)
    except StorageError as error:
        say(f"rebuilding the leader epochs from the log: {error}")
        return None


def _keep_last_epoch(epochs: EpochCache, known: Sequence[EpochStart], end_offset: int) -> None:
    """All records have been deleted, or replaced by a snapshot: their last epoch is still known."""
    before = [entry.epoch for entry in known if entry.start_offset <= end_offset]
    if before and end_offset:
        epochs.assign(before[-1], end_offset)


def _first_to_read(segments: Sequence[Segment], recovery_point: int) -> int:
    """The segment that holds the recovery point, but at least the last two: idempotent producers
    are known from what is read."""
    below = sum(segment.base_offset <= recovery_point for segment in segments)
    return max(min(below - 1, len(segments) - 2), 0)


def _recall_producers(
    disk: Disk, segments: Sequence[Segment], first: int, seen: Seen, say: Say
) -> None:
    """Tell `seen` of the producers in small segments before the `first` that is read.

    A client may have five batches in flight, of which each may have filled a segment. What is read
    is bounded: a segment that is large has them all, or is too much to read at each start. Of those
    before, the producers with open transactions are noted where a segment begins.
    """
    start, left = first, _PRODUCERS_BYTES - sum(disk.size(each.path) for each in segments[first:-1])
    while start > 0 and segments[start - 1].size_bytes <= left:
        start -= 1
        left -= segments[start].size_bytes
    seen.producers |= _open_before(disk, segments, start)
    for segment in segments[start:first]:
        try:
            _observe_producers(disk, segment, seen.producers)
        except Malformed as error:
            say(f"producers are not known from all of {segment.path}: {error}")
    if segments[first].transactions.open_at_start() is None:
        segments[first].transactions.put_open(only_open(seen.producers.values()))


def _open_before(disk: Disk, segments: Sequence[Segment], place: int) -> dict[int, ProducerEntry]:
    """The transactions that are open where a segment begins; those before it have been adopted.

    Of those that began before the log does, nothing more than that is known if nobody noted it.
    """
    noted = segments[place].transactions.open_at_start()
    if noted is not None or place == 0:
        return noted or {}
    producers = segments[place - 1].transactions.open_at_start() or {}
    _observe_producers(disk, segments[place - 1], producers)
    return only_open(producers.values())


def _observe_producers(disk: Disk, segment: Segment, producers: dict[int, ProducerEntry]) -> None:
    for _, header, batch in batches_in(disk, segment.path, position=0, end=segment.size_bytes):
        observe(producers, header, read_marker(batch, header) if header.is_control else None)


def _adopt(disk: Disk, segments: Sequence[Segment], say: Say) -> None:
    """Take all but the last of `segments` on trust, if their indexes are sound."""
    for place, (segment, following) in enumerate(pairwise(segments)):
        segment.adopt(size_bytes=disk.size(segment.path), end_offset=following.base_offset)
        if segment.has_sound_indexes():
            continue
        say(f"rebuilding the indexes of {segment.path}")
        producers = _open_before(disk, segments, place)
        segment.transactions.put_open(producers)
        damage = _read_segment(disk, segment, Seen(producers=dict(producers)))
        if damage is not None:
            raise CorruptLog(f"{damage}. {WAY_OUT}")
        segment.finish()
        for path in segment.unsynced_paths():
            disk.sync(path)


def _read_segments(
    disk: Disk, segments: Sequence[Segment], seen: Seen, *, cleaned_offset: int
) -> _Damage | None:
    for segment, following in zip_longest(segments, segments[1:]):
        if segment is not segments[0]:
            segment.transactions.put_open(only_open(seen.producers.values()))
        damage = _read_segment(disk, segment, seen)
        if following is None:
            return damage
        is_continued = following.base_offset == segment.end_offset
        if damage is not None and is_continued and _is_blank(disk, segment):
            continue  # rolled, and the trimming of its preallocated zeros did not last
        if damage is not None:
            return damage
        if segment.end_offset < following.base_offset <= cleaned_offset:
            segment.end_offset = following.base_offset
        elif not is_continued:
            problem = f"offset {segment.end_offset} is next, not {following.base_offset}"
            end_offset = seen.sound_end(segment.end_offset, following.base_offset)
            return _Damage(segment, problem, end_offset)
    return None


def _read_segment(disk: Disk, segment: Segment, seen: Seen) -> _Damage | None:
    """Tell `segment` its batches. Damage is whatever follows them, preallocated zeros included."""
    size = disk.size(segment.path)
    segment.begin_scan(size)
    problem = "the last batch is cut short, or zeros follow"
    refused_offset = -1
    aborted: list[AbortedTransaction] = []
    try:
        for position, header, batch in batches_in(disk, segment.path, position=0, end=size):
            if not is_intact(batch, 0, header):
                problem = f"the checksum of the batch at offset {header.base_offset} is wrong"
                break
            refusal = seen.refuses(header, segment.end_offset)
            if refusal is not None:
                problem, refused_offset = refusal, header.base_offset
                break
            ended = seen.observe(header, batch)
            segment.observe(position, header)
            if ended is not None:
                aborted.append(ended)
    except Malformed as error:
        problem = str(error)
    segment.transactions.replace(aborted)
    if segment.size_bytes == size:
        return None
    return _Damage(segment, problem, seen.sound_end(segment.end_offset, refused_offset))


def _refuse_loss(
    disk: Disk,
    directory: str,
    segments: Sequence[Segment],
    damage: _Damage | None,
    recovery_point: int | None,
) -> None:
    """Raise if records are missing, or would go with the damage, that may be acknowledged."""
    end_offset = segments[-1].end_offset if damage is None else damage.end_offset
    if recovery_point is not None:
        if is_loss(end_offset, recovery_point):
            problem = f"{directory} ends" if damage is None else f"{damage}, and the log ends"
            raise CorruptLog(
                f"{problem} at offset {end_offset}, but it was synced up to {recovery_point}."
                f" {WAY_OUT}"
            )
    elif damage is not None:
        for later in segments[segments.index(damage.segment) + 1 :]:
            if disk.size(later.path):
                raise CorruptLog(f"{damage}, and {later.path} goes on behind it. {WAY_OUT}")
        intact = _intact_batch_behind(disk, damage)
        if intact is not None:
            raise CorruptLog(
                f"{damage}, but an intact batch follows at byte {intact}: this is no torn tail."
                f" {WAY_OUT}"
            )


def _intact_batch_behind(disk: Disk, damage: _Damage) -> int | None:
    segment = damage.segment
    rest = disk.read(segment.path, position=segment.size_bytes, length=_SEARCH_BYTES_MAX)
    at = rest.find(2, _MAGIC_AT)
    while at >= 0:
        start = at - _MAGIC_AT
        at = rest.find(2, at + 1)
        if len(rest) - start < HEADER_BYTES:
            return None
        try:
            header = read_header(rest, start)
        except CorruptBatch:
            continue
        is_later = header.base_offset >= segment.end_offset
        is_whole = header.size_bytes <= len(rest) - start
        if is_later and is_whole and is_intact(rest, start, header):
            return segment.size_bytes + start
    return None


def _cut_off(disk: Disk, damage: _Damage, segments: list[Segment], say: Say) -> None:
    """End the log where the damage begins, and drop the segments behind it."""
    at = segments.index(damage.segment)
    later = segments[at + 1 :]
    dropped = disk.size(damage.segment.path) - damage.segment.size_bytes
    dropped += sum(disk.size(segment.path) for segment in later)
    if later or not _is_blank(disk, damage.segment):
        say(f"{damage}: cut off {dropped} bytes that were never synced")
    damage.segment.end_scan()
    for segment in reversed(later):
        segment.remove()
    del segments[at + 1 :]


def _is_blank(disk: Disk, segment: Segment) -> bool:
    """Nothing but zeros behind it: preallocated, or never written."""
    position = segment.size_bytes
    while chunk := disk.read(segment.path, position=position, length=_CHUNK_BYTES):
        if chunk.count(0) != len(chunk):
            return False
        position += len(chunk)
    return True


def write_again(disk: Disk, segments: Sequence[Segment], recovery_point: int | None) -> None:
    """Write everything from the recovery point on again, as it is; nothing where none is known.

    The system may have taken pages for written whose sync failed: they are read back, but are not
    on the medium, and the next sync has nothing to do. Now it has.
    """
    if recovery_point is None:
        return
    offset = recovery_point
    for segment in segments:
        if segment.end_offset <= offset:
            continue
        position = segment.position_of(offset)
        while position < segment.size_bytes:
            length = min(_CHUNK_BYTES, segment.size_bytes - position)
            chunk = disk.read(segment.path, position=position, length=length)
            disk.write(segment.path, chunk, position=position)
            position += length


def _sync(disk: Disk, directory: str, segments: Sequence[Segment], synced_offset: int) -> None:
    """Sync the segments that may not be on the medium: none, after an orderly stop."""
    changed = [segment for segment in segments[:-1] if segment.finish()]
    changed += [segment for segment in segments if segment.end_offset > synced_offset]
    for path in dict.fromkeys(path for segment in changed for path in segment.unsynced_paths()):
        disk.sync(path)
    if changed:
        disk.sync_directory(directory)
