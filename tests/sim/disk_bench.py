"""The model disk alone: its process's mailbox, and numbered effects on one log."""

from random import Random

from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.time.virtual_time import VirtualTime
from quorum.core.effects import Append, Durability, Event, LogState, Token
from wire.batch import assign, data_batch

__all__ = ["LOG", "DiskBench"]

LOG = "log"


class DiskBench:
    def __init__(self, seed: int = 0, **faults: float) -> None:
        self.world = VirtualTime(seed)
        self.counts = self.world.counts
        tree = LogTree()
        self.disk = Disk(
            world=self.world,
            random=Random(seed),
            faults=DiskFaults(**faults),  # type: ignore[arg-type]
            tree_of=lambda _name, _topic_id: tree,
        )
        self.events: list[Event] = []
        self.disk.attach(self.events.append)
        self._number = 0

    def token(self) -> Token:
        self._number += 1
        return Token("raft", self._number)

    def append(self, offset: int, *, epoch: int = 1, synced: bool = True, size: int = 1) -> Token:
        token = self.token()
        values = [f"{epoch}/{offset + place}".encode() for place in range(size)]
        records = assign(data_batch(values, timestamp_ms=1), base_offset=offset, leader_epoch=epoch)
        durability = Durability.SYNCED if synced else Durability.WRITTEN
        self.disk.perform(Append(log=LOG, token=token, records=records, durability=durability))
        return token

    def settle(self) -> None:
        self.events += self.disk.begin_syncs()
        self.world.run_until(self.world.now_us + 10_000_000, events_max=1_000_000)

    def crash(self, *, power_loss: bool = True) -> LogState:
        """Crash and recover."""
        self.disk.crash(power_loss=power_loss)
        state, _ = self.disk.recover(LOG)
        self.disk.attach(self.events.append)
        return state
