"""The faults of a schedule on simulated hosts, disks and networks: the names of real runs.

    kill, stop, pause, rolling-restart                  processes
    power-loss, torn-write                              what was not synced is lost, or torn
    fsync-error, slow-disk                              disks
    clock-jump                                          a restarted process reads another time
    partition, isolate-controller, partition-one-way,
    partition-ring, bridge, delay                       links between nodes
    reset                                               messages between nodes are lost
    hold-rpc, drop-rpc, duplicate-rpc, reorder-rpc      single messages

A broker that loses its power keeps what it has written of partitions, as if it had been killed:
Kafka acknowledges that without a sync, on purpose. Controllers lose what they have not synced.

The proof of a fault is what it did: a process that died, messages that were stopped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from jepsen_like.faults import Fault, Injected, Injector, Proof
from jepsen_like.rules import Action, Armed, FrameRule, api_key_of, parse_trigger
from jepsen_like.sim.chaos.stages import Stage
from jepsen_like.sim.disk import DiskFaults
from jepsen_like.sim.host import Host
from jepsen_like.sim.interception import Interception
from jepsen_like.sim.network import Message
from quorum.effects import Append, Effect, SaveElection, Truncate

__all__ = ["InForce", "injectors"]

Way = tuple[int, int]
_WRITES = (Append, SaveElection, Truncate)
_DOWN_MS = 1_000  # how long each node of a rolling restart stays down
_SLOW = 100  # times
_MESSAGE_KINDS: Mapping[str, tuple[Action, str]] = {
    "hold-rpc": (Action.HOLD, "times(2)"),
    "drop-rpc": (Action.DROP, "times(2)"),
    "duplicate-rpc": (Action.DUPLICATE, "with_probability(0.3)"),
    "reorder-rpc": (Action.REORDER, "with_probability(0.3)"),
}
# An AlterPartition that was refused must not come again when its replica is in sync: Apache Kafka
# relies on TCP for that, too.
_NEVER = ((Action.DUPLICATE, "alter_partition"),)
_BETWEEN_NODES = ("fetch", "vote", "begin_quorum_epoch", "alter_partition", "broker_heartbeat")


class InForce:
    """A fault as every family makes it; `seen` is asked for after it has healed."""

    def __init__(
        self,
        nodes: Sequence[int],
        *,
        heal: Callable[[], None],
        seen: Callable[[], Sequence[str]],
    ) -> None:
        self.nodes = tuple(nodes)
        self._heal = heal
        self._seen = seen

    def heal(self) -> None:
        self._heal()

    def seen(self) -> Sequence[str]:
        return self._seen()

    def proof(self) -> Proof:
        seen = self._seen()
        return Proof(bit=bool(seen), evidence="; ".join(seen) or "nothing was seen")


class _Makes:
    """An injector that is a function."""

    def __init__(self, make: Callable[[Fault, Sequence[int]], InForce]) -> None:
        self._make = make

    def why_not(self) -> str:
        return ""

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        return self._make(fault, targets)


def injectors(stage: Stage, messages: Interception) -> Mapping[str, Injector]:
    processes, disks, links = _Processes(stage), _Disks(stage), _Links(stage, messages)
    made: dict[str, Callable[[Fault, Sequence[int]], InForce]] = {
        "kill": processes.kill,
        "stop": processes.stop,
        "pause": processes.pause,
        "rolling-restart": processes.restart_all,
        "power-loss": processes.cut_power,
        "torn-write": processes.tear,
        "clock-jump": processes.jump,
        "fsync-error": disks.fail_syncs,
        "slow-disk": disks.slow_down,
        "partition": links.around,
        "isolate-controller": links.around,
        "partition-one-way": links.one_way,
        "partition-ring": links.ring,
        "bridge": links.bridge,
        "delay": links.delay,
        "reset": links.lose,
        **dict.fromkeys(_MESSAGE_KINDS, links.strike_messages),
    }
    return {kind: _Makes(make) for kind, make in made.items()}


class _Processes:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def kill(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._crash(targets, lambda _host: False)

    def cut_power(self, fault: Fault, targets: Sequence[int]) -> InForce:
        if fault.parameters.get("amid") == "write":
            return self._lie_in_wait(targets)
        return self._crash(targets, self._loses_what_is_not_synced)

    def _lie_in_wait(self, targets: Sequence[int]) -> InForce:
        """Until one of them writes: then all lose their power, within the time of a sync."""
        stage, died = self._stage, list[InForce]()
        random = stage.world.fork(f"ambush/{stage.world.now_us}")

        def strike() -> None:
            died.append(self._crash(targets, self._loses_what_is_not_synced))

        def listen(host: Host, effects: Sequence[Effect]) -> None:
            if host.node_id in targets and any(isinstance(each, _WRITES) for each in effects):
                stage.listeners.remove(listen)
                mean_us = host.disk.faults.sync_us_mean
                stage.world.after(random.randint(0, mean_us), strike)

        stage.listeners.append(listen)

        def heal() -> None:
            if listen in stage.listeners:
                stage.listeners.remove(listen)
            for each in died:
                each.heal()

        return InForce(
            targets, heal=heal, seen=lambda: [seen for each in died for seen in each.seen()]
        )

    def tear(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """The last write before the power goes is half there."""
        for node in targets:
            disk = self._stage.hosts[node].disk
            disk.faults = replace(disk.faults, torn_write=1.0)
        return self.cut_power(fault, targets)

    def jump(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """A process takes its time from the wall when it starts, and somebody has set that."""
        for node in targets:
            host = self._stage.hosts[node]
            offset_ms = host.clock.offset_ms + fault.parameters.get("offset_ms", 3_600_000)
            host.clock = replace(host.clock, offset_ms=offset_ms)
        return self._crash(targets, lambda _host: False)

    def _loses_what_is_not_synced(self, host: Host) -> bool:
        return host.node_id in self._stage.controllers

    def _crash(self, targets: Sequence[int], loses: Callable[[Host], bool]) -> InForce:
        hosts = [self._stage.hosts[node] for node in targets]
        died = [host for host in hosts if host.is_up]
        for host in died:
            host.crash(power_loss=loses(host))

        def heal() -> None:
            for host in died:
                _start(host)

        return InForce(
            targets, heal=heal, seen=lambda: [f"node {host.node_id} died" for host in died]
        )

    def stop(self, fault: Fault, targets: Sequence[int]) -> InForce:
        hosts = [self._stage.hosts[node] for node in targets if self._stage.hosts[node].is_up]
        lives = {host.node_id: host.incarnation for host in hosts}
        for host in hosts:
            self._stage.shut_down(host.node_id)

        def heal() -> None:
            for host in hosts:
                _start(host)

        def seen() -> list[str]:
            ended = [host for host in hosts if host.incarnation != lives[host.node_id]]
            return [f"node {host.node_id} stopped" for host in ended]

        return InForce(targets, heal=heal, seen=seen)

    def pause(self, fault: Fault, targets: Sequence[int]) -> InForce:
        hosts = [self._stage.hosts[node] for node in targets if self._stage.hosts[node].is_up]
        for host in hosts:
            host.pause()

        def heal() -> None:
            for host in hosts:
                host.resume()

        return InForce(
            targets, heal=heal, seen=lambda: [f"node {host.node_id} stood still" for host in hosts]
        )

    def restart_all(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """One after the other, in good order."""
        world, waiting, done = self._stage.world, list(targets), list[int]()

        def next_one() -> None:
            if waiting:
                node = waiting.pop(0)
                done.append(node)
                in_force = self.stop(fault, [node])
                world.after(_DOWN_MS * 1000, lambda: come_back(in_force))

        def come_back(in_force: InForce) -> None:
            in_force.heal()
            world.after(_DOWN_MS * 1000, next_one)

        next_one()

        def heal() -> None:
            waiting.clear()
            for node in done:
                _start(self._stage.hosts[node])

        return InForce(
            targets, heal=heal, seen=lambda: [f"node {node} was restarted" for node in done]
        )


def _start(host: Host) -> None:
    host.resume()
    if not host.is_up:
        host.start()


class _Disks:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def fail_syncs(self, fault: Fault, targets: Sequence[int]) -> InForce:
        failed = self._stage.counts.by_kind["fsync_failed"]

        def seen() -> list[str]:
            count = self._stage.counts.by_kind["fsync_failed"] - failed
            return [f"{count} syncs failed"] if count else []

        return self._change(targets, seen, lambda disk: replace(disk, fsync_failure=1.0))

    def slow_down(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._change(
            targets,
            lambda: [f"syncs of {list(targets)} took {_SLOW} times as long"],
            lambda disk: replace(disk, sync_us_mean=_SLOW * disk.sync_us_mean),
        )

    def _change(
        self,
        targets: Sequence[int],
        seen: Callable[[], Sequence[str]],
        change: Callable[[DiskFaults], DiskFaults],
    ) -> InForce:
        hosts = [self._stage.hosts[node] for node in targets]
        before = [host.disk.faults for host in hosts]
        for host in hosts:
            host.disk.faults = change(host.disk.faults)

        def heal() -> None:
            for host, faults in zip(hosts, before, strict=True):
                host.disk.faults = faults
                _start(host)

        return InForce(targets, heal=heal, seen=seen)


class _Links:
    def __init__(self, stage: Stage, messages: Interception) -> None:
        self._stage = stage
        self._messages = messages
        self._cuts = 0

    # --- partitions ---------------------------------------------------------------------

    def around(self, fault: Fault, targets: Sequence[int]) -> InForce:
        return self._cut(targets, _both_ways(targets, self._others(targets)))

    def one_way(self, fault: Fault, targets: Sequence[int]) -> InForce:
        out = [(target, other) for target in targets for other in self._others(targets)]
        is_out = fault.parameters.get("direction", "out") == "out"
        return self._cut(targets, out if is_out else [(b, a) for a, b in out])

    def ring(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """Everybody hears a majority of its kind, and no two hear the same."""
        ways: list[Way] = []
        for ids in (self._stage.controllers, self._stage.brokers):
            for place, node in enumerate(ids):
                unheard = range(len(ids) // 2 + 1, len(ids))
                ways += [(ids[(place + further) % len(ids)], node) for further in unheard]
        return self._cut(targets, ways)

    def bridge(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """Two halves that see only the first target in common."""
        halves: tuple[list[int], list[int]] = ([], [])
        for ids in (self._stage.controllers, self._stage.brokers):
            for place, node in enumerate(each for each in ids if each != targets[0]):
                halves[place % 2].append(node)
        return self._cut(targets, _both_ways(*halves))

    def _others(self, targets: Sequence[int]) -> list[int]:
        return [node for node in self._stage.hosts if node not in targets]

    def _cut(self, targets: Sequence[int], ways: Sequence[Way]) -> InForce:
        self._cuts += 1
        kind = f"cut-{self._cuts}"
        counts = self._stage.counts.by_kind
        counts[kind] = 0
        self._stage.network.cut(list(ways), kind=kind, holding=True)

        def seen() -> list[str]:
            return [f"{counts[kind]} messages waited"] if counts[kind] else []

        return InForce(
            targets,
            heal=lambda: self._stage.network.heal(list(ways), kind=kind),
            seen=seen,
        )

    # --- messages -----------------------------------------------------------------------

    def delay(self, fault: Fault, targets: Sequence[int]) -> InForce:
        delay_ms = fault.parameters.get("delay_ms", 100)
        return self._rule(targets, Action.DELAY, delay_ms=delay_ms)

    def lose(self, fault: Fault, targets: Sequence[int]) -> InForce:
        """Who sends over a connection that is reset is told so at once, but not by this network."""
        return self._rule(targets, Action.DROP, delay_ms=0)

    def _rule(self, targets: Sequence[int], action: Action, *, delay_ms: int) -> InForce:
        ways = set(_both_ways(targets, self._others(targets)))

        def matches(message: Message) -> bool:
            return (message.source, message.target) in ways

        armed = self._messages.add(Armed(matches, action=action, delay_ms=delay_ms))
        return self._in_force(targets, [armed], action)

    def strike_messages(self, fault: Fault, targets: Sequence[int]) -> InForce:
        action, trigger = _MESSAGE_KINDS[fault.kind]
        wanted = fault.parameters
        is_request = wanted.get("direction", "request") == "request"
        armed = [
            self._messages.arm(
                FrameRule(
                    action=action,
                    source=target if is_request else other,
                    target=other if is_request else target,
                    api_key=api_key_of(name),
                    is_request=is_request,
                    trigger=parse_trigger(wanted.get("trigger", trigger)),
                )
            )
            for target in targets
            for other in self._others(targets)
            for name in wanted.get("apis", _BETWEEN_NODES)
            if (action, name) not in _NEVER
        ]
        return self._in_force(targets, armed, action)

    def _in_force(
        self, targets: Sequence[int], armed: Sequence[Armed[Message]], action: Action
    ) -> InForce:
        def heal() -> None:
            for each in armed:
                self._messages.release(each)

        def seen() -> list[str]:
            fired = sum(each.fired for each in armed)
            return [f"{fired} messages: {action}"] if fired else []

        return InForce(targets, heal=heal, seen=seen)


def _both_ways(some: Sequence[int], others: Sequence[int]) -> list[Way]:
    out = [(one, other) for one in some for other in others]
    return [*out, *((other, one) for one, other in out)]
