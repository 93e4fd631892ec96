"""Invariants of partition logs (D-*), which hold whatever was injected.

Judged from what lies on disks, what leaders expose (the high watermark) and what the metadata log
says, not from what brokers believe of each other. Every check looks at one replica that an event
touched, or at one partition that a commit changed.

Two ids are seen where batches are written (logs/logtree.py), whoever writes them: D-ONE, one batch
for each epoch and offset, and D-DIV, one prefix for each of those.

Known exceptions. Kafka acknowledges before it syncs, so a power cut takes back what was promised:

    lossy   a replica that lost written records is no witness of anything until it has left the ISR
            and come back. If it is elected before that, its partition is *excused* from then on;
            with ELR (KIP-966) only once as many have lost as min.insync.replicas asks for.
    unclean a partition that elects from outside ISR and ELR is excused from then on.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from broker.broker import Broker
from broker.partition.isr import maximal_isr
from broker.partition.local_log import LocalLog
from broker.partition.partition import LeaderOf, Partition
from controller.metadata.configs import min_insync_replicas
from controller.metadata.partitions import NO_LEADER, PartitionState
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import (
    TOPIC,
    Acknowledged,
    Key,
    ShownPartitions,
    Watched,
    add_epochs,
    within,
)
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.core.effects import Effect, EpochStart, Trace
from wire.batch import records_of

__all__ = ["PartitionInvariants"]


@dataclass(slots=True)
class _Seen:
    """What was last seen of one replica in one process."""

    leader_epoch: int | None = None  # that it leads
    followed_epoch: int = -1  # that it leads or follows
    high_watermark: int = 0
    had_enough: bool = False  # in sync, by the end of its last turn in this leader epoch
    last: Entry | None = None
    epochs: list[EpochStart] = field(default_factory=list)  # of what was written up to `last`
    log: LocalLog | None = None
    start_offset: int = 0  # of `log`
    was_empty: bool = True


class PartitionInvariants:
    """Raises `Violation`."""

    def __init__(
        self,
        *,
        moment: Callable[[], int],
        hosts: Mapping[int, Host],
        broker_of: Callable[[int], Broker | None],
        metadata: MetadataInvariants,
    ) -> None:
        """`moment` tells the number of the event; `broker_of` None for a broker that is down."""
        self.watched: dict[Key, Watched] = {}
        self._moment = moment
        self._hosts = hosts
        self._broker_of = broker_of
        self._metadata = metadata
        self._seen: dict[tuple[int, Key], _Seen] = {}  # by node and partition
        self._held: dict[tuple[int, Key], Entry | None] = {}  # the last that a node had written
        self._shown = ShownPartitions()
        self._asked_min_isr: set[int] = set()
        self._effects: Sequence[Effect] = ()  # of the turn that is looked at
        metadata.changed = self.metadata_changed

    def asks_min_isr(self, value: int) -> None:
        """Somebody is about to ask for it, of the client's topic."""
        self._asked_min_isr.add(value)

    def named(self, name: str) -> Watched | None:
        """The partition that has this log, unless it is deleted."""
        present = (each for each in self.watched.values() if each.state is not None)
        return next((watched for watched in present if watched.name == name), None)

    # --- the metadata ---------------------------------------------------------------------

    def metadata_changed(
        self, key: Key, topic: str, was: PartitionState | None, now: PartitionState | None
    ) -> None:
        """The quorum has committed a change of one partition."""
        watched = self.watched.setdefault(key, Watched(f"{topic}-{key[1]}", now))
        watched.state = now
        if now is None:
            return
        before = () if was is None else was.isr
        for member in now.isr:
            if member not in before and not self._is_unregistered_since_loss(watched, member):
                watched.joined_at[member] = self._moment()
        if now.leader != NO_LEADER and (was is None or was.leader_epoch != now.leader_epoch):
            self._elected(watched, was, now)
        self._members_hold(watched)
        self._counts_on_members(key, watched)

    def _elected(self, watched: Watched, was: PartitionState | None, now: PartitionState) -> None:
        """Is the new leader known to have everything that was exposed?"""
        if was is not None and now.leader not in (*was.isr, *was.eligible_leader_replicas):
            watched.excused = f"unclean election of {now.leader}"
        lossy = [node for node in now.replicas if self._has_lost(watched, node)]
        has_elr = self._metadata.image.has_eligible_leaders
        enough = self._min_isr(watched, now) if has_elr else 1
        if now.leader in lossy and len(lossy) >= enough:
            watched.excused = f"{now.leader} is elected after it lost records"

    def _has_lost(self, watched: Watched, node: int) -> bool:
        """Has the replica come up with less than it had, and not joined the ISR since?"""
        return watched.lossy_at.get(node, -1) > watched.joined_at.get(node, -1)

    def _min_isr(self, watched: Watched, state: PartitionState) -> int:
        """The fewest by which anything of it may have been exposed."""
        topic = watched.name.rpartition("-")[0]
        now = min_insync_replicas(self._metadata.image, topic)
        asked = self._asked_min_isr if topic == TOPIC else ()
        return min(now, len(state.replicas), *asked)

    def _members_hold(self, watched: Watched) -> None:
        """D-THW: every member of ISR and ELR that is up holds all that was ever exposed.

        For one that has just joined this is KIP-903: it has joined with the log that it has now,
        not with the one that it had in an earlier life.
        """
        state = watched.state
        if state is None or watched.excused or not watched.exposed:
            return
        last = watched.exposed[-1]
        for member in (*state.isr, *state.eligible_leader_replicas):
            if self._broker_of(member) is None or self._may_lack(watched, member):
                continue
            written = self._written(member, watched.name)
            if written is not None and not written.holds_or_starts_behind(last):
                raise Violation(
                    "D-THW",
                    f"{watched.name}: {last} was exposed, {member} of {state.isr} ends at"
                    f" {written.end_offset} in {written.last}",
                )

    def _may_lack(self, watched: Watched, member: int) -> bool:
        return self._has_lost(watched, member) or self._is_unregistered_since_loss(watched, member)

    def _is_unregistered_since_loss(self, watched: Watched, member: int) -> bool:
        """Then nobody can know yet that it is not what it was."""
        lossy_at = watched.lossy_at.get(member, -1)
        return lossy_at > self._metadata.registered_at.get(member, -1)

    def _written(self, node: int, name: str) -> Content | None:
        """None while a process has not opened the log yet."""
        stored = self._hosts[node].disk.logs.get(name)
        return None if stored is None else stored.written

    # --- processes ------------------------------------------------------------------------

    def started(self, host: Host) -> None:
        """A new process: is all there that any before had written?"""
        for (node, key), last in self._held.items():
            if node != host.node_id or last is None:
                continue
            watched = self.watched[key]
            written = self._written(node, watched.name)
            if written is None or not written.holds(last):
                watched.lossy_at[node] = self._moment()
                self._held[(node, key)] = None if written is None else written.last
        self._shown.started(host)
        self._seen = {place: seen for place, seen in self._seen.items() if place[0] != host.node_id}

    def settled(self, host: Host, broker: Broker, effects: Sequence[Effect]) -> None:
        """The broker has had a turn, in which it asked for `effects`."""
        self._effects = effects
        for partition, written in self._shown.changed(host, broker):
            self._look(host, partition, written)

    def _look(self, host: Host, partition: Partition, written: Content) -> None:
        key = (partition.topic_id, partition.index)
        watched = self.watched[key]
        seen = self._seen.get((host.node_id, key))
        is_new = seen is None
        if seen is None:
            seen = self._seen[(host.node_id, key)] = _Seen(last=written.last)
        role = partition.role
        led_epoch = role.leader_epoch if isinstance(role, LeaderOf) else None
        if is_new or written.last is not seen.last:
            self._held[(host.node_id, key)] = written.last
            self._log_changed(host, partition, watched, seen, is_new=is_new)
        seen.followed_epoch = partition.leader_epoch
        led = self._led_meanwhile(partition)
        for epoch in led:
            self._metadata.one_leader_an_epoch(key, epoch, host.node_id)
        has_led = bool(led) or seen.leader_epoch is not None  # when the turn began
        if led_epoch != seen.leader_epoch:
            seen.leader_epoch = led_epoch
            seen.high_watermark = 0
            seen.had_enough = False
            if led_epoch is not None:
                self._metadata.one_leader_an_epoch(key, led_epoch, host.node_id)
        high_watermark = partition.open_log.high_watermark
        if high_watermark != seen.high_watermark and not watched.excused:
            self._high_watermark_changed(partition, watched, seen, written, has_led=has_led)
        seen.high_watermark = high_watermark
        if partition.open_log.start_offset != seen.start_offset:
            self._start_changed(partition, watched, seen)
        seen.was_empty = partition.open_log.start_offset == partition.open_log.end_offset
        if isinstance(role, LeaderOf):
            seen.had_enough = _has_enough(partition, role)
            self._counts_on_members(key, watched)

    def _led_meanwhile(self, partition: Partition) -> list[int]:
        """The epochs in which it was told in this turn to lead; it may not by its end."""
        return [
            cast(int, told["leader_epoch"])
            for effect in self._effects
            if isinstance(effect, Trace) and effect.event == "partition-role"
            for told in (dict(effect.fields),)
            if told["partition"] == partition.name and told["role"] == LeaderOf.__name__
        ]

    def _start_changed(self, partition: Partition, watched: Watched, seen: _Seen) -> None:
        """D-LSO: a log starts where somebody has asked for, within what was exposed, and goes back
        only with another process, that may not know what was not synced, or to the beginning of the
        batch in which an empty log starts."""
        log = partition.open_log
        before, seen.start_offset = seen.start_offset, log.start_offset
        is_same, seen.log = log is seen.log, log
        if watched.excused:
            return
        if is_same and not seen.was_empty and log.start_offset < before:
            self._starts_wrongly(partition, f"it started at {before}")
        if log.start_offset > _end(watched.exposed):
            self._starts_wrongly(partition, f"{_end(watched.exposed)} were exposed")
        if not watched.deletable.allows(log.start_offset):
            self._starts_wrongly(partition, f"{watched.deletable} were deleted")

    def _starts_wrongly(self, partition: Partition, why: str) -> None:
        raise Violation(
            "D-LSO",
            f"{partition.name} of {partition.node_id} starts at {partition.open_log.start_offset}:"
            f" {why}",
        )

    # --- the log --------------------------------------------------------------------------

    def _log_changed(
        self, host: Host, partition: Partition, watched: Watched, seen: _Seen, *, is_new: bool
    ) -> None:
        written = host.disk.log(partition.name).written
        before, seen.last = seen.last, written.last
        if host.disk.log(partition.name).failed:
            return
        has_grown = before is None or (written.last is not None and written.holds(before))
        if is_new or not has_grown:
            seen.epochs = list(written.epochs())
        else:
            add_epochs(seen.epochs, written, before)
        self._knows_its_epochs(partition, written, seen.epochs, watched.deletable.start_offset)
        if has_grown and not is_new and seen.followed_epoch == partition.leader_epoch:
            self._follows_its_leader(partition, written)
        elif not has_grown:
            self._members_hold(watched)

    def _knows_its_epochs(
        self, partition: Partition, written: Content, epochs: list[EpochStart], deletable: int
    ) -> None:
        """D-EPC: the broker's view of a log is the log: its end, and the epochs of its batches.

        A leader knows one more, which has not written. A log opened in this turn may be trimmed.
        Before `deletable`, where a log may start, records that were deleted may have come back with
        a power failure, and the epochs that were forgotten with them have not.
        """
        log = partition.open_log
        known = [entry for entry in log.epochs.entries if entry.start_offset < log.end_offset]
        start_offset = max(log.start_offset, epochs[0].start_offset if epochs else 0)
        if known and known[0].start_offset <= deletable:
            start_offset = max(start_offset, known[0].start_offset)
        known = within(known, start_offset, log.end_offset)
        epochs = within(epochs, start_offset, log.end_offset)
        if (log.end_offset, known) != (written.end_offset, epochs):
            raise Violation(
                "D-EPC",
                f"{partition.name} of {partition.node_id}: {known} up to {log.end_offset} for the"
                f" broker, {epochs} up to {written.end_offset} on the disk",
            )

    def _follows_its_leader(self, partition: Partition, written: Content) -> None:
        """D-PRE: what a follower has after it appended is a prefix of its leader's log.

        Not what it appended earlier in the turn in which it heard of this leader: it led itself, or
        followed another. Nor what lies before the start of the leader's log: of an epoch that is
        older than all of its own, a leader knows only that it ended there (KIP-101).
        """
        if isinstance(partition.role, LeaderOf) or partition.leader_id == NO_LEADER:
            return
        leader = self._broker_of(partition.leader_id)
        if leader is None or written.last is None:
            return
        theirs = leader.replicas.find(partition.topic, partition.topic_id, partition.index)
        if not isinstance(theirs, Partition) or not isinstance(theirs.role, LeaderOf):
            return
        log = self._hosts[partition.leader_id].disk.log(partition.name)
        if theirs.role.leader_epoch != partition.leader_epoch or log.failed:
            return
        if written.last.next_offset <= theirs.open_log.start_offset:
            return
        if not log.written.holds(written.last):
            raise Violation(
                "D-PRE",
                f"{partition.name}: {partition.node_id} has {written.last}, its leader"
                f" {partition.leader_id} of epoch {partition.leader_epoch} {log.written.last}",
            )

    # --- the high watermark ---------------------------------------------------------------

    def _high_watermark_changed(
        self,
        partition: Partition,
        watched: Watched,
        seen: _Seen,
        written: Content,
        *,
        has_led: bool,
    ) -> None:
        high_watermark, role = partition.open_log.high_watermark, partition.role
        if isinstance(role, LeaderOf) and high_watermark < seen.high_watermark:
            raise Violation(
                "D-HWE",
                f"{watched.name}: leader {partition.node_id} of epoch {role.leader_epoch} goes"
                f" back from {seen.high_watermark} to {high_watermark}",
            )
        if high_watermark > _end(watched.exposed):
            if isinstance(role, LeaderOf) and not seen.had_enough:
                self._exposes_enough(partition, role)
            if has_led or isinstance(role, LeaderOf):
                self._exposes(partition, watched, written)
        self._is_exposed(partition, watched, written)

    def _exposes_enough(self, partition: Partition, role: LeaderOf) -> None:
        """D-MIN: nothing is exposed while fewer than min.insync.replicas are in sync.

        Neither when the turn began nor in it nor at its end: others may join the ISR and leave it
        within one turn.
        """
        if _has_enough(partition, role):
            return
        for effect in self._effects:
            if isinstance(effect, Trace) and effect.event == "isr":
                told = dict(effect.fields)
                members = cast(Sequence[int], told["members"])
                is_ours = told["partition"] == partition.name
                if is_ours and len(members) >= _enough(partition, role):
                    return
        raise Violation(
            "D-MIN",
            f"{partition.name}: {partition.node_id} exposes up to"
            f" {partition.open_log.high_watermark} with ISR {role.isr.members}",
        )

    def _exposes(self, partition: Partition, watched: Watched, written: Content) -> None:
        """By a leader, or one that has led until its turn told it otherwise.

        What its log has let go of nobody reads there: D-LSO judges where a log may start.
        """
        start_offset = partition.open_log.start_offset
        is_deleted = start_offset >= _end(watched.exposed)
        if watched.exposed and not is_deleted and not written.holds(watched.exposed[-1]):
            raise Violation(
                "D-DIV",
                f"{watched.name}: leader {partition.node_id} exposes"
                f" {written.last} without {watched.exposed[-1]}",
            )
        fresh: list[Entry] = []
        last = written.last_below(partition.open_log.high_watermark)
        while last is not None and last.index >= len(watched.exposed):
            last.is_public = True  # an answer with it may be on its way when its only disk is lost
            fresh.append(last)
            last = last.parent
        watched.exposed += reversed(fresh)
        self._members_hold(watched)

    def _is_exposed(self, partition: Partition, watched: Watched, written: Content) -> None:
        """D-DIV: below its high watermark, every replica has what all others have there.

        A power cut may also undo a truncation, which brings back what was cut off.
        """
        log = partition.open_log
        last = written.last_below(log.high_watermark)
        if last is None or self._may_lack(watched, partition.node_id):
            return
        if last.next_offset <= log.start_offset:
            return  # it has let go of that, as its leader has of what was there
        exposed = watched.exposed
        if last.index >= len(exposed) or exposed[last.index] is not last:
            raise Violation(
                "D-DIV",
                f"{watched.name}: {partition.node_id} has {last} below its high watermark"
                f" {partition.open_log.high_watermark}, where there was"
                f" {exposed[last.index] if last.index < len(exposed) else 'nothing'}",
            )

    def _counts_on_members(self, key: Key, watched: Watched) -> None:
        """D-MAX: the leader of the current epoch counts on every member of the controller's ISR.

        Not on eligible leader replicas: while there are any, the high watermark stands still.
        """
        state = watched.state
        if state is None or state.leader == NO_LEADER:
            return
        broker = self._broker_of(state.leader)
        if broker is None:
            return
        partition = broker.replicas.find("", *key)
        role = partition.role if isinstance(partition, Partition) else None
        if not isinstance(role, LeaderOf) or role.leader_epoch != state.leader_epoch:
            return
        counted = set(maximal_isr(role.isr))
        if not set(state.isr) <= counted:
            raise Violation(
                "D-MAX",
                f"{watched.name}: {state.leader} counts on {sorted(counted)}, ISR is {state.isr}",
            )

    # --- what clients are told ------------------------------------------------------------

    def acknowledged(self, key: Key, batch: Acknowledged) -> None:
        watched = self.watched[key]
        watched.acknowledgements += 1
        if not watched.excused:
            watched.acknowledged.append(batch)

    def refused_sequence(self, key: Key, sequence: int) -> None:
        """H-SEQ: a producer whose batches were all acknowledged up to the one that it sends is not
        told that this one is out of order: a leader has what was acknowledged, and knows again the
        last five. Not where records may have been let go of, with what they said of producers."""
        watched = self.watched[key]
        if not watched.excused and not watched.deletable.start_offset:
            raise Violation("H-SEQ", f"{watched.name}: sequence {sequence} is out of order")

    def has_read(self, key: Key, offset: int, value: bytes) -> None:
        """D-ONE: whoever reads an offset, whenever and of whomever, reads the same value: that
        which lay there below a high watermark of this very topic, not of one of the same name."""
        watched = self.watched[key]
        if watched.excused:
            return
        known = watched.read.get(offset)
        if known is None:
            known = _exposed_at(watched.exposed, offset)
            watched.read[offset] = value
        if known != value:
            raise Violation(
                "D-ONE", f"{watched.name} offset {offset}: read {value!r}, not {known!r}"
            )

    def refused_position(self, key: Key, offset: int) -> None:
        """D-HWE: what a consumer has read never lies beyond the end of a later leader's log. It
        may lie before its start, if that was asked for."""
        watched = self.watched[key]
        if offset < watched.deletable.start_offset:
            return
        if not watched.excused and watched.state is not None:
            raise Violation("D-HWE", f"{watched.name}: {offset} was read up to, now out of range")


def _has_enough(partition: Partition, role: LeaderOf) -> bool:
    return len(role.isr.members) >= _enough(partition, role)


def _enough(partition: Partition, role: LeaderOf) -> int:
    return min(partition.settings.min_insync_replicas, len(role.replicas))


def _exposed_at(exposed: list[Entry], offset: int) -> bytes | None:
    """The value of one record; None if none was exposed there."""
    at = bisect_right(exposed, offset, key=lambda entry: entry.next_offset)
    records = records_of(exposed[at].records) if at < len(exposed) else ()
    return next((record.value for record in records if record.offset == offset), None)


def _end(exposed: list[Entry]) -> int:
    return exposed[-1].next_offset if exposed else 0
