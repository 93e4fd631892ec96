"""Faults of whole processes: they die, stop, stand still, lose their power, or their time.

A broker that loses its power keeps what it has written of partitions, as if it had been killed:
Kafka acknowledges that without a sync, on purpose. Controllers lose what they have not synced.

The proof is the process that died, stopped or stood still.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from jepsen_like.faults import Fault, Proof
from jepsen_like.in_force import InForce, proof_of
from jepsen_like.sim.chaos.stages import Stage
from jepsen_like.sim.host import Host
from jepsen_like.sim.observer import Observer
from quorum.core.effects import Append, Effect, SaveElection, Truncate

__all__ = ["Processes", "start_again"]

_WRITES = (Append, SaveElection, Truncate)
_DOWN_US = 1_000_000  # how long each node of a rolling restart stays down
_OFFSET_MS = 3_600_000


def start_again(host: Host) -> None:
    """Unless it runs; one that stands still goes on."""
    host.resume()
    if not host.is_up:
        host.start()


class Processes:
    """Each method injects one kind."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def kill(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._crash(targets, lambda _host: False)

    def cut_power(self, fault: Fault, targets: Sequence[int]) -> InForce:
        if fault.parameters.get("amid") == "write":
            return self._lie_in_wait(targets)
        return self._crash(targets, self._loses_what_is_not_synced)

    def tear(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """The last write before the power goes is half there."""
        for node in targets:
            disk = self._stage.world.nodes[node].disk
            disk.faults = replace(disk.faults, torn_write=1.0)
        return self.cut_power(fault, targets)

    def jump(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """A process takes its time from the wall when it starts, and somebody has set that."""
        for node in targets:
            host = self._stage.world.nodes[node]
            offset_ms = host.clock.offset_ms + fault.parameters.get("offset_ms", _OFFSET_MS)
            host.clock = replace(host.clock, offset_ms=offset_ms)
        return self._crash(targets, lambda _host: False)

    def stop(self, fault: Fault, targets: Sequence[int]) -> InForce:
        hosts = self._running(targets)
        lives = {host.node_id: host.incarnation for host in hosts}
        for host in hosts:
            self._stage.shut_down(host.node_id)

        def prove() -> Proof:
            ended = [host for host in hosts if host.incarnation != lives[host.node_id]]
            return proof_of([f"node {host.node_id} stopped" for host in ended])

        return InForce(targets, heal=lambda: _start_all(hosts), prove=prove)

    def pause(self, fault: Fault, targets: Sequence[int]) -> InForce:
        hosts = self._running(targets)
        for host in hosts:
            host.pause()

        def heal() -> None:
            for host in hosts:
                host.resume()

        proof = proof_of([f"node {host.node_id} stood still" for host in hosts])
        return InForce(targets, heal=heal, prove=lambda: proof)

    def restart_all(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """One after the other, in good order."""
        world, waiting, done = self._stage.world, list(targets), list[int]()

        def next_one() -> None:
            if waiting:
                node = waiting.pop(0)
                done.append(node)
                stopped = self.stop(fault, [node])
                world.after(_DOWN_US, lambda: come_back(stopped))

        def come_back(stopped: InForce) -> None:
            stopped.heal()
            world.after(_DOWN_US, next_one)

        next_one()

        def heal() -> None:
            waiting.clear()
            _start_all([self._stage.world.nodes[node] for node in done])

        return InForce(
            targets,
            heal=heal,
            prove=lambda: proof_of([f"node {node} was restarted" for node in done]),
        )

    # --- crashes ------------------------------------------------------------------------

    def _loses_what_is_not_synced(self, host: Host) -> bool:
        return host.node_id in self._stage.controllers

    def _crash(self, targets: Sequence[int], loses: Callable[[Host], bool]) -> InForce:
        died = self._running(targets)
        for host in died:
            host.crash(power_loss=loses(host))
        proof = proof_of([f"node {host.node_id} died" for host in died])
        return InForce(targets, heal=lambda: _start_all(died), prove=lambda: proof)

    def _lie_in_wait(self, targets: Sequence[int]) -> InForce:
        """Until one of them writes: then all lose their power, within the time of a sync."""
        stage, crashes = self._stage, list[InForce]()
        random = stage.world.fork(f"ambush/{stage.world.now_us}")

        def strike() -> None:
            crashes.append(self._crash(targets, self._loses_what_is_not_synced))

        def struck(host: Host) -> None:
            stage.world.ignore(ambush)
            mean_us = host.disk.faults.sync_us_mean
            stage.world.after(random.randint(0, mean_us), strike)

        ambush = _Ambush(targets, struck)
        stage.world.observe(ambush)

        def heal() -> None:
            stage.world.ignore(ambush)
            for crash in crashes:
                crash.heal()

        return InForce(
            targets, heal=heal, prove=lambda: crashes[0].proof() if crashes else proof_of([])
        )

    def _running(self, targets: Sequence[int]) -> list[Host]:
        nodes = self._stage.world.nodes
        return [nodes[node] for node in targets if nodes[node].is_up]


class _Ambush(Observer):
    """Tells which of `targets` writes."""

    def __init__(self, targets: Sequence[int], tell: Callable[[Host], None]) -> None:
        self._targets = targets
        self._tell = tell

    def settled(self, host: Host, effects: list[Effect]) -> None:
        if host.node_id in self._targets and any(isinstance(each, _WRITES) for each in effects):
            self._tell(host)


def _start_all(hosts: Sequence[Host]) -> None:
    for host in hosts:
        start_again(host)
