"""A running process of a quorum's node, as observers look at it."""

from dataclasses import dataclass

from jepsen_like.sim.logs.logtree import Voters
from quorum.core.types import LeaderAndEpoch
from quorum.node.member import Member
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Follower, Leader, Role, name_of

__all__ = ["RunningReplica"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningReplica:
    raft: RaftNode
    member: Member

    def resign(self, now_ms: int) -> None:
        self.raft.resign(now_ms)

    def shut_down(self, now_ms: int) -> None:
        """Begin an orderly stop, as SIGTERM asks for."""
        self.member.shut_down(now_ms)

    @property
    def role(self) -> Role:
        """Another object with every change of role."""
        return self.raft.role

    @property
    def leader(self) -> LeaderAndEpoch:
        return self.raft.leader

    @property
    def high_watermark(self) -> int | None:
        return self.raft.high_watermark

    @property
    def end_offset(self) -> int:
        return self.raft.end_offset

    @property
    def voters(self) -> Voters:
        """Those that it goes by."""
        return self.raft.replica.voters.keys

    @property
    def leads(self) -> bool:
        """Is it leader, and not resigned?"""
        return isinstance(self.raft.role, Leader)

    @property
    def hears_leader(self) -> bool:
        """Does it follow, and has it fetched from the leader whom it follows?"""
        return isinstance(self.raft.role, Follower) and self.raft.role.has_fetched

    @property
    def role_name(self) -> str:
        return name_of(self.raft.role)

    @property
    def state(self) -> tuple[int, ...]:
        """What a digest takes in; -1: unknown."""
        raft = self.raft
        leader, high_watermark = raft.leader, raft.high_watermark
        return (
            leader.epoch,
            -1 if leader.leader_id is None else leader.leader_id,
            -1 if high_watermark is None else high_watermark,
            raft.replica.log.end_offset,
        )
