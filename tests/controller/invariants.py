"""The M-* invariants of the metadata, over every committed batch. For tests only."""

from dataclasses import dataclass, field
from uuid import UUID

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import decode_changes
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
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
        assert state.isr, (key, state)  # M-SUB: not empty, without eligible leader replicas
        assert set(state.isr) <= set(state.replicas), (key, state)
        assert len(set(state.isr)) == len(state.isr), (key, state)
        assert state.leader == NO_LEADER or state.leader in state.isr, (key, state)  # M-LI
        if len(state.isr) > 1 or state.leader != NO_LEADER:  # M-FEN
            for member in state.isr:
                assert image.is_active(member), (key, state, image.brokers.get(member))
        if state.leader != NO_LEADER:  # M-1L
            led = self.leaders.setdefault((key, state.leader_epoch), state.leader)
            assert led == state.leader, (key, state, led)

    def check_change(self, was: PartitionState, now: PartitionState) -> None:  # M-PE
        assert now.leader_epoch >= was.leader_epoch, (was, now)
        if now.leader != was.leader:
            assert now.leader_epoch > was.leader_epoch, (was, now)
        if now != was:
            assert now.partition_epoch > was.partition_epoch, (was, now)
