"""Faults of disks: their syncs fail, or take long."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from jepsen_like.faults.fault import Fault, InForce, Proof, proof_of
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.faults.virtual_processes import start_again

__all__ = ["Disks"]

_SLOW = 100  # times


class Disks:
    """Each method injects one kind."""

    def __init__(self, site: Site) -> None:
        self._world = site.world

    def fail_syncs(self, fault: Fault, targets: Sequence[int]) -> InForce:
        failed_before = self._world.counts.by_kind["fsync_failed"]

        def prove() -> Proof:
            count = self._world.counts.by_kind["fsync_failed"] - failed_before
            return proof_of([f"{count} syncs failed"] if count else [])

        return self._change(targets, lambda disk: replace(disk, fsync_failure=1.0), prove)

    def slow_down(self, fault: Fault, targets: Sequence[int]) -> InForce:
        disks = {node: self._world.nodes[node].disk for node in targets}
        before = {node: disk.syncs for node, disk in disks.items()}

        def prove() -> Proof:
            counts = {node: disk.syncs - before[node] for node, disk in disks.items()}
            return proof_of(
                [
                    f"{count} syncs of node {node} took {_SLOW} times as long"
                    for node, count in counts.items()
                    if count
                ]
            )

        return self._change(
            targets, lambda disk: replace(disk, sync_us_mean=_SLOW * disk.sync_us_mean), prove
        )

    def _change(
        self,
        targets: Sequence[int],
        change: Callable[[DiskFaults], DiskFaults],
        prove: Callable[[], Proof],
    ) -> InForce:
        hosts = [self._world.nodes[node] for node in targets]
        before = [host.disk.faults for host in hosts]
        for host in hosts:
            host.disk.faults = change(host.disk.faults)

        def heal() -> None:
            for host, faults in zip(hosts, before, strict=True):
                host.disk.faults = faults
                start_again(host)

        return InForce(targets, heal=heal, prove=prove)
