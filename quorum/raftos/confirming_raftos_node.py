"""A RaftosNode that can be asked whether it still leads, for linearizable reads.

A command that is committed in the leader's own term shows that it led after the command was
proposed: see `quorum.raftos.proposals`. A node that serves no such read is a plain `RaftosNode`.

Source: `quorum.node.confirmed_leadership`, which does the same for our own engine.
"""

from quorum.raft.roles import Leader, name_of
from quorum.raftos.raftos_node import RaftosNode

__all__ = ["ConfirmingRaftosNode"]


class ConfirmingRaftosNode(RaftosNode):
    """A `RaftosNode` that is a `quorum.node.confirmed_reads.ConfirmingLog`, too."""

    def confirm_leadership(self, now_ms: int) -> int:
        assert isinstance(self.role, Leader), f"asked as {name_of(self.role)}"
        self._now_ms = now_ms
        number = self._leading.ask()
        self._propose()
        return number

    @property
    def confirmed_through(self) -> int:
        return 0 if self._proposals is None else self._proposals.confirmed
