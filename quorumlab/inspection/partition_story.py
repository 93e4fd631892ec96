"""The story of a partition: what each record about it changed, and why.

The cause is looked for among the other records of the batch, since a controller writes what belongs
together at once. Where there is none, its leader has asked for the change, or the preferred leader
was elected.

Source: what Kafka's controllers write in each case (KIP-497, KIP-841, KIP-966).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from controller.metadata.changes import Change
from controller.metadata.partition_records import changed, state_of
from controller.metadata.partitions import NO_LEADER, RECOVERING, PartitionState
from quorumlab.inspection.batches import Batch
from quorumlab.inspection.broker_story import registration_change
from quorumlab.inspection.states import Replay
from wire import metadata_records as records
from wire.partition_columns import TOPIC_ID, PartitionBlock, take

__all__ = ["PartitionStory"]

_PartitionRecord = records.PartitionRecord | records.PartitionChangeRecord


@dataclass(slots=True)
class PartitionStory:
    topic: str
    index: int
    _topic_id: UUID | None = field(default=None, compare=False)
    _state: PartitionState | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def begin(self, start: Replay) -> Iterator[str]:
        known = start.image.topic(self.topic)
        if known is not None:
            self._topic_id = known.id
            self._state = start.image.partition(known.id, self.index)
        if self._state is not None:
            state = self._state
            isr, leader = _many(state.isr), _leader(state.leader)
            yield f"on {_many(state.replicas)}, ISR {isr}, {leader}"

    def tell(
        self, batch: Batch, changes: Sequence[tuple[int, Change]]
    ) -> Iterator[tuple[int, str]]:
        for offset, change in changes:
            match change:
                case records.TopicRecord(name=name, topic_id=topic_id) if name == self.topic:
                    self._topic_id, self._state = topic_id, None
                case records.RemoveTopicRecord(topic_id=topic_id) if topic_id == self._topic_id:
                    if self._state is not None:
                        yield offset, "the topic was deleted"
                    self._topic_id = self._state = None
                case records.PartitionRecord() | records.PartitionChangeRecord():
                    if (change.topic_id, change.partition_id) == (self._topic_id, self.index):
                        yield offset, self._told(change, changes)
                case _ if isinstance(change, PartitionBlock) and self._topic_id is not None:
                    for row in self._rows(change, self._topic_id):
                        (record,) = take(change, slice(row, row + 1)).records()
                        yield offset + row, self._told(record, changes)
                case _:
                    pass

    def _rows(self, block: PartitionBlock, topic_id: UUID) -> list[int]:
        is_it = block.topic_ids == np.frombuffer(topic_id.bytes, TOPIC_ID)[0]
        rows: list[int] = np.flatnonzero(is_it & (block.partition_ids == self.index)).tolist()
        return rows

    def _told(self, record: _PartitionRecord, together: Sequence[tuple[int, Change]]) -> str:
        if isinstance(record, records.PartitionRecord):
            self._state = state_of(record)
            isr, leader = _many(record.isr), _leader(record.leader)
            return f"created on {_many(record.replicas)}, ISR {isr}, {leader}"
        if self._state is None:
            return "changed, but its creation is not in what is left of the log"
        before, self._state = self._state, changed(self._state, record)
        causes = tuple(_causes(together, before, self._state)) or _asked(before, self._state)
        parts = [*_changes(before, self._state)] or ["written again, with nothing changed"]
        because = f" ({'; '.join(causes)})" if causes else ""
        epochs = f"partition epoch {self._state.partition_epoch}"
        if self._state.leader_epoch != before.leader_epoch:
            epochs = f"leader epoch {self._state.leader_epoch}, {epochs}"
        return f"{'; '.join(parts)}{because}; {epochs}"


def _changes(before: PartitionState, after: PartitionState) -> Iterator[str]:
    """Puts the change into words, the most important first."""
    yield from _elections(before, after)
    left = [broker for broker in before.isr if broker not in after.isr]
    joined = [broker for broker in after.isr if broker not in before.isr]
    if left:
        yield f"{_brokers(left)} fell out of the ISR, which is {_many(after.isr)}"
    if joined:
        yield f"{_brokers(joined)} came into the ISR, which is {_many(after.isr)}"
    yield from _moves(before, after)
    if after.eligible_leader_replicas != before.eligible_leader_replicas:
        yield f"eligible leaders outside the ISR: {_many(after.eligible_leader_replicas)}"


def _elections(before: PartitionState, after: PartitionState) -> Iterator[str]:
    if after.leader != before.leader:
        if after.leader == NO_LEADER:
            yield f"no leader any longer, it was {before.leader}: offline"
        elif before.leader == NO_LEADER:
            yield f"online again, led by broker {after.leader}"
        else:
            yield f"leader moved {before.leader} → {after.leader}"
    elif after.leader_epoch != before.leader_epoch:
        yield f"{_leader(after.leader)}, elected anew"
    if _is_unclean(before, after):
        yield "UNCLEAN: the leader was not in sync, acknowledged records may be lost"
    elif after.leader_recovery_state < before.leader_recovery_state:
        yield "recovered from the unclean election"


def _is_unclean(before: PartitionState, after: PartitionState) -> bool:
    """Also holds if the leader before had not recovered yet from another unclean election."""
    if after.leader_recovery_state != RECOVERING:
        return False
    could_lead = (*before.isr, *before.eligible_leader_replicas, NO_LEADER)
    is_elected = after.leader != before.leader and after.leader not in could_lead
    return is_elected or before.leader_recovery_state != RECOVERING


def _moves(before: PartitionState, after: PartitionState) -> Iterator[str]:
    if after.adding_replicas != before.adding_replicas and after.adding_replicas:
        yield f"a reassignment adds {_brokers(after.adding_replicas)}"
    if after.removing_replicas != before.removing_replicas and after.removing_replicas:
        yield f"it will remove {_brokers(after.removing_replicas)}"
    was_moving = before.adding_replicas or before.removing_replicas
    if was_moving and not (after.adding_replicas or after.removing_replicas):
        done = "done" if set(after.replicas) != set(before.replicas) else "over"
        yield f"the reassignment is {done}: replicas {_many(after.replicas)}"


def _causes(
    together: Sequence[tuple[int, Change]], before: PartitionState, after: PartitionState
) -> Iterator[str]:
    """Finds what else the controller wrote at once about the brokers that came or went."""
    concerned = {*before.isr} ^ {*after.isr}
    concerned |= {*before.eligible_leader_replicas} ^ {*after.eligible_leader_replicas}
    if after.leader != before.leader:
        concerned |= {before.leader, after.leader}
    for _, change in together:
        match change:
            case records.BrokerRegistrationChangeRecord(broker_id=broker) if broker in concerned:
                yield from registration_change(change)
            case records.RegisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} registered anew"
            case records.UnregisterBrokerRecord(broker_id=broker) if broker in concerned:
                yield f"broker {broker} was unregistered"
            case _:
                pass


def _asked(before: PartitionState, after: PartitionState) -> tuple[str, ...]:
    """Guesses the cause of a change without such a record."""
    is_moving = (before.adding_replicas, before.removing_replicas) != (
        after.adding_replicas,
        after.removing_replicas,
    )
    if is_moving:
        return ()
    if after.leader != before.leader and set(after.isr) == set(before.isr):
        return ("elected as the preferred one",) * (after.leader == after.replicas[0])
    if after.leader == before.leader != NO_LEADER and set(after.isr) != set(before.isr):
        return ("its leader asked for it",)
    return ()


def _many(brokers: Sequence[int]) -> str:
    return "[" + ",".join(map(str, brokers)) + "]"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'s' * (len(brokers) != 1)} {', '.join(map(str, brokers))}"


def _leader(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else f"leader {leader}"
