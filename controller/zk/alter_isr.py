"""AlterIsr on the controller's side: a request is answered at once, then written, then commanded.

The controller refuses a broker of another generation, a leader of another epoch, a version that is
not the latest, and an ISR with a broker that is no replica or is not alive: the controller knows
that, though the leader may see it fetch. An accepted ISR is written at the version of the request.
The command that follows has the next version, in the same leader epoch. If nothing is written,
because the state has changed or because this very change was written before a connection was lost,
the leader is sent the present state: it waits for a command.

Commands may wait for those of other changes (`propagation_delay_ms`): fewer requests, later news.

Source: KIP-497 (seed 003).
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.milestones import Cause, Occasion
from controller.zk.controller_context import Context
from controller.zk.state_machines import StateMachines
from controller.zk.zk_metadata import read_states
from quorum.core.effects import Request
from quorum.zookeeper.zk_procedures import Procedure
from wire.errors import ErrorCode
from wire.zk.control_rpc import AlterIsrRequest, AlterIsrResponse, TopicPartition, WantedIsr

__all__ = ["IsrChanges", "refusal"]

# A command that would say so is on its way, or was lost with an earlier life of the leader.
_OUT_OF_DATE = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION)


class IsrChanges:
    def __init__(self, context: Context, machines: StateMachines) -> None:
        self._context = context
        self._machines = machines
        self._untold: dict[TopicPartition, None] = {}
        self._tell_ms: int | None = None  # when they are told

    def asked(self, request: Request) -> None:
        """Answer at once; an accepted change is written when its turn comes."""
        context, body = self._context, request.body
        assert isinstance(body, AlterIsrRequest), body
        error = self._refusal_of_all(body)
        if error is not ErrorCode.NONE:
            context.reply(request, AlterIsrResponse(error_code=error))
            return
        asked = body.wanted
        errors = {
            of: refusal(self._state(of), told, body.broker_id, context.live)
            for of, told in asked.items()
        }
        context.reply(request, AlterIsrResponse.of(errors))
        self._machines.tell(of for of, error in errors.items() if error in _OUT_OF_DATE)
        wanted = {of: told for of, told in asked.items() if errors[of] is ErrorCode.NONE}
        if wanted:
            context.milestones.detected(Cause(Occasion.ISR, body.broker_id))
            context.procedures.submit(
                f"alter isr {request.token}", lambda: self._write(wanted, body.broker_id)
            )

    def _state(self, of: TopicPartition) -> PartitionState | None:
        return None if self._context.is_deleting(of) else self._context.states.get(of)

    def _refusal_of_all(self, body: AlterIsrRequest) -> ErrorCode:
        context = self._context
        asker = context.live.get(body.broker_id)
        if asker is None or asker.generation != body.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE

    def _write(self, wanted: Mapping[TopicPartition, WantedIsr], asker: int) -> Procedure[None]:
        context = self._context

        def decide(of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
            told = wanted[of]  # what held when it was asked may hold no more
            if state is None or self._context.is_deleting(of):
                return None
            if refusal(state, told, asker, context.live) is not ErrorCode.NONE:
                return None
            return replace(state, isr=told.isr)

        context.milestones.go_on(Cause(Occasion.ISR, asker))
        written = yield from self._machines.write(wanted, decide)
        missed = [of for of in wanted if of not in written]
        if missed:
            context.states |= yield from read_states(context.design, context.assignments, missed)
        self._untold |= dict.fromkeys(wanted)
        if not context.config.propagation_delay_ms:
            self._propagate()
        elif self._tell_ms is None:
            self._tell_ms = context.now_ms + context.config.propagation_delay_ms

    def _propagate(self) -> None:
        untold, self._untold, self._tell_ms = self._untold, {}, None
        self._machines.tell(of for of in untold if not self._context.is_deleting(of))

    def tick(self, now_ms: int) -> None:
        if self._tell_ms is not None and now_ms >= self._tell_ms:
            self._propagate()

    def deadline_ms(self) -> int | None:
        return self._tell_ms


def refusal(
    state: PartitionState | None, told: WantedIsr, asker: int, live: Collection[int]
) -> ErrorCode:
    """Why this change cannot be made; NONE if it can."""
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if told.leader_epoch != state.leader_epoch or not asker == told.leader == state.leader:
        return ErrorCode.FENCED_LEADER_EPOCH
    if told.current_zk_version != state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    joining = set(told.isr) - set(state.isr)
    is_whole = asker in told.isr and set(told.isr) <= set(state.replicas)
    if not is_whole or not joining.issubset(live):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE
