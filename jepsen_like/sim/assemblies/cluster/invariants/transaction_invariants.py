"""Transactions (T-*), judged from logs and from what producers and readers were told.

T-FEN   a producer that was fenced writes nothing: in every log, a producer's epochs never fall. Nor
        does it get the id back by naming the epoch that it had (KIP-360), and nobody fences the one
        that has the id
T-ONCE  a marker ends the transaction that it is of, and no other: what comes late or twice does
        nothing
T-LSO   a leader's last stable offset is where the first transaction begins that is open, or the
        marker of which is not below the high watermark; it never goes back in an epoch. Every
        replica knows which transactions are open in its log
T-READ  a reader of committed records is given those of transactions that have committed, and no
        others; it misses none
T-ALL   all of a transaction is committed or nothing, as its producer was told
T-OFF   so are the offsets of its groups

With transaction.version 2 (KIP-890) markers have a higher epoch than the records they end; before,
the same, and a late one cannot be told from a repetition. A partition whose ISR was lost is
excused, as everywhere (`partition_invariants`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from broker.broker import Broker
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.partition.partition import LeaderOf, Partition
from broker.transactions.transaction import EPOCH_BUMPS
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import Key, ShownPartitions, Watched
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from wire.batch import read_header, records_of
from wire.transaction_markers import read_marker

__all__ = ["Made", "TransactionInvariants"]


@dataclass(slots=True, eq=False)
class Made:
    """A transaction as its producer knows it."""

    transactional_id: str
    producer_epoch: int
    sent: set[bytes] = field(default_factory=set)
    acknowledgements: list[tuple[Key, int, bytes]] = field(default_factory=list)  # with the offset
    offset: tuple[str, int] | None = None  # of a group
    is_commit: bool = False  # it was asked to be committed
    is_told: bool = False  # how it ended: as asked

    def acknowledged(self, key: Key, values: Sequence[bytes], base_offset: int) -> None:
        self.acknowledgements += (
            (key, offset, value) for offset, value in enumerate(values, base_offset)
        )


class _Transactions(NamedTuple):
    """What a log up to some batch says of the transactions in it."""

    open: Mapping[int, int]  # by producer: where it began
    epochs: Mapping[int, int]  # by producer: the latest


_NONE = _Transactions(MappingProxyType({}), MappingProxyType({}))


def _after(entry: Entry, before: _Transactions, version: int) -> _Transactions:
    """Raises `Violation`: T-FEN and T-ONCE are seen where a batch is written."""
    header = read_header(entry.records)
    producer, epoch = header.producer_id, header.producer_epoch
    if producer < 0:
        return before
    known = before.epochs.get(producer, -1)
    marker = read_marker(entry.records, header)
    is_of_open = epoch == known and producer in before.open
    is_late = epoch < known or (is_of_open and version >= EPOCH_BUMPS)
    if marker is not None and is_late:
        told = f"a marker of {producer} in epoch {epoch}, {entry}, after {known}"
        raise Violation("T-ONCE", told)
    if epoch < known:
        raise Violation("T-FEN", f"{producer} wrote {entry} in epoch {epoch}, after {known}")
    opened = dict(before.open)
    if marker is not None:
        opened.pop(producer, None)
    elif header.is_transactional:
        opened.setdefault(producer, entry.base_offset)
    return _Transactions(opened, {**before.epochs, producer: epoch})


class _ReadLog:
    """The transactions of each log, batch by batch, over all nodes and all time."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._after: dict[Entry, _Transactions] = {}

    def after(self, last: Entry | None) -> _Transactions:
        unread: list[Entry] = []
        while last is not None and last not in self._after:
            unread.append(last)
            last = last.parent
        known = _NONE if last is None else self._after[last]
        for entry in reversed(unread):
            known = self._after[entry] = _after(entry, known, self._version)
        return known


def outcomes(entries: Sequence[Entry]) -> Iterator[tuple[Entry, bool | None]]:
    """Each batch of records that may be read: is it committed (or of no transaction), aborted, or
    is that open (None)?"""
    ends: dict[int, bool] = {}
    found: list[tuple[Entry, bool | None]] = []
    for entry in reversed(entries):
        header = read_header(entry.records)
        marker = read_marker(entry.records, header)
        if marker is not None:
            ends[marker.producer_id] = marker.is_commit
        elif not header.is_control:
            found.append((entry, ends.get(header.producer_id) if header.is_transactional else True))
    return reversed(found)


class TransactionInvariants:
    """Raises `Violation`."""

    def __init__(
        self, partitions: PartitionInvariants, fired: Callable[[str], None], *, version: int
    ) -> None:
        """`version` is the cluster's transaction.version."""
        self._partitions = partitions
        self._fired = fired
        self._made: dict[str, list[Made]] = {}  # by transactional id
        self._logs = _ReadLog(version)
        self._owners: dict[str, object] = {}  # by transactional id: to whom it was given last
        self._shown = ShownPartitions()
        self._stable: dict[tuple[int, Key], tuple[int, int]] = {}  # epoch and last stable offset
        self._reached: dict[tuple[int, Key], int] = {}  # the highest high watermark of a process

    # --- producers --------------------------------------------------------------------------

    def begins(self, transactional_id: str, producer_epoch: int) -> Made:
        made = Made(transactional_id, producer_epoch)
        self._made.setdefault(transactional_id, []).append(made)
        return made

    def owner(self, transactional_id: str) -> object:
        """To whom the id was given last; None: to nobody yet."""
        return self._owners.get(transactional_id)

    def gives(
        self, transactional_id: str, producer: object, *, owner: object, is_anew: bool
    ) -> None:
        """A producer has asked for the id when it was the `owner`'s, and was given it.

        Not `is_anew`: it named the epoch that it had, and gets it only if nobody else had it since.
        """
        if not is_anew and owner is not producer:
            raise Violation(
                "T-FEN", f"{transactional_id} is given to {producer}, which {owner} has fenced"
            )
        self._owners[transactional_id] = producer

    def fences(self, transactional_id: str, producer: object) -> None:
        """The end of its transaction, whose time is not up, is refused for good."""
        if self.owner(transactional_id) is producer and not self.has_forgotten:
            raise Violation(
                "T-FEN", f"{producer} is fenced, and nobody else was given {transactional_id}"
            )

    @property
    def has_forgotten(self) -> bool:
        """Have the decisions of coordinators been lost? Then nothing is promised any more."""
        return self._is_excused(TRANSACTIONS_TOPIC)

    def _is_excused(self, topic: str) -> bool:
        watched = self._partitions.named(f"{topic}-0")
        return watched is not None and bool(watched.excused)

    # --- logs -------------------------------------------------------------------------------

    def started(self, host: Host) -> None:
        self._shown.started(host)
        for place in [place for place in self._reached if place[0] == host.node_id]:
            del self._reached[place]

    def settled_broker(self, host: Host, broker: Broker) -> None:
        for partition, written in self._shown.changed(host, broker):
            self._look(host, partition, written)

    def _look(self, host: Host, partition: Partition, written: Content) -> None:
        role, log = partition.role, partition.open_log
        key = (partition.topic_id, partition.index)
        watched = self._partitions.watched[key]
        if watched.excused or self.has_forgotten or host.disk.log(partition.name).failed:
            return
        self._knows_open(host, partition, self._logs.after(written.last).open)
        place = (host.node_id, key)
        reached = max(log.high_watermark, min(self._reached.get(place, 0), log.end_offset))
        self._reached[place] = reached
        if not isinstance(role, LeaderOf):
            return
        first = self._first_unstable(written, log.high_watermark, log.high_watermark)
        # It may have followed somebody whose high watermark was lower: what it knows is certain.
        stable = (first, self._first_unstable(written, reached, log.high_watermark))
        is_known = log.high_watermark > log.start_offset and first >= log.start_offset
        if is_known and log.last_stable_offset not in stable:
            raise Violation(
                "T-LSO",
                f"{watched.name} of {host.node_id}: {log.last_stable_offset} is called stable,"
                f" {first} is, of {log.high_watermark}",
            )
        if first < log.high_watermark:
            self._fired("transaction_held_back")
        epoch, before = self._stable.get(place, (-1, 0))
        if epoch == role.leader_epoch and log.last_stable_offset < before:
            raise Violation(
                "T-LSO", f"{watched.name}: {log.last_stable_offset} is stable, after {before}"
            )
        self._stable[place] = role.leader_epoch, log.last_stable_offset

    def _first_unstable(self, written: Content, certain: int, high_watermark: int) -> int:
        """Markers below `certain` are not cut off."""
        opened = self._logs.after(written.last_below(certain)).open.values()
        return min((*opened, high_watermark))

    def _knows_open(self, host: Host, partition: Partition, opened: Mapping[int, int]) -> None:
        """Whoever is elected goes by what it knew as a follower."""
        log = partition.open_log
        known = {each.producer_id: each.open_since for each in log.producers.entries()}
        for producer in known.keys() | opened.keys():
            knows, is_so = known.get(producer, -1), opened.get(producer, -1)
            if knows != is_so and max(knows, is_so) >= log.start_offset:
                raise Violation(
                    "T-LSO",
                    f"{partition.name} of {host.node_id}: {producer} has a transaction since"
                    f" {is_so}, and {knows} is known",
                )

    # --- readers ----------------------------------------------------------------------------

    def has_read(self, key: Key, start: int, end: int, given: Mapping[int, bytes]) -> None:
        """A reader has gone from one offset to another, and was given these records."""
        watched = self._partitions.watched[key]
        if watched.excused or self.has_forgotten:
            return
        wanted: dict[int, bytes] = {}
        for entry, is_committed in outcomes(watched.exposed):
            if start < entry.next_offset and entry.base_offset < end and is_committed is not False:
                if is_committed is None:
                    raise Violation("T-READ", f"{watched.name}: {entry} was passed, and is open")
                wanted |= {
                    record.offset: record.value or b"" for record in records_of(entry.records)
                }
        wanted = {offset: value for offset, value in wanted.items() if start <= offset < end}
        if given != wanted:
            raise Violation(
                "T-READ",
                f"{watched.name}: of [{start},{end}) {sorted(given)} were given, and"
                f" {sorted(wanted)} are committed",
            )
        self._fired("committed_read")

    # --- the end ----------------------------------------------------------------------------

    def check_end(
        self, written_of: Callable[[Watched], Content], offset_of: Callable[[str], int | None]
    ) -> None:
        """The cluster is quiet: every transaction has ended that has not been let go of."""
        if self.has_forgotten:
            return
        committed: dict[bytes, bool] = {}
        for watched in self._present():
            for entry, is_committed in outcomes(written_of(watched).entries):
                if is_committed is None:
                    if entry.base_offset < watched.deletable.start_offset:
                        continue  # retention looks at the high watermark, as Kafka's
                    raise Violation("T-ALL", f"{watched.name}: {entry} is open for ever")
                committed |= dict.fromkeys(
                    (record.value or b"" for record in records_of(entry.records)), is_committed
                )
        for transactions in self._made.values():
            self._check_offsets(
                [(made, self._is_committed(made, committed)) for made in transactions], offset_of
            )

    def _present(self) -> Iterator[Watched]:
        for watched in self._partitions.watched.values():
            if watched.state is not None and not watched.excused:
                yield watched

    def _is_committed(self, made: Made, committed: Mapping[bytes, bool]) -> bool | None:
        """None: nothing is left of it that would tell."""
        found = {committed[value] for value in made.sent if value in committed}
        if len(found) > 1:
            raise Violation("T-ALL", f"some of {made} is committed, and some is not")
        ended = next(iter(found), None)
        if ended and not made.is_commit:
            raise Violation("T-ALL", f"{made} is committed, though nobody asked for that")
        if made.is_told and ended is not None and ended is not made.is_commit:
            raise Violation("T-ALL", f"{made} ended otherwise")
        for key, offset, value in made.acknowledgements:
            watched = self._partitions.watched[key]
            is_there = value in committed or offset < watched.deletable.start_offset
            if not is_there and not watched.excused:
                raise Violation("T-ALL", f"{value!r} of {made} is gone")
        return made.is_commit if made.is_told else ended

    def _check_offsets(
        self,
        transactions: Sequence[tuple[Made, bool | None]],
        offset_of: Callable[[str], int | None],
    ) -> None:
        if self._is_excused(OFFSETS_TOPIC):
            return
        allowed: dict[str, set[int | None]] = {}
        for made, is_committed in sorted(transactions, key=lambda each: each[0].producer_epoch):
            if made.offset is None:
                continue
            group, offset = made.offset
            may_be = allowed.setdefault(group, {None})
            if is_committed is False or not made.is_commit:
                continue
            if is_committed:
                may_be.clear()
            may_be.add(offset)
        for group, offsets in allowed.items():
            known = offset_of(group)
            if known not in offsets:
                raise Violation("T-OFF", f"{group} is at {known}, and {offsets} were committed")
