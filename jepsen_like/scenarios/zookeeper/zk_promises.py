"""The promises of a partition in ZooKeeper mode, and whether it comes to rest.

Z-CE    what a controller writes of it names the controller epoch of its day
D-ONE   two values are not acknowledged at one offset
D-ACK   what was acknowledged is in the log of the leader at the end
L-PL    the leader knows that it leads; L-WR: a write is acknowledged; L-ISR: all are in sync

Source: the reliability facts, sections 3.2 and 3.3.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from jepsen_like.scenarios.cluster.cluster_forms import DirectedPartition
from jepsen_like.sim.assemblies.cluster.invariants.watched import Acknowledged, Key
from jepsen_like.sim.ensemble.zk_state import ZkPartition
from jepsen_like.sim.violation import Stuck, Violation
from wire.zk.znodes import PartitionState

__all__ = ["Design", "ZkJudge", "is_led", "must_rest", "writes"]

_LAST = "!"
_TRIES = 3
_AGAIN_MS = 500
_ANSWER_MS = 20_000


class ZkJudge:
    """Looks on while a schedule is played, and hears what clients are told."""

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

    def refused_sequence(self, key: Key, sequence: int) -> None:
        """Nobody sends with sequences here."""


# --- at rest, asked alike of the simulator and of processes ---------------------------------


class Design(DirectedPartition, Protocol):
    """One of the designs, simulated or of processes."""

    @property
    def watched(self) -> ZkPartition: ...
    @property
    def controller(self) -> int | None: ...
    def note(self, what: str) -> None: ...
    def leads(self, node: int, topic: str = ...) -> bool:
        """This node takes itself for the leader of orders."""

    def leader_among(self, nodes: Iterable[int]) -> int:
        """The first of these nodes that takes itself for the leader."""

    def not_the_controller(self) -> int:
        """The last of them."""

    def told_isrs(self) -> set[tuple[int, ...]]: ...
    def has_topic(self, topic: str) -> bool: ...
    def create(self, *replicas: int, topic: str = ...) -> tuple[int, ...]: ...
    def delete(self, topic: str) -> None:
        """A client wants this topic deleted, and is not waited for."""

    def cut_session(self, node: int) -> None:
        """It finds no way to ZooKeeper any more."""

    def heal_session(self, node: int) -> None:
        """It finds its way to ZooKeeper again."""


def is_led(directed: Design) -> bool:
    leader = directed.watched.leader
    return leader >= 0 and directed.leads(leader)


def must_rest(directed: Design, *, led: Callable[[], None] = lambda: None) -> None:
    """Raises Stuck. `led`: what else must hold as soon as somebody leads."""
    directed.until(lambda: is_led(directed), "the leader leads", bound="L-PL")
    led()
    if not writes(directed):
        raise Stuck("L-WR", f"nothing is acknowledged any more; {directed.watched.state}")
    directed.until(lambda: directed.watched.is_whole, "all replicas are in sync", bound="L-ISR")


def writes(directed: Design) -> bool:
    """Is a last record acknowledged? Sent again where the leader changes, as a client would."""
    for _ in range(_TRIES):
        directed.machines.reach(lambda: is_led(directed), _ANSWER_MS)
        last = directed.produce(_LAST, to=directed.watched.leader)
        directed.machines.reach(lambda sent=last: sent.is_answered, _ANSWER_MS)  # type: ignore[misc]
        if last.is_acknowledged:
            return True
        directed.machines.run(_AGAIN_MS)
    return False
