"""A node's disk in a whole cluster: the metadata log on the shipped storage, partitions on a model.

The shipped storage runs on a virtual file system (shipped_disk.py), which knows the metadata log
alone. Partition logs and what brokers save beside them lie on the model
(`jepsen_like.sim.disks.disk`). Both lose their power together, and each has its own random stream.
"""

from collections.abc import Callable
from uuid import UUID

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.shipped_disk import FileOptions, ShippedDisk
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.logs.stored_log import StoredLog
from jepsen_like.sim.time.virtual_time import VirtualTime
from quorum.core.effects import Event, SaveHighWatermarks
from quorum.core.log_state import FoundLog, LogState
from quorum.core.storage import METADATA_LOG, StorageEffect
from quorum.core.types import ElectionState, OffsetAndEpoch
from wire.primitives import ZERO_UUID

__all__ = ["TwoPartDisk"]


class TwoPartDisk:
    """A `NodeDisk`. `logs` and `high_watermarks` are those of partitions."""

    def __init__(
        self,
        *,
        world: VirtualTime,
        node_id: int,
        counts: Counts,
        faults: DiskFaults,
        options: FileOptions,
        tree_of: Callable[[str, UUID], LogTree],
    ) -> None:
        self._metadata = ShippedDisk(
            world=world,
            random=world.fork(f"files/{node_id}"),
            counts=counts,
            faults=faults,
            options=options,
            tree_of=tree_of,
        )
        self._partitions = Disk(
            world=world,
            random=world.fork(f"disk/{node_id}"),
            counts=counts,
            faults=faults,
            tree_of=tree_of,
        )
        self.logs: dict[str, StoredLog] = self._partitions.logs
        self.high_watermarks = self._partitions.high_watermarks
        self.directories = self._partitions.directories

    # --- of both ------------------------------------------------------------------------

    @property
    def faults(self) -> DiskFaults:
        return self._partitions.faults

    @faults.setter
    def faults(self, faults: DiskFaults) -> None:
        self._metadata.faults = faults
        self._partitions.faults = faults

    @property
    def syncs(self) -> int:
        return self._metadata.syncs + self._partitions.syncs

    @property
    def busy_until_us(self) -> int:
        return max(self._metadata.busy_until_us, self._partitions.busy_until_us)

    def attach(self, deliver: Callable[[Event], None]) -> None:
        self._metadata.attach(deliver)
        self._partitions.attach(deliver)

    def log(self, name: str, topic_id: UUID = ZERO_UUID) -> StoredLog:
        if name == METADATA_LOG:
            return self._metadata.log(name)
        return self._partitions.log(name, topic_id)

    def crash(self, *, power_loss: bool) -> None:
        self._partitions.crash(power_loss=power_loss)
        self._metadata.crash(power_loss=power_loss)

    def close(self) -> None:
        self._metadata.close()

    def wipe(self) -> None:
        self._metadata.wipe()
        self._partitions.wipe()

    def perform(self, effect: StorageEffect) -> None:
        is_metadata = not isinstance(effect, SaveHighWatermarks) and effect.log == METADATA_LOG
        (self._metadata if is_metadata else self._partitions).perform(effect)

    def take_failures(self) -> list[Event]:
        return [*self._metadata.take_failures(), *self._partitions.take_failures()]

    def begin_syncs(self) -> list[Event]:
        return [*self._metadata.begin_syncs(), *self._partitions.begin_syncs()]

    # --- of the metadata log --------------------------------------------------------------

    @property
    def generation(self) -> int:
        return self._metadata.generation

    @generation.setter
    def generation(self, generation: int) -> None:
        self._metadata.generation = generation

    @property
    def is_damaged(self) -> bool:
        return self._metadata.is_damaged

    @is_damaged.setter
    def is_damaged(self, is_damaged: bool) -> None:
        self._metadata.is_damaged = is_damaged

    @property
    def saved(self) -> Callable[[str, ElectionState], None]:
        return self._metadata.saved

    @saved.setter
    def saved(self, saved: Callable[[str, ElectionState], None]) -> None:
        self._metadata.saved = saved

    def damage(self) -> None:
        self._metadata.damage()

    def format(self, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        self._metadata.format(snapshot_id, content)

    def recover(self, name: str, topic_id: UUID = ZERO_UUID) -> tuple[LogState, ElectionState]:
        assert name == METADATA_LOG, name
        return self._metadata.recover(name)

    # --- of partitions ----------------------------------------------------------------------

    @property
    def found(self) -> tuple[FoundLog, ...]:
        return self._partitions.found

    def wipe_partitions(self) -> None:
        self._partitions.wipe_partitions()

    def fail_directory(self, directory_id: UUID) -> None:
        self._partitions.fail_directory(directory_id)

    @property
    def syncs_at(self) -> Callable[[str], None]:
        return self._partitions.syncs_at

    @syncs_at.setter
    def syncs_at(self, syncs_at: Callable[[str], None]) -> None:
        self._partitions.syncs_at = syncs_at
