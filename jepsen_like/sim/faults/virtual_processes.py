"""Faults of processes, which die, stop, stand still, or lose power, disk, time or leadership; and
of disks, which fail to sync or take long.

A broker that loses its power keeps what it has written of partitions, as if it had been killed,
unless its assembly says otherwise: Kafka acknowledges that without a sync, on purpose. Controllers
lose what they have not synced.

The proof is the process that died, stopped or stood still. Each is counted by its kind, and a death
beside that; a power failure that costs nothing is counted as a death alone.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace

from jepsen_like.faults.fault import Course, Fault, InForce, in_force
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.world.assembly import AnyAssembly
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Append, Effect, SaveElection, Truncate

__all__ = ["WRITES", "Disks", "Processes", "start_again"]


WRITES = (Append, SaveElection, Truncate)
_DOWN_US = 1_000_000  # how long each node of a rolling restart stays down
_OFFSET_MS = 3_600_000


def start_again(host: Host) -> None:
    """Unless it runs; one that stands still goes on."""
    host.resume()
    if not host.is_up and not host.disk.is_damaged:
        host.start()


class Processes:
    """Each method injects one kind."""

    def __init__(self, site: AnyAssembly) -> None:
        self._site = site
        self._world = site.world

    @in_force
    def kill(self, fault: Fault, targets: Sequence[int]) -> Course:
        return (yield from self._crash(targets))

    @in_force
    def cut_power(self, fault: Fault, targets: Sequence[int]) -> Course:
        if fault.parameters.get("amid") == "write":
            return (yield from self._lie_in_wait(targets))
        return (yield from self._crash(targets, power_loss=True))

    @in_force
    def tear(self, fault: Fault, targets: Sequence[int]) -> Course:
        """The last write before the power goes is half there."""
        for host in self._hosts(targets):
            self._fired(fault.kind)
            host.disk.faults = replace(host.disk.faults, torn_write=1.0)
        return (yield from self._crash(targets, power_loss=True))

    @in_force
    def flip(self, fault: Fault, targets: Sequence[int]) -> Course:
        """No process starts on a log in which a bit has flipped, until it is mended."""
        crash, hosts = self._crash(targets, power_loss=True), self._hosts(targets)
        next(crash)
        for host in hosts:
            self._fired(fault.kind)
            host.disk.damage()
        yield targets
        for host in hosts:
            host.disk.is_damaged = False
        return (yield from crash)

    @in_force
    def wipe(self, fault: Fault, targets: Sequence[int]) -> Course:
        crash = self._crash(targets)
        next(crash)
        for node in targets:
            self._fired(fault.kind)
            self._site.wipe(node)
        yield targets
        return (yield from crash)

    @in_force
    def jump(self, fault: Fault, targets: Sequence[int]) -> Course:
        """A process takes its time from the wall when it starts, and somebody has set that."""
        for host in self._hosts(targets):
            self._fired(fault.kind)
            offset_ms = host.clock.offset_ms + fault.parameters.get("offset_ms", _OFFSET_MS)
            host.clock = replace(host.clock, offset_ms=offset_ms)
        return (yield from self._crash(targets))

    @in_force
    def stop(self, fault: Fault, targets: Sequence[int]) -> Course:
        lives = {host: host.incarnation for host in self._running(targets)}
        for host in lives:
            self._fired(fault.kind)
            self._site.shut_down(host.node_id)
        yield targets
        _start_all(lives)
        return [f"node {host.node_id} stopped" for host in lives if host.incarnation != lives[host]]

    @in_force
    def resign(self, fault: Fault, targets: Sequence[int]) -> Course:
        for node in targets:
            self._fired(fault.kind)
            self._site.resign(node)
        yield targets
        return [f"node {node} led, and was told to resign" for node in targets]

    @in_force
    def pause(self, fault: Fault, targets: Sequence[int]) -> Course:
        lives = {host: host.incarnation for host in self._running(targets)}
        for host in lives:
            self._fired(fault.kind)
            host.pause()
        seen = [f"node {host.node_id} stood still" for host in lives if host.is_paused]
        yield targets
        for host, incarnation in lives.items():
            if host.incarnation == incarnation:
                host.resume()
        return seen

    @in_force
    def restart_all(self, fault: Fault, targets: Sequence[int]) -> Course:
        """One after the other, in good order."""
        waiting, done = list(targets), list[int]()

        def next_one() -> None:
            if waiting:
                node = waiting.pop(0)
                done.append(node)
                stopped = self.stop(fault, [node])
                self._world.after(_DOWN_US, lambda: come_back(stopped))

        def come_back(stopped: InForce) -> None:
            stopped.heal()
            self._world.after(_DOWN_US, next_one)

        next_one()
        yield targets
        waiting.clear()
        _start_all(self._hosts(done))
        return [f"node {node} was restarted" for node in done]

    # --- crashes ------------------------------------------------------------------------

    def _crash(self, targets: Sequence[int], *, power_loss: bool = False) -> Course:
        """They come back when it heals, unless they have done so before."""
        lives = {host: host.incarnation for host in self._running(targets)}
        for host in lives:
            loses = power_loss and host.node_id not in self._site.keeps_power
            self._fired("power-loss" if loses else "kill")
            host.crash(power_loss=loses)
        seen = [f"node {host.node_id} died" for host in lives if not host.is_up]
        yield targets
        _start_all([host for host, life in lives.items() if host.incarnation == life])
        return seen

    def _lie_in_wait(self, targets: Sequence[int]) -> Course:
        """Until one of them writes: then all lose their power, within the time of a sync."""
        world, crashes = self._world, list[InForce]()
        random = world.fork(f"ambush/{world.now_us}")

        def lose_power() -> None:
            crashes.append(InForce(self._crash(targets, power_loss=True)))

        def ambushed(host: Host) -> None:
            world.ignore(ambush)
            world.after(random.randint(0, host.disk.faults.sync_us_mean), lose_power)

        ambush = _Ambush(targets, ambushed)
        world.observe(ambush)
        yield targets
        world.ignore(ambush)
        for crash in crashes:
            crash.heal()
        return crashes[0].proof() if crashes else []

    def _hosts(self, targets: Sequence[int]) -> list[Host]:
        return [self._world.nodes[node] for node in targets]

    def _running(self, targets: Sequence[int]) -> list[Host]:
        return [host for host in self._hosts(targets) if host.is_up]

    def _fired(self, kind: str) -> None:
        self._world.counts.fired(kind)


class _Ambush(Observer):
    """Tells which of `targets` writes."""

    def __init__(self, targets: Sequence[int], tell: Callable[[Host], None]) -> None:
        self._targets = targets
        self._tell = tell

    def settled(self, host: Host, effects: list[Effect]) -> None:
        if host.node_id in self._targets and any(isinstance(each, WRITES) for each in effects):
            self._tell(host)


def _start_all(hosts: Iterable[Host]) -> None:
    for host in hosts:
        start_again(host)


_SLOW = 100  # times


class Disks:
    """Each method injects one kind."""

    def __init__(self, site: AnyAssembly) -> None:
        self._world = site.world

    @in_force
    def fail_syncs(self, fault: Fault, targets: Sequence[int]) -> Course:
        counts = self._world.counts.by_kind
        before = counts["fsync_failed"]
        yield from self._changed(targets, lambda disk: replace(disk, fsync_failure=1.0))
        count = counts["fsync_failed"] - before
        return [f"{count} syncs failed"] if count else []

    @in_force
    def slow_down(self, fault: Fault, targets: Sequence[int]) -> Course:
        disks = {node: self._world.nodes[node].disk for node in targets}
        before = {node: disk.syncs for node, disk in disks.items()}
        yield from self._changed(
            targets, lambda disk: replace(disk, sync_us_mean=_SLOW * disk.sync_us_mean)
        )
        counts = {node: disk.syncs - before[node] for node, disk in disks.items()}
        return [
            f"{count} syncs of node {node} took {_SLOW} times as long"
            for node, count in counts.items()
            if count
        ]

    def _changed(
        self, targets: Sequence[int], change: Callable[[DiskFaults], DiskFaults]
    ) -> Generator[Sequence[int], None, None]:
        hosts = [self._world.nodes[node] for node in targets]
        before = [host.disk.faults for host in hosts]
        for host in hosts:
            host.disk.faults = change(host.disk.faults)
        yield targets
        for host, faults in zip(hosts, before, strict=True):
            host.disk.faults = faults
            start_again(host)
