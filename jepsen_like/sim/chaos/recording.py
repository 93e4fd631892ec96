"""The history of a simulated run while it goes on."""

from dataclasses import replace

from jepsen_like.histories.history import Op
from jepsen_like.sim.time.virtual_time import VirtualTime

__all__ = ["Recording"]


class Recording:
    def __init__(self, world: VirtualTime) -> None:
        self.ops: list[Op] = []
        self._world = world
        self._began_us = world.now_us

    def begin(self) -> None:
        """The time of the history begins now."""
        assert not self.ops, len(self.ops)
        self._began_us = self._world.now_us

    def now_ms(self) -> int:
        return (self._world.now_us - self._began_us) // 1000

    def enter(self, op: Op) -> Op:
        time_ns = (self._world.now_us - self._began_us) * 1000
        self.ops.append(replace(op, index=len(self.ops), time_ns=time_ns))
        return self.ops[-1]
