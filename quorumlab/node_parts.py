"""The parts of a running node, its state and its milestones: all that its HTTP side looks at.

`quorumlab.node` composes the parts, and serves the pages on them.

Cores tell milestones as traces (`controller.milestones`); that a voter misses its leader, and that
it becomes the leader itself, is in a trace that they have anyway. A detection happened when the
driver began the turn in which the core heard of it; everything else, when the trace was taken: at
the end of that turn. The clock is CLOCK_MONOTONIC, one for all processes of a machine.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controller.milestones import INSTANT, MILESTONE, Cause, Occasion, Step, milestone
from quorum.core.effects import Trace
from quorum.log.files.file_storage import FileStorage
from quorum.node.driver import Driver
from quorum.node.member import Member, TakeOver
from quorum.node.register import Register
from quorum.raft.raft_node import RaftNode
from quorumlab.config import NodeConfig

if TYPE_CHECKING:
    from broker.broker import Broker
    from controller.controller import Controller
    from controller.metadata.image import MetadataImage
    from controller.quotas.throttle import ClientThrottle
    from quorum.raftos.raftos_node import RaftosNode
    from quorum.zookeeper.zk_member import ZkMember
    from quorumlab.zk_side import ZkSide

__all__ = ["Milestones", "NodeParts"]

_KEPT_MAX = 50_000  # a leader tells four of every ISR that it shrinks
_ROLE = "role"  # of the quorum's engine


class NodeParts:
    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.started_ms = time.time_ns() // 1_000_000  # wall clock
        self.raft: RaftNode | RaftosNode  # of a quorum; a node in ZooKeeper mode has `zk`
        self.zk: ZkSide | None = None
        self.controller: Controller | None = None
        self.broker: Broker | None = None
        self.register: Register | None = None  # in the place of a controller
        self.driver: Driver
        self.throttle: ClientThrottle | None = None  # of a node that has the metadata
        self.storage: FileStorage
        self.milestones = Milestones(lambda: self.driver.turn_began_ns)
        self.member: Member | ZkMember

    @property
    def is_in_quorum(self) -> bool:
        """Does it lead the quorum, or follow its leader?"""
        if self.zk is not None:
            return self.zk.why_not_ready is None
        return self.raft.is_in_quorum(self.driver.now_ms())

    @property
    def known_image(self) -> "MetadataImage | None":
        """As committed, or as the broker has published it; None before there is either."""
        if self.controller is not None:
            return self.controller.image
        return None if self.broker is None else self.broker.cluster.image

    @property
    def take_over(self) -> TakeOver | None:
        """The node's last election, until it was the active controller."""
        return self.member.take_over if isinstance(self.member, Member) else None

    def facts(self) -> Mapping[str, Any]:
        """Describes the quorum, or what stands in its place."""
        return self.raft.facts() if self.zk is None else self.zk.facts()

    @property
    def is_ready(self) -> bool:
        return self.why_not_ready() is None

    def why_not_ready(self) -> str | None:
        """Returns, for people, what keeps the node from its work; None if nothing does."""
        if self.zk is not None and self.zk.why_not_ready is not None:
            return self.zk.why_not_ready
        if not self.is_in_quorum:
            role = self.facts()["role"]
            return f"this node hears of no leader of the quorum; its own role is {role}"
        if self.broker is None:
            return None
        from quorumlab import broker_side

        return broker_side.why_not_serving(self.broker)


# --- milestones ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reached:
    at_ns: int
    step: str
    count: int
    about: Mapping[str, object]

    def describe(self) -> dict[str, object]:
        return {
            "at_ns": self.at_ns,
            "step": self.step,
            "count": self.count,
            "about": dict(self.about),
        }


class Milestones:
    """The last fifty thousand of one process."""

    def __init__(
        self, turn_began_ns: Callable[[], int], now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._turn_began_ns = turn_began_ns
        self._now_ns = now_ns
        self._reached: deque[_Reached] = deque(maxlen=_KEPT_MAX)
        self._instants: dict[str, int] = {}

    def take(self, trace: Trace) -> bool:
        """Is the trace for us alone? Others go to the log, too."""
        if trace.event == MILESTONE:
            self._reach(trace)
        elif trace.event == INSTANT:
            self._instants[str(dict(trace.fields)["name"])] = self._now_ns()
        elif trace.event == _ROLE:
            self._change_role(dict(trace.fields))
        return trace.event in (MILESTONE, INSTANT)

    def describe(self) -> dict[str, object]:
        return {"now_ns": self._now_ns(), "milestones": [each.describe() for each in self._reached]}

    def _reach(self, told: Trace) -> None:
        about: dict[str, Any] = dict(told.fields)
        step, count, since = (about.pop(name) for name in ("step", "count", "since"))
        default_ns = self._turn_began_ns() if step == Step.DETECTED else self._now_ns()
        at_ns = self._instants.pop(since, default_ns)
        self._reached.append(_Reached(at_ns=at_ns, step=step, count=count, about=about))

    def _change_role(self, fields: Mapping[str, Any]) -> None:
        epoch = fields["epoch"]
        if fields["role"] == "leader":
            self._reach(milestone(Step.ELECTED, epoch=epoch))
        elif fields["previous"] == "follower" and fields["role"] in ("prospective", "candidate"):
            failed = Cause(Occasion.CONTROLLER_FAILED)
            self._reach(milestone(Step.DETECTED, failed, epoch=epoch))
