"""What is promised of a partition in ZooKeeper mode, looked at while a schedule is played.

Z-CE    what a controller writes of it names the controller epoch of its day
D-ONE   two values are not acknowledged at one offset
D-ACK   what was acknowledged is in the log of whoever leads at the end

Source: the reliability facts, sections 3.2 and 3.3.
"""

from jepsen_like.sim.cluster.client import Acknowledged, Key
from jepsen_like.sim.violation import Violation
from wire.zk.znodes import PartitionState

__all__ = ["ZkJudge"]


class ZkJudge:
    def __init__(self, *, is_judging: bool) -> None:
        self._is_judging = is_judging
        self._leader_epoch: int | None = None  # as last seen
        self._controller_epoch = 0
        self._acknowledged: dict[int, bytes] = {}

    def look(self, state: PartitionState, controller_epoch: int) -> None:
        """Leaders write ISRs in the epoch that they have heard of; elections are the controller's.

        Only an epoch that had begun before the last look counts as begun.
        """
        before, self._leader_epoch = self._leader_epoch, state.leader_epoch
        begun, self._controller_epoch = self._controller_epoch, controller_epoch
        is_elected = before not in (None, state.leader_epoch)
        if self._is_judging and is_elected and state.controller_epoch < begun:
            raise Violation(
                "Z-CE",
                f"the controller of epoch {state.controller_epoch} has elected {state.leader} in "
                f"leader epoch {state.leader_epoch}: epoch {begun} had begun",
            )

    def check_log(self, leader: int, end_offset: int) -> None:
        lost = [each for each in self._acknowledged if each >= end_offset]
        if lost:
            value = self._acknowledged[lost[0]].decode()
            raise Violation(
                "D-ACK",
                f"{value} was acknowledged at offset {lost[0]}, and the log of broker {leader}, "
                f"which leads, ends at {end_offset}",
            )

    # --- Judge, of what clients are told --------------------------------------------------------

    def acknowledged(self, key: Key, batch: Acknowledged) -> None:
        for place, value in enumerate(batch.values):
            offset = batch.base_offset + place
            other = self._acknowledged.setdefault(offset, value)
            if self._is_judging and other != value:
                told = f"{other.decode()} and {value.decode()}"
                raise Violation("D-ONE", f"{told} were both acknowledged at offset {offset}")

    def has_read(self, key: Key, offset: int, value: bytes) -> None:
        """The history tells."""

    def refused_position(self, key: Key, offset: int) -> None:
        """The history tells."""
