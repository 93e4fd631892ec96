"""What a node is made of while it runs, and how it is: all that its HTTP side looks at.

`quorumlab.node` composes the parts, and serves the pages on them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quorum.log.files.file_storage import FileStorage
from quorum.node.driver import Driver
from quorum.node.member import Member, TakeOver
from quorum.node.register import Register
from quorum.raft.raft_node import RaftNode
from quorumlab.config import NodeConfig
from quorumlab.milestones import Milestones

if TYPE_CHECKING:
    from broker.broker import Broker
    from controller.controller import Controller
    from quorum.raftos.raftos_node import RaftosNode
    from quorum.zookeeper.zk_member import ZkMember
    from quorumlab.zk_side import ZkSide

__all__ = ["NodeParts"]


class NodeParts:
    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.raft: RaftNode | RaftosNode  # of a quorum; a node in ZooKeeper mode has `zk`
        self.zk: ZkSide | None = None
        self.controller: Controller | None = None
        self.broker: Broker | None = None
        self.register: Register | None = None  # in the place of a controller
        self.driver: Driver
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
    def take_over(self) -> TakeOver | None:
        """How this node came to lead the quorum the last time."""
        return self.member.take_over if isinstance(self.member, Member) else None

    def facts(self) -> Mapping[str, Any]:
        """What it says of the quorum, or of what stands in its place."""
        return self.raft.facts() if self.zk is None else self.zk.facts()

    @property
    def is_ready(self) -> bool:
        return self.why_not_ready() is None

    def why_not_ready(self) -> str | None:
        """What keeps the node from doing its work, for people; None if nothing does."""
        if self.zk is not None and self.zk.why_not_ready is not None:
            return self.zk.why_not_ready
        if not self.is_in_quorum:
            role = self.facts()["role"]
            return f"this node hears of no leader of the quorum; its own role is {role}"
        if self.broker is None:
            return None
        from quorumlab import broker_side

        return broker_side.why_not_serving(self.broker)
