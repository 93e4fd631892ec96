"""ZkAdministrator: on every broker, what a controller would do for clients, where there is none.

A core beside the broker. It reads the cluster for each request, and writes what the request means
where an administrator of the design would write it (`controller.zk.admin_nodes`); the brokers hear
of it by their watches. It is no controller: two of them may decide at the same time, and what one
could undo of the other's decision lies in one node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from controller.config import ControllerConfig
from controller.metadata.partitions import PartitionState
from controller.zk.admin import Admin
from controller.zk.controller_context import Move
from controller.zk.zk_metadata import (
    Assignments,
    States,
    children,
    ensure_roots,
    partitions_under,
    read_all,
    read_assignments,
    read_brokers,
    read_states,
)
from quorum.core.effects import Effect, Event, Request
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkEvent, ZkResult
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.zk import paths
from wire.zk.control_rpc import LiveBroker, TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Session, SessionChanged
from wire.zk.znodes import ReplicaList

__all__ = ["ZkAdministrator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A `ClusterView` for one request."""

    design: Design
    live: Mapping[int, LiveBroker]
    assignments: Assignments
    states: States
    moves: Mapping[TopicPartition, Move]


class ZkAdministrator:
    """`owner` is the owner of its tokens."""

    def __init__(
        self, owner: str, design: Design, rules: ControllerConfig, session: Session, random: Random
    ) -> None:
        self._design = design
        self._outbox = Outbox(owner)
        resumes = not design.hears_session_at_once
        self._procedures = Procedures(self._outbox, session, resumes=resumes)
        self._admin = Admin(rules, self._outbox, random, design)

    def serves(self, body: object) -> bool:
        return self._admin.serves(body)

    def receive(self, event: Event, now_ms: int) -> None:
        match event:
            case ZkEvent(event=SessionChanged()):
                self._procedures.session_changed()
            case ZkEvent():
                pass  # it watches nothing
            case ZkResult():
                self._outbox.deliver(event.token, event, now_ms)
            case Request():
                self._procedures.submit(f"request {event.token}", lambda: self._serve(event))
            case _:
                raise AssertionError(f"not for an administrator: {event}")

    def _serve(self, request: Request) -> Procedure[None]:
        yield from ensure_roots(self._design)
        live = yield from read_brokers(self._design)
        names = yield from children(paths.TOPICS)
        assignments = yield from read_assignments(self._design, names)
        states = yield from read_states(self._design, assignments)
        moves = yield from _under_way(self._design, states)
        view = _Read(
            design=self._design, live=live, assignments=assignments, states=states, moves=moves
        )
        yield from self._admin.serve(view, request)

    def tick(self, now_ms: int) -> None:
        """Nothing is due."""

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()


def _under_way(
    design: Design, states: Mapping[TopicPartition, PartitionState]
) -> Procedure[Mapping[TopicPartition, Move]]:
    """The moves that leaders were asked for and have not ended; not the removals."""
    root = paths.V2_PARTITIONS_REASSIGNED
    named = yield from partitions_under(root, watch=False)
    nodes = {of: paths.partition_under(root, of.topic, of.partition) for of in named}
    found = yield from read_all(replace(design, pipelines_writes=True), nodes, ReplicaList.decode)
    return {
        of: Move(original=states[of].replicas, target=listed.replicas)
        for of, (listed, _) in found.items()
        if listed.replicas and of in states
    }
