"""Does a partition come to rest once all is healed? Asked alike of the simulator and of processes.

L-PL: who leads knows it. L-WR: a write is acknowledged. L-ISR: all replicas are in sync.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from jepsen_like.sim.schedules.stages import Produced
from jepsen_like.sim.schedules.zk_state import ZkPartition
from jepsen_like.sim.violation import Stuck

__all__ = ["Resting", "is_led", "must_rest", "writes"]

_LAST = b"!"
_TRIES = 3
_AGAIN_MS = 500
_ANSWER_MS = 20_000


class Resting(Protocol):
    """What a stage has to be asked."""

    @property
    def counted(self) -> ZkPartition: ...
    def leads(self, node: int) -> bool: ...
    def produce(self, value: bytes, to: int) -> Produced: ...
    def wait(self, ms: int) -> None: ...
    def reaches(self, condition: Callable[[], bool], within_ms: int) -> bool: ...
    def until(self, condition: Callable[[], bool], what: str, *, bound: str) -> None: ...


def is_led(stage: Resting) -> bool:
    leader = stage.counted.leader
    return leader >= 0 and stage.leads(leader)


def must_rest(stage: Resting, *, led: Callable[[], None] = lambda: None) -> None:
    """Raises Stuck. `led`: what else must hold as soon as somebody leads."""
    stage.until(lambda: is_led(stage), "the leader leads", bound="L-PL")
    led()
    if not writes(stage):
        raise Stuck("L-WR", f"nothing is acknowledged any more; {stage.counted.state}")
    stage.until(lambda: stage.counted.is_whole, "all replicas are in sync", bound="L-ISR")


def writes(stage: Resting) -> bool:
    """Is a last record acknowledged? Sent again where the leader changes, as a client would."""
    for _ in range(_TRIES):
        stage.reaches(lambda: is_led(stage), _ANSWER_MS)
        last = stage.produce(_LAST, to=stage.counted.leader)
        stage.reaches(partial(_is_answered, last), _ANSWER_MS)
        if last.is_acknowledged:
            return True
        stage.wait(_AGAIN_MS)
    return False


def _is_answered(produced: Produced) -> bool:
    return produced.is_answered
