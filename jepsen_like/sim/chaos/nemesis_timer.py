"""Plays faults on virtual time: an event of the world whenever the next one is due."""

from jepsen_like.faults.nemesis import Nemesis
from jepsen_like.sim.time.virtual_time import VirtualTime

__all__ = ["start_nemesis"]


def start_nemesis(nemesis: Nemesis, world: VirtualTime) -> None:
    def play() -> None:
        while (wait_ms := nemesis.play()) == 0:
            pass
        if wait_ms is not None:
            world.after(wait_ms * 1000, play)

    nemesis.begin()
    play()
