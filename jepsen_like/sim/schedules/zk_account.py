"""What people are told of a partition in ZooKeeper: who plays which part, what becomes of it."""

from collections.abc import Callable, Sequence

from jepsen_like.sim.schedules.zk_state import ZkPartition
from wire.zk.znodes import PartitionState

__all__ = ["ZkAccount"]


class ZkAccount:
    """Of any stage. `names` is filled when the parts are given out: a, b, c, …"""

    def __init__(
        self, partition: ZkPartition, names: dict[int, str], note: Callable[[str], None]
    ) -> None:
        self._partition = partition
        self._names = names
        self._note = note
        self._shown = ""

    def name(self, node: int) -> str:
        return self._names.get(node, f"broker {node}")

    def introduce(self, cast: Sequence[int], controller: int | None) -> None:
        self._names.update(zip(cast, "abcd", strict=False))
        named = ", ".join(f"{self.name(node)} is broker {node}" for node in cast)
        others = "" if controller is None else f"; broker {controller} is the controller"
        self._note(named + others)

    def look(self) -> PartitionState | None:
        """The state of now, which is noted if that is news."""
        state = self._partition.state
        if state is not None and (shown := self._told(state)) != self._shown:
            self._shown = shown
            self._note(f"ZooKeeper: {shown}")
        return state

    def _told(self, state: PartitionState) -> str:
        isr = ", ".join(sorted(map(self.name, state.isr)))
        leader = "nobody" if state.leader < 0 else self.name(state.leader)
        return f"{leader} leads in epoch {state.leader_epoch}; in sync: {isr or 'nobody'}"
