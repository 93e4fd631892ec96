"""The M-* invariants of the metadata, over every committed batch. For tests only."""

from dataclasses import dataclass, field
from uuid import UUID

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import decode_changes
from controller.metadata.configs import min_insync_replicas
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, RECOVERING, PartitionState
from controller.metadata.reassignment import assignment_of, reverted
from tests.controller.plain_image import plain_partitions

Key = tuple[UUID, int]


@dataclass(slots=True)
class Observer:
    """Applies committed batches and checks what must hold after each, and between two."""

    image: MetadataImage = field(default_factory=MetadataImage)
    leaders: dict[tuple[Key, int], int] = field(default_factory=dict)  # of (partition, epoch)
    epochs: dict[int, int] = field(default_factory=dict)  # the newest of each broker id
    next_producer_id: int = 0

    def see(self, batch: bytes) -> None:
        for committed in decode_changes(batch):
            before = self.image.stable
            self.image, _ = apply_with_delta(self.image, committed)
            self.check(before, self.image.stable)

    def check(self, before: MetadataImage, after: MetadataImage) -> None:
        was, now = plain_partitions(before), plain_partitions(after)
        for key, state in now.items():
            self.check_state(after, key, state)
            if key in was:
                self.check_change(was[key], state)
        for broker in after.brokers.values():  # M-BE
            assert broker.epoch >= self.epochs.get(broker.id, -1), broker
            self.epochs[broker.id] = broker.epoch
        assert after.next_producer_id >= self.next_producer_id
        self.next_producer_id = after.next_producer_id

    def check_state(self, image: MetadataImage, key: Key, state: PartitionState) -> None:
        check_sets(image, key, state)
        check_assignment(key, state)
        assert state.leader == NO_LEADER or state.leader in state.isr, (key, state)  # M-LI
        if len(state.isr) > 1 or state.leader != NO_LEADER:  # M-FEN
            for member in state.isr:
                assert image.is_active(member), (key, state, image.brokers.get(member))
        if state.leader != NO_LEADER:  # M-1L
            led = self.leaders.setdefault((key, state.leader_epoch), state.leader)
            assert led == state.leader, (key, state, led)

    def check_change(self, was: PartitionState, now: PartitionState) -> None:  # M-PE
        assert now.leader_epoch >= was.leader_epoch, (was, now)
        if now.leader != was.leader or not set(was.replicas) <= set(now.replicas):
            assert now.leader_epoch > was.leader_epoch, (was, now)
        is_one_change = now.partition_epoch == was.partition_epoch + 1  # several commit at once
        is_moved = set(was.replicas) > set(now.replicas) != set(reverted(was).replicas)
        if is_one_change and is_moved:
            assert set(now.replicas) <= set(now.isr), (was, now)  # moved for good: all are in sync
        if now != was:
            assert now.partition_epoch > was.partition_epoch, (was, now)


def check_sets(image: MetadataImage, key: Key, state: PartitionState) -> None:  # M-SUB
    isr, elr = state.isr, state.eligible_leader_replicas
    assert set(isr) | set(elr) | set(state.last_known_elr) <= set(state.replicas), (key, state)
    assert len({*isr, *elr}) == len(isr) + len(elr), (key, state)
    name = image.topics.by_id[key[0]].name
    enough = min(min_insync_replicas(image, name), len(state.replicas))
    if image.has_eligible_leaders:
        assert len(isr) < enough or not elr, (key, state)
        assert state.leader == NO_LEADER or not state.last_known_elr, (key, state)
        assert isr or elr or state.last_known_elr, (key, state)  # somebody can lead again
    else:
        assert isr, (key, state)
        assert not elr, (key, state)
    if state.leader_recovery_state == RECOVERING:
        assert len(isr) <= 1, (key, state)


def check_assignment(key: Key, state: PartitionState) -> None:
    """A reassignment that could end has ended."""
    replicas, staying = set(state.replicas), assignment_of(state).staying
    assert len(replicas) == len(state.replicas) == len(state.directories), (key, state)
    assert set(state.adding_replicas) | set(state.removing_replicas) <= replicas, (key, state)
    assert staying, (key, state)
    if state.adding_replicas or state.removing_replicas:
        assert not set(staying) <= set(state.isr), (key, state)
