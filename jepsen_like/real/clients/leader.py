"""A client that speaks for the leaders of partitions: AlterPartition, sent to the active
controller.

What a leader would know is looked up at the controller first. The ISR that is asked for always
differs from the present one: asking for the same changes nothing, and makes no new epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec import convert

from jepsen_like.histories.history import Kind, place_of
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.target import Nodes, Target, carried_out
from jepsen_like.workloads.workload import Done, Wish
from wire.errors import ErrorCode
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    IsrPartition,
    IsrTopic,
)
from wire.primitives import parse_uuid

__all__ = ["LeaderClient", "PartitionState", "done"]

_LOOKING_SECONDS = 1.0
# Compared with what the controller had decided, and refused: nothing was appended.
_REFUSED = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    topic_id: UUID
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    broker_epochs: Mapping[int, int]  # of those that are not fenced

    @property
    def other_isr(self) -> tuple[int, ...]:
        """One follower less, or all that may be in it."""
        able = tuple(each for each in self.replicas if each in self.broker_epochs)
        if set(able) > set(self.isr):
            return able
        last = max((each for each in self.isr if each != self.leader), default=None)
        return tuple(each for each in self.isr if each != last)


class LeaderClient:
    def __init__(self, target: Target, *, timeout_seconds: float) -> None:
        self._target = target
        self._agent = Agent(target, timeout_seconds=timeout_seconds)
        self._timeout_seconds = timeout_seconds
        self._controllers: dict[int, Nodes] = {}  # as the leader that asks them

    def invoke(self, wish: Wish) -> Done:
        if wish.f != "write":
            return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")
        return carried_out(lambda: self._write(*wish.value))

    def _write(self, key: str, value: int) -> Done:
        node = self._agent.active_controller()
        state = self._look_up(node, key)
        if state is None or state.leader not in state.broker_epochs:
            return Done(kind=Kind.FAIL, error="nobody leads it now")
        if set(state.other_isr) == set(state.isr):
            return Done(kind=Kind.FAIL, error="there is no other ISR now")
        controllers = self._controllers_for(state.leader)
        answer = controllers.ask(_request(state), AlterPartitionResponse, node=node)
        return done(answer, state, key, value)

    def close(self) -> None:
        for each in self._controllers.values():
            each.close()

    def _controllers_for(self, leader: int) -> Nodes:
        found = self._controllers.get(leader)
        if found is None:
            found = self._target.of_controllers(self._timeout_seconds, as_node=leader)
            self._controllers[leader] = found
        return found

    def _look_up(self, node: int, key: str) -> PartitionState | None:
        topic, index = place_of(key)
        told = [self._page(node, path) for path in (f"/v1/topics/{topic}", "/v1/node")]
        if None in told:
            return None
        page, described = told
        row = next(each for each in page["partitions"] if each["partition"] == index)
        epochs = {
            each["id"]: each["epoch"]
            for each in described["metadata"]["brokers"]
            if not each["fenced"] and not each["in_controlled_shutdown"]
        }
        topic_id = parse_uuid(page["topic_id"])
        return convert(row | {"topic_id": topic_id, "broker_epochs": epochs}, PartitionState)

    def _page(self, node: int, path: str) -> Any:
        answered = self._target.page(node, path, timeout_seconds=_LOOKING_SECONDS)
        return answered.page if answered.status == 200 else None


def _request(state: PartitionState) -> AlterPartitionRequest:
    wanted = tuple(
        BrokerState(broker_id=each, broker_epoch=state.broker_epochs.get(each, -1))
        for each in state.other_isr
    )
    partition = IsrPartition(
        partition_index=state.partition,
        leader_epoch=state.leader_epoch,
        new_isr_with_epochs=wanted,
        partition_epoch=state.partition_epoch,
    )
    return AlterPartitionRequest(
        broker_id=state.leader,
        broker_epoch=state.broker_epochs[state.leader],
        topics=(IsrTopic(topic_id=state.topic_id, partitions=(partition,)),),
    )


def done(answer: AlterPartitionResponse, state: PartitionState, key: str, value: int) -> Done:
    code = answer.error_code
    if code is ErrorCode.NONE:
        [partition] = answer.topics[0].partitions
        code = partition.error_code
        if code is ErrorCode.NONE:
            told = {"version": partition.partition_epoch, "expected": state.partition_epoch}
            return Done(kind=Kind.OK, value=[key, value], extra=told)
    return Done(kind=Kind.FAIL if code in _REFUSED else Kind.INFO, error=code.name)
