"""AlterIsr on the controller's side: answered when it is heard, carried out, then commanded.

Refused are a broker of another generation, a leader of another epoch, a version that is not the
latest, and an ISR with a replica that is not one, or is not alive: the controller knows, though the
leader may see it fetch. What is accepted is written at that version; the command that follows has
the next one, in the same leader epoch. A write that fails brings no command: what has changed the
state meanwhile does.

Source: KIP-497 (seed 003).
"""

from collections.abc import Mapping
from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.zk.desk import Desk
from controller.zk.stage import Stage
from quorum.effects import Reply, Request
from quorum.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.zk.control_rpc import (
    AlterIsrRequest,
    AlterIsrResponse,
    LeaderAndIsr,
    PartitionError,
    TopicPartition,
)

__all__ = ["alter_isr", "refusal"]


def alter_isr(desk: Desk, stage: Stage, request: Request) -> None:
    """Answer at once; what is accepted waits for its turn."""
    body = request.body
    assert isinstance(body, AlterIsrRequest), body
    asker = desk.live.get(body.broker_id)
    if asker is None or asker.generation != body.broker_epoch:
        answer = AlterIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        desk.outbox.emit(Reply(token=request.token, body=answer))
        return
    errors = {told.of: refusal(desk, told, body.broker_id) for told in body.partitions}
    results = tuple(
        PartitionError(topic=of.topic, partition=of.partition, error_code=error)
        for of, error in errors.items()
    )
    desk.outbox.emit(Reply(token=request.token, body=AlterIsrResponse(results=results)))
    wanted = {told.of: told for told in body.partitions if errors[told.of] is ErrorCode.NONE}
    if wanted:
        desk.procedures.submit(f"alter isr {request.token}", lambda: _write(stage, wanted))


def _write(stage: Stage, wanted: Mapping[TopicPartition, LeaderAndIsr]) -> Procedure[None]:
    def decide(of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
        told = wanted[of]
        if state is None or state.partition_epoch != told.zk_version:
            return None
        return replace(state, isr=told.isr)

    yield from stage.change(wanted, decide)


def refusal(desk: Desk, told: LeaderAndIsr, asker: int) -> ErrorCode:
    """Why this change cannot be made; NONE if it can."""
    state = desk.states.get(told.of)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if told.leader_epoch != state.leader_epoch or asker != state.leader:
        return ErrorCode.FENCED_LEADER_EPOCH
    if told.zk_version != state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    joining = set(told.isr) - set(state.isr)
    is_whole = asker in told.isr and set(told.isr) <= set(state.replicas)
    if not is_whole or not joining <= desk.live.keys():
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE
