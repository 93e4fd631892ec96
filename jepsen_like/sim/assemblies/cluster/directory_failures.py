"""Data directories of brokers that fail, drawn from a seed (KIP-858).

In some runs each broker has several. Now and then one of them fails: the broker reports it with its
heartbeats and goes on with the others. Some processes die, and start again without the directory. A
repaired directory is used from the next process on. A broker never loses all of them.

Draws when and whom from a random stream of its own.
"""

from uuid import UUID

from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.disks.data_directories import DataDirectories
from jepsen_like.sim.faults.virtual_processes import start_again

__all__ = ["DirectoryFailures"]

_DIES = 0.5  # chance that the process dies while the directory is away


class DirectoryFailures:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._world = cluster.world
        self._random = cluster.world.fork("directory failures")
        self._is_over = False

    def begin(self) -> None:
        if self._options.directory_failure_ms:
            self._next()

    def heal(self) -> bool:
        """No more failures by chance. Returns whether a directory has failed and stays so, which
        is for the controller to learn."""
        self._is_over = True
        if self._options.directories == 1:
            return False
        if not any(self._directories(node).unreadable for node in self._options.brokers):
            self._fail_one()
        return True

    def repair_all(self) -> None:
        for node in self._options.brokers:
            self._repair(node)

    def _next(self) -> None:
        self._world.after(self._draw_us(self._options.directory_failure_ms), self._strike)

    def _strike(self) -> None:
        if self._is_over:
            return
        node = self._fail_one()
        if node is not None:
            if self._random.random() < _DIES:
                soon_us = self._draw_us(self._options.session_timeout_ms // 2)
                self._world.after(soon_us, lambda: self._start_without(node))
            later_us = self._draw_us(2 * self._options.session_timeout_ms)
            self._world.after(later_us, lambda: self._repair_in_time(node))
        self._next()

    def _fail_one(self) -> int | None:
        """Returns whose; None if there is none that may fail."""
        places = [
            (node, directory_id)
            for node in self._options.brokers
            if self._cluster.hosts[node].is_up and not self._directories(node).unreadable
            for directory_id in sorted(set(self._directories(node).homes.values()))
        ]
        if not places:
            return None
        node, directory_id = self._random.choice(places)
        self._fail(node, directory_id)
        return node

    def _fail(self, node: int, directory_id: UUID) -> None:
        self._world.counts.fired("directory_failed")
        self._cluster.fail_directory(node, directory_id)

    def _start_without(self, node: int) -> None:
        host = self._cluster.hosts[node]
        if self._is_over or not self._directories(node).unreadable or not host.is_up:
            return
        self._world.counts.fired("started_without_directory")
        host.crash(power_loss=False)
        start_again(host)

    def _repair_in_time(self, node: int) -> None:
        if not self._is_over:
            self._repair(node)

    def _repair(self, node: int) -> None:
        """The process that runs has given the directory up for good: another one takes over."""
        directories, host = self._directories(node), self._cluster.hosts[node]
        if not directories.unreadable:
            return
        self._world.counts.fired("directory_repaired")
        directories.unreadable.clear()
        if host.is_up:
            host.crash(power_loss=False)
            start_again(host)

    def _directories(self, node: int) -> DataDirectories:
        return self._cluster.hosts[node].disk.directories

    def _draw_us(self, mean_ms: int) -> int:
        return 1 + int(self._random.expovariate(1 / (mean_ms * 1000)))
