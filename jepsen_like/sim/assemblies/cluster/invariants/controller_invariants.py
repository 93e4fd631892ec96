"""Invariants of the controller's answers to brokers, by what it had decided when they asked.

M-ALT   an accepted AlterPartition named the present leader, leader epoch and partition epoch
M-LIFE  a heartbeat acts for the present life of its broker only: one that names another epoch is
        refused, and does not prolong the session

An answer leaves once its decision is committed. By then another may have been taken, so what counts
is noted when the request arrives.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from uuid import UUID

from controller.controller import Controller
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Event, Request
from wire.errors import ErrorCode
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse, IsrPartition
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
)

__all__ = ["ControllerInvariants"]

_Key = tuple[UUID, int]  # topic id, partition
# The second says that the change was made, and has moved the leader away.
_ACCEPTED = (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)


class _Session(NamedTuple):
    """A broker's session in one epoch of a controller."""

    node: int
    controller_epoch: int
    broker_id: int


class ControllerInvariants(Observer):
    """Raises `Violation`."""

    received_kinds = (AlterPartitionRequest, BrokerHeartbeatRequest, BrokerRegistrationRequest)

    def __init__(self, node_of: Callable[[Host], ClusterNode]) -> None:
        self._node_of = node_of
        # By node and token of an AlterPartition: the partitions that it names, as they were.
        self._asked_for: dict[tuple[int, int], dict[_Key, PartitionState | None]] = {}
        self._late: set[tuple[int, int]] = set()  # node and token of heartbeats of other lives
        # Those have come since the last settlement, and nothing of the present life: when a
        # session has ended that nobody prolongs.
        self._ends_ms: dict[_Session, int] = {}

    # --- Observer -------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        if type(event) is not Request:
            return
        node = self._node_of(host)
        controller = node.controller
        if controller is None or not controller.is_active:
            return
        match event.body:
            case AlterPartitionRequest() as asked:
                self._asked_for[(host.node_id, event.token)] = _states(controller.head, asked)
            case BrokerHeartbeatRequest() as heartbeat:
                session = _Session(host.node_id, node.leader.epoch, heartbeat.broker_id)
                if _is_of_present_life(controller.head, heartbeat):
                    self._ends_ms.pop(session, None)
                else:
                    self._late.add((host.node_id, event.token))
                    self._must_not_go_on(session, controller, host.now_ms)
            case BrokerRegistrationRequest() as registration:
                session = _Session(host.node_id, node.leader.epoch, registration.broker_id)
                self._ends_ms.pop(session, None)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        match request, response:
            case AlterPartitionRequest() as asked, AlterPartitionResponse() as answer:
                states = self._asked_for.pop((host.node_id, token), {})
                _named_what_was(asked, answer, states)
            case BrokerHeartbeatRequest() as heartbeat, BrokerHeartbeatResponse(error_code=error):
                is_late = (host.node_id, token) in self._late
                self._late.discard((host.node_id, token))
                if is_late and error is ErrorCode.NONE:
                    raise Violation("M-LIFE", f"what is dead is answered: {heartbeat}")

    def counted(self, host: Host) -> None:
        if self._ends_ms:
            self._went_on(host)

    # --- M-LIFE ---------------------------------------------------------------------------

    def _must_not_go_on(self, session: _Session, controller: Controller, now_ms: int) -> None:
        ends_ms = now_ms + controller.config.session_timeout_ms - 1
        if not controller.liveness.is_live(session.broker_id, ends_ms):
            self._ends_ms[session] = ends_ms

    def _went_on(self, host: Host) -> None:
        node = self._node_of(host)
        for session in [each for each in self._ends_ms if each.node == host.node_id]:
            ends_ms = self._ends_ms.pop(session)
            if node.controller is None or session.controller_epoch != node.leader.epoch:
                continue
            if node.controller.liveness.is_live(session.broker_id, ends_ms):
                raise Violation(
                    "M-LIFE", f"broker {session.broker_id} lives by what an earlier life has said"
                )


def _is_of_present_life(image: MetadataImage, heartbeat: BrokerHeartbeatRequest) -> bool:
    broker = image.brokers.get(heartbeat.broker_id)
    return broker is not None and broker.epoch == heartbeat.broker_epoch


# --- M-ALT ------------------------------------------------------------------------------------


def _states(
    image: MetadataImage, request: AlterPartitionRequest
) -> dict[_Key, PartitionState | None]:
    return {key: image.partition(*key) for key, _ in _each(request)}


def _named_what_was(
    request: AlterPartitionRequest,
    response: AlterPartitionResponse,
    states: dict[_Key, PartitionState | None],
) -> None:
    accepted = {
        (topic.topic_id, result.partition_index)
        for topic in response.topics
        for result in topic.partitions
        if result.error_code in _ACCEPTED
    }
    for key, asked in _each(request):
        state = states.get(key)
        if key in accepted and not _is_of(asked, request.broker_id, state):
            raise Violation("M-ALT", f"{request.broker_id} is granted {asked}, it was {state}")


def _is_of(asked: IsrPartition, broker_id: int, state: PartitionState | None) -> bool:
    named = (broker_id, asked.leader_epoch, asked.partition_epoch)
    return state is not None and named == (state.leader, state.leader_epoch, state.partition_epoch)


def _each(request: AlterPartitionRequest) -> Iterator[tuple[_Key, IsrPartition]]:
    for topic in request.topics:
        for asked in topic.partitions:
            yield (topic.topic_id, asked.partition_index), asked
