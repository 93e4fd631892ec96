"""Invariants of the metadata that the quorum commits, and of the images that nodes show (M-*).

The committed log is replayed here, change by change, as the quorum's leader commits it: what nodes
show can then be compared with it, and each change of a partition be judged when it happens.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from controller.decisions.failover import COLUMNS_FROM
from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import CommittedBatch, decode_changes, offsets_of, record_count
from controller.metadata.configs import UNCLEAN_ELECTION, min_insync_replicas, topic_value
from controller.metadata.delta import MetadataDelta
from controller.metadata.describe import describe, describe_broker
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import NO_LEADER, RECOVERING, PartitionState, PartitionTable
from controller.metadata.snapshot import SnapshotLoad
from jepsen_like.sim.assemblies.cluster.invariants.watched import Key
from jepsen_like.sim.assemblies.quorum.quorum_view import History
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.violation import Violation
from quorum.core.types import OffsetAndEpoch

__all__ = ["MetadataInvariants", "PartitionChanged", "say_the_same"]

Rows = npt.NDArray[np.intp]
_COLUMNS = ("leader", "leader_epoch", "partition_epoch", "isr", "recovering", "replicas")
# (key, name of the topic, before, after); after is None if the partition is gone
PartitionChanged = Callable[[Key, str, PartitionState | None, PartitionState | None], None]


class MetadataInvariants:
    """Raises `Violation`. `changed` hears of every change of a partition, in order."""

    def __init__(
        self, moment: Callable[[], int], fired: Callable[[str], None] = lambda _kind: None
    ) -> None:
        """`moment` tells the number of the event that is going on; `fired` counts."""
        self._moment = moment
        self._fired = fired
        self.image = MetadataImage()
        self.changed: PartitionChanged = lambda _key, _name, _was, _now: None
        self.registered_at: dict[int, int] = {}  # by broker: the moment of its last registration
        self._images: dict[int, MetadataImage] = {0: self.image}  # by the next offset
        self._shown: dict[tuple[int, str], MetadataImage] = {}  # by node and component
        self._leaders: dict[tuple[Key, int], int] = {}  # by partition and leader epoch
        self._broker_epochs: dict[int, int] = {}
        self._replayed = 0  # entries of the quorum's history
        self._right: dict[OffsetAndEpoch, bytes] = {}  # the last snapshot that was found right

    # --- the committed log ----------------------------------------------------------------

    def committed(self, history: Sequence[Entry]) -> None:
        """Replay what the quorum has committed since the last time."""
        while self._replayed < len(history):
            entry = history[self._replayed]
            self._replayed += 1
            try:
                for batch in decode_changes(entry.records):
                    self._replay(batch)
            finally:
                self._images[entry.next_offset] = self.image

    def _replay(self, batch: CommittedBatch) -> None:
        """Change by change: decisions share batches, and each of them has made its own state."""
        before = image = self.image
        steps: list[tuple[MetadataImage, MetadataDelta]] = []
        for offset, change in offsets_of(batch.changes, end_offset=batch.next_offset):
            end = offset + record_count((change,))
            single = batch._replace(changes=(change,), base_offset=offset, next_offset=end)
            image, delta = apply_with_delta(image, single)
            steps.append((image, delta))
        changed: set[Key] = set()
        violations: list[Violation] = []
        for after, delta in steps:  # all of the batch, whatever it has violated
            try:
                changed.update(self._step(after, delta))
            except Violation as violation:
                violations.append(violation)
        if violations:
            raise violations[0]
        for topic_id, index in sorted(changed):
            self._is_sound(topic_id, index)
        if len(changed) >= COLUMNS_FROM and self._shrunk(before, changed) >= COLUMNS_FROM:
            self._fired("decided_in_columns")
        if any(delta.brokers_changed for _, delta in steps):
            self._are_fit()
            self._have_left_directories(before)

    def _shrunk(self, before: MetadataImage, changed: set[Key]) -> int:
        """Of how many partitions has somebody left the ISR?"""
        pairs = ((before.partition(*key), self.image.partition(*key)) for key in changed)
        return sum(bool(was and now and set(was.isr) - set(now.isr)) for was, now in pairs)

    def _step(self, after: MetadataImage, delta: MetadataDelta) -> list[Key]:
        """Returns the partitions that have changed."""
        before, self.image = self.image, after
        for broker_id in delta.brokers_changed:
            self._broker_changed(broker_id, before.brokers.get(broker_id))
        for topic in delta.topics_deleted:
            for index, row in topic.partitions():
                was = before.partitions.state(row)
                self.changed((topic.id, index), topic.name, was, None)
        places = map(after.partitions.place, delta.rows_changed.tolist())
        changed = [place for place in places if place is not None]
        for topic_id, index in changed:
            self._partition_changed(before, topic_id, index)
        return changed

    def _partition_changed(self, before: MetadataImage, topic_id: UUID, index: int) -> None:
        now, was = self.image.partition(topic_id, index), before.partition(topic_id, index)
        assert now is not None, (topic_id, index)
        name = self.image.topics.by_id[topic_id].name
        self.one_leader_an_epoch((topic_id, index), now.leader_epoch, now.leader)
        if was is not None:
            _epochs_grow(name, index, was, now)
            _move_is_done(name, index, was, now)
            self._may_lead(name, index, was, now)
        self.changed((topic_id, index), name, was, now)

    def _may_lead(self, name: str, index: int, was: PartitionState, now: PartitionState) -> None:
        """M-UCL: nobody from outside ISR and ELR leads unless the topic's setting allows it, or
        (KIP-966) nobody was left in either, and it was the last of them."""
        if now.leader != was.leader and not self._is_online(now, now.leader):
            raise Violation("M-DIR", f"{name}-{index}: {was} becomes {now}: its directory failed")
        is_clean = now.leader in (NO_LEADER, *was.isr, *was.eligible_leader_replicas)
        if is_clean or now.leader_epoch == was.leader_epoch or now.isr != (now.leader,):
            return
        is_last_known = not was.isr and now.leader in was.last_known_elr
        is_allowed = topic_value(self.image, name, UNCLEAN_ELECTION) == "true"
        if not is_allowed and not is_last_known:
            raise Violation("M-UCL", f"{name}-{index}: {was} becomes {now}")

    def _is_sound(self, topic_id: UUID, index: int) -> None:
        """At the end of a batch: within a decision, not all that belongs together may be there."""
        topic, state = self.image.topics.by_id.get(topic_id), self.image.partition(topic_id, index)
        if topic is not None and state is not None:
            self._is_well_formed(topic.name, index, state)
            self._is_fit(topic.name, index, state)

    def one_leader_an_epoch(self, key: Key, epoch: int, leader: int) -> None:
        """M-1L: a leader epoch of a partition has one leader, ever.

        For what is committed, and for what brokers take themselves for.
        """
        if leader == NO_LEADER:
            return
        known = self._leaders.setdefault((key, epoch), leader)
        if known != leader:
            raise Violation("M-1L", f"{key[1]} of {key[0]}: epoch {epoch} has {known} and {leader}")

    def _is_well_formed(self, name: str, index: int, state: PartitionState) -> None:
        """M-SUB, M-LI: ISR and ELR are parts of the replicas, apart, and the leader is in the ISR.
        M-REC: a leader that recovers is alone in it (KIP-704).

        Without ELR an ISR is never empty; with it, there is none beside a large enough ISR.
        """
        isr, elr = set(state.isr), set(state.eligible_leader_replicas)
        if not isr <= set(state.replicas) or not elr <= set(state.replicas) or isr & elr:
            raise Violation("M-SUB", f"{name}-{index}: {state}")
        has_elr = self.image.has_eligible_leaders
        if not isr and not has_elr:
            raise Violation("M-SUB", f"{name}-{index}: the ISR is empty: {state}")
        enough = min_insync_replicas(self.image, name, {})
        if elr and (not has_elr or len(isr) >= enough):
            raise Violation("M-SUB", f"{name}-{index}: ELR beside an ISR of {enough}: {state}")
        if state.leader != NO_LEADER and state.leader not in isr:
            raise Violation("M-LI", f"{name}-{index}: the leader is not in sync: {state}")
        if state.leader_recovery_state == RECOVERING and len(isr) > 1:
            raise Violation("M-REC", f"{name}-{index}: others than the leader recover: {state}")

    def _is_fit(self, name: str, index: int, state: PartitionState) -> None:
        """M-FEN: nobody who is fenced or shutting down leads, or is in an ISR with others.

        A broker in a controlled shutdown stays the last member if there is no other to lead.
        """
        unfit = [member for member in state.isr if not self.image.is_active(member)]
        if state.leader in unfit or (unfit and len(state.isr) > 1):
            raise Violation("M-FEN", f"{name}-{index}: {unfit} must not be in sync: {state}")

    def _are_fit(self) -> None:
        for topic in self.image.topics.by_id.values():
            for index, row in topic.partitions():
                self._is_fit(topic.name, index, self.image.partitions.state(row))

    def _have_left_directories(self, before: MetadataImage) -> None:
        """M-DIR: when a directory is recorded as failed, no replica in it leads, nor is it in an
        ISR with others (KIP-858)."""
        for broker_id, now in self.image.brokers.items():
            was = before.brokers.get(broker_id)
            if was is None or was.epoch != now.epoch or set(was.log_dirs) <= set(now.log_dirs):
                continue
            for topic_id, index, state in self.image.partitions_with(broker_id):
                is_in_sync = broker_id in state.isr and len(state.isr) > 1
                if self._is_online(state, broker_id) or not (
                    is_in_sync or state.leader == broker_id
                ):
                    continue
                name = self.image.topics.by_id[topic_id].name
                raise Violation("M-DIR", f"{name}-{index}: a directory has failed: {state}")

    def _is_online(self, state: PartitionState, member: int) -> bool:
        """Is the directory of this replica online, as far as the metadata knows?"""
        broker = self.image.brokers.get(member)
        if broker is None or not state.directories or member not in state.replicas:
            return True
        return broker.has_online(state.directories[state.replicas.index(member)])

    def _broker_changed(self, broker_id: int, was: BrokerImage | None) -> None:
        """M-BE: the epoch of a broker id grows with every new process, and never falls."""
        now = self.image.brokers.get(broker_id)
        if now is None:
            return
        known = self._broker_epochs.get(broker_id, -1)
        if now.epoch < known or (
            was is not None and now.incarnation_id != was.incarnation_id and now.epoch == known
        ):
            raise Violation("M-BE", f"broker {broker_id}: epoch {known} becomes {now.epoch}")
        if now.epoch != known:
            self.registered_at[broker_id] = self._moment()
        self._broker_epochs[broker_id] = now.epoch

    def images_between(self, first: int, last: int) -> Iterator[MetadataImage]:
        """As of every offset of these at which a batch ends: what a node may have shown."""
        return (image for offset, image in self._images.items() if first <= offset <= last)

    # --- what nodes show ------------------------------------------------------------------

    def shows(self, node: int, what: str, image: MetadataImage, next_offset: int) -> None:
        """M-UNC: a node shows the committed metadata, as of some offset, and nothing else."""
        if self._shown.get((node, what)) is image:
            return
        self._shown[(node, what)] = image
        expected = self._images.get(next_offset)
        if expected is None:
            raise Violation("M-UNC", f"{what} of {node} shows {next_offset}: not committed")
        if not say_the_same(image, expected.stable):
            raise Violation("M-UNC", f"{what} of {node} shows another image at {next_offset}")

    def says_state(self, content: bytes, end: OffsetAndEpoch, _history: History) -> bool:
        """R-SS: a snapshot is the image of the committed log up to its end.

        Most nodes write the same bytes, which are looked at once.
        """
        if self._right.get(end) == content:
            return True
        load = SnapshotLoad()
        load.take(content)
        expected = self._images.get(end.offset)
        is_right = expected is not None and say_the_same(load.finish(end), expected.stable)
        if is_right:
            self._right[end] = content
        return is_right


def _epochs_grow(name: str, index: int, was: PartitionState, now: PartitionState) -> None:
    """M-PE: every change raises the partition epoch, every change of leader the leader epoch."""
    if now != was and now.partition_epoch <= was.partition_epoch:
        raise Violation("M-PE", f"{name}-{index}: {was} becomes {now}")
    is_same_leader = now.leader == was.leader
    if now.leader_epoch < was.leader_epoch or (
        not is_same_leader and now.leader_epoch == was.leader_epoch
    ):
        raise Violation("M-PE", f"{name}-{index}: leader epoch of {was} becomes that of {now}")


def _move_is_done(name: str, index: int, was: PartitionState, now: PartitionState) -> None:
    """M-MOV: when a reassignment has ended, all that are replicas then are in sync.

    Unless it was cancelled, which goes back to the replicas of its beginning.
    """
    if now.adding_replicas or now.removing_replicas:
        return
    replicas = set(now.replicas)
    was_moving = bool(was.adding_replicas or was.removing_replicas)
    is_cancelled = replicas == set(was.replicas) - set(was.adding_replicas)
    if is_cancelled and (was_moving or replicas == set(was.replicas)):
        return
    if not replicas <= set(now.isr):
        raise Violation("M-MOV", f"{name}-{index}: {was} becomes {now}")


def say_the_same(one: MetadataImage, other: MetadataImage) -> bool:
    """Compare the images of two nodes, each of which was built by the node itself.

    Column by column, which is fast; where that says no, all that can be said of both decides."""
    return _are_alike(one, other) or _said(one) == _said(other)


def _are_alike(one: MetadataImage, other: MetadataImage) -> bool:
    """A node that has loaded a snapshot keeps its partitions in other rows."""
    topics, others = one.topics.by_name, other.topics.by_name
    if (
        one._replace(at=other.at, topics=other.topics, partitions=other.partitions) != other
        or topics.keys() != others.keys()
        or not len(one.partitions.chunks) == len(other.partitions.chunks) <= 1
    ):
        return False
    pairs = [(topic, others[name]) for name, topic in topics.items()]
    if any(its.id != another.id or len(its.rows) != len(another.rows) for its, another in pairs):
        return False
    return not pairs or _same_rows(
        one.partitions,
        np.concatenate([its.rows for its, _ in pairs]),
        other.partitions,
        np.concatenate([another.rows for _, another in pairs]),
    )


def _same_rows(one: PartitionTable, its: Rows, other: PartitionTable, others: Rows) -> bool:
    """`its` and `others`: the rows of the same partitions, in the same order."""
    chunk, against = one.chunks[0], other.chunks[0]
    if chunk.side or against.side:  # of such a row the columns say nothing
        rows = zip(its.tolist(), others.tolist(), strict=True)
        beside = [(chunk.side.get(row), against.side.get(others_row)) for row, others_row in rows]
        if any(state != others_state for state, others_state in beside):
            return False
        in_columns = np.array([state is None for state, _ in beside], np.bool_)
        its, others = its[in_columns], others[in_columns]
    directories = against.directories
    if one.directories != other.directories:
        known = {directory: number for number, directory in enumerate(one.directories)}
        numbers = [known.get(each, len(known)) for each in other.directories]  # one that it has not
        directories = np.asarray(numbers, np.uint16)[directories]
    if not _are_equal(chunk.directories[:, its], directories[:, others]):
        return False
    return all(
        _are_equal(getattr(chunk, column)[..., its], getattr(against, column)[..., others])
        for column in _COLUMNS
    )


def _are_equal(column: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Compare columns of whole numbers: `np.array_equal` takes twenty times as long here."""
    is_same_form = (column.dtype, column.shape) == (other.dtype, other.shape)
    return is_same_form and column.tobytes() == other.tobytes()


def _said(image: MetadataImage) -> dict[str, object]:
    """All that an image says, but for what depends on how a node came by it: the offset of control
    batches at its end, and where registrations stood before a snapshot took their place."""
    said = describe(image)
    brokers = [
        {**describe_broker(broker), "registered_at_offset": 0}
        for _, broker in sorted(image.brokers.items())
    ]
    return {**said, "offset": 0, "epoch": 0, "brokers": brokers}
