"""Faults of a quorum, drawn from a seed: what happens to whom, when, and for how long.

Draws from random streams of its own and hands each fault to its injector. Leaders are favourites,
and so are nodes that have just asked their disk for something (an *ambush*): most bugs of
replication need a crash between two steps that lie microseconds apart. What goes down comes back
after a while, whoever took it down. `heal` ends all of it for the liveness phase.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from jepsen_like.faults.fault import Fault, InForce, Injector
from jepsen_like.histories.history import Value
from jepsen_like.sim.assemblies.quorum.clients.administrator import Administrator
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.quorum_view import key_of
from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.faults.virtual_processes import WRITES
from jepsen_like.sim.logs.logtree import voters_named_in
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from jepsen_like.sim.world.world import World
from quorum.core.effects import Append, Effect
from wire.batch import read_header

__all__ = ["Chance", "DrawnFaults", "Losses"]

_ISOLATED = "isolate-controller"
_JUMP_MS_MAX = 30 * 24 * 3_600_000
_HAND_OVER = 0.3  # chance that the end of a partition costs the leader
_HAND_OVER_ISOLATED = 0.6  # and that the next leader is isolated as the last one comes back


class Chance:
    """What happens at moments that are drawn from a random stream of its own, until it is over."""

    def __init__(self, world: VirtualTime, stream: str) -> None:
        self.random: Random = world.fork(stream)
        self.is_over = False
        self._world = world

    def often(self, mean_ms: int, strike: Callable[[], None]) -> None:
        """Again and again, with this mean time between two."""

        def strikes() -> None:
            if not self.is_over:
                strike()
                self.often(mean_ms, strike)

        self.once(mean_ms, strikes)

    def once(self, mean_ms: int, happens: Callable[[], None]) -> None:
        self._world.after(self.draw_us(mean_ms), happens)

    def draw_us(self, mean_ms: int) -> int:
        return 1 + int(self.random.expovariate(1 / (mean_ms * 1000)))


def _names_voters(effect: Effect) -> bool:
    return (
        isinstance(effect, Append)
        and read_header(effect.records).is_control
        and voters_named_in(effect.records) is not None
    )


class DrawnFaults(Observer):
    """Those of one run."""

    def __init__(
        self,
        world: World,
        options: Options,
        *,
        injectors: Mapping[str, Injector],
        leads: Callable[[int], bool],
    ) -> None:
        self.others: Mapping[str, Callable[[], None]] = {}  # kinds that somebody else brings about
        self._world = world
        self._hosts = [*world.nodes.values()]
        self._options = options
        self._counts = world.counts
        self._injectors = injectors
        self._leads = leads
        self._chance = Chance(world, "nemesis")
        self._random = self._chance.random
        self._ambush_random: Random = world.fork("ambush")
        self._cuts: list[InForce] = []
        world.observe(self)
        for host in self._hosts:
            host.on_stop = self.restart_later  # also if its disk fails in its very first turn

    @property
    def _is_over(self) -> bool:
        return self._chance.is_over

    def begin(self) -> None:
        for kind, mean_ms in self._options.nemesis_ms.items():
            self._chance.often(mean_ms, partial(self._strike, kind))

    def heal(self) -> None:
        """No more faults; links whole, processes awake, the dead restarted."""
        self._chance.is_over = True
        for cut in self._cuts:
            cut.heal()
        self._cuts.clear()
        for host in self._hosts:
            host.resume()
            if not host.is_up:
                self._restart(host, host.incarnation)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Perhaps cut the power of a node that has just asked its disk for something."""
        if not effects or self._is_over:
            return
        written = [e for e in effects if isinstance(e, WRITES)]
        if not written:
            return
        if self._options.ambush and self._ambush_random.random() < self._options.ambush:
            self._ambush("power-loss", host)
        elif self._leads(host.node_id) and any(map(_names_voters, written)):
            self._changes_voters(host)

    def _ambush(self, kind: str, host: Host) -> None:
        incarnation = host.incarnation
        delay_us = self._ambush_random.randint(0, 3 * self._options.disks.sync_us_mean)
        self._world.after(delay_us, lambda: self._crash(kind, host, incarnation))

    def _changes_voters(self, leader: Host) -> None:
        """Perhaps take a leader away in the midst of that: to no other write so much may happen."""
        match self._ambush_random.choice(("crash", "cut", "resign", "", "", "")):
            case "crash":
                loses_power = self._ambush_random.random() < 0.5
                self._ambush("power-loss" if loses_power else "kill", leader)
            case "cut":
                self._cut("partition", leader)
            case "resign":
                self.inject("resign", [leader.node_id])

    # --- one fault after the other ------------------------------------------------------

    def _strike(self, kind: str) -> None:
        if kind in self.others:
            self.others[kind]()
        elif kind == _ISOLATED:
            self._cut(kind, self.leader())
        elif kind == "resign":
            self._happens(kind, self.leader())
        elif kind in ("kill", "power-loss", "pause", "stop"):
            self._happens(kind, self._victim())
        else:
            self._cut(kind, self._victim())

    def _victim(self) -> Host | None:
        up = [host for host in self._hosts if host.is_up and not host.is_paused]
        return self.choose(up) if up else None

    def choose(self, hosts: Sequence[Host]) -> Host:
        """Leaders are favourites."""
        leaders = [host for host in hosts if host.is_up and self._leads(host.node_id)]
        return self._random.choice(leaders if leaders and self._random.random() < 0.5 else hosts)

    def leader(self) -> Host | None:
        leaders = [host for host in self._hosts if host.is_up and self._leads(host.node_id)]
        return self._random.choice(leaders) if leaders else None

    def inject(self, kind: str, nodes: Sequence[int], **parameters: Value) -> InForce:
        return self._injectors[kind].inject(Fault(kind=kind, parameters=parameters), nodes)

    def _happens(self, kind: str, host: Host | None) -> None:
        """To a process."""
        if host is None:
            return
        if kind in ("kill", "power-loss"):
            self._crash(kind, host, host.incarnation)
            return
        in_force = self.inject(kind, [host.node_id])
        if kind == "pause":
            self._chance.once(self._options.pause_ms, in_force.heal)

    # --- processes ----------------------------------------------------------------------

    def crash(self, host: Host) -> None:
        """Cut the power of this node now."""
        self._crash("power-loss", host, host.incarnation)

    def _crash(self, kind: str, host: Host, incarnation: int) -> None:
        if self._is_over or not host.is_up or host.incarnation != incarnation:
            return
        self.inject(kind, [host.node_id])
        self.restart_later(host)

    def restart_later(self, host: Host) -> None:
        incarnation = host.incarnation
        down_us = 0 if self._is_over else self._chance.draw_us(self._options.down_ms)
        self._world.after(down_us, lambda: self._restart(host, incarnation))

    def _restart(self, host: Host, incarnation: int) -> None:
        if not host.is_up and host.incarnation == incarnation and not host.disk.is_damaged:
            self._counts.fired("restarted")
            self._jump(host)
            host.start()

    def _jump(self, host: Host) -> None:
        """A process takes its clock from the wall when it starts, and somebody may have set it."""
        if self._options.clock_jump and self._random.random() < self._options.clock_jump:
            self._counts.fired("clock_jumped")
            offset_ms = self._random.choice((1, -1)) * self._random.randrange(_JUMP_MS_MAX)
            host.clock = replace(host.clock, offset_ms=offset_ms)

    # --- links --------------------------------------------------------------------------

    def isolate_leader(self) -> None:
        """Perhaps; whoever is left must not need what has just been lost."""
        if self._random.random() < 0.5:
            self._cut(_ISOLATED, self.leader())

    def _cut(self, kind: str, victim: Host | None) -> None:
        """Who is isolated goes on leading for a while: its log and the next leader's part ways."""
        if len(self._hosts) < 2 or (kind == _ISOLATED and victim is None):
            return
        side, others = self._sides(kind, victim)
        direction = "both"
        if kind == "partition-one-way":
            direction = "out" if self._random.random() < 0.5 else "in"
        if not others:
            return
        holding = self._random.random() < 0.3
        cut = self.inject(kind, side, others=others, direction=direction, holding=holding)
        self._cuts.append(cut)

        def heal() -> None:
            if cut in self._cuts:
                self._cuts.remove(cut)
                cut.heal()
                self._hand_over(kind)

        lasting_us = self._chance.draw_us(self._options.cut_ms)
        if kind == _ISOLATED:  # until the others have another leader
            lasting_us += 2000 * self._options.fetch_timeout_ms
        self._world.after(lasting_us, heal)

    def _hand_over(self, kind: str) -> None:
        """Perhaps take the leader away just as others come back, so that they must do without."""
        leader = self.leader()
        chance = _HAND_OVER_ISOLATED if kind == _ISOLATED else _HAND_OVER
        if leader is None or self._is_over or self._random.random() >= chance:
            return
        if kind != _ISOLATED and self._random.random() < 0.5:
            self.crash(leader)
        else:
            self._cut(kind, leader)

    def _sides(self, kind: str, victim: Host | None) -> tuple[list[int], list[int]]:
        """One node, several, a minority, or one pair."""
        ids = [host.node_id for host in self._hosts]
        shape = self._random.choice(("one", "group", "minority", "pair"))
        if kind == _ISOLATED:
            shape = "one"
        if shape == "minority":
            victim = self.leader() or victim
        side = {self._random.choice(ids) if victim is None else victim.node_id}
        if shape == "group":
            side |= set(self._random.sample(ids, self._random.randrange(len(ids))))
        if shape == "minority":  # as many as can be without being a majority
            others = [node for node in ids[: self._options.voters] if node not in side]
            wanted = max(0, self._options.voters // 2 - 1)
            side |= set(self._random.sample(others, min(wanted, len(others))))
        others = [node for node in ids if node not in side]
        if shape == "pair":
            others = [self._random.choice(others)]
        return sorted(side), others


class Losses:
    """Takes disks away from nodes: wiped, or with a batch that a bit has flipped in.

    Only as many are taken as a quorum can bear: committed records stay on a majority of every set
    of voters that is in force or under way. A node that finds its log damaged does not start on it,
    since its records may have been acknowledged; it comes back once it is given an empty disk.

    An empty disk has another directory id. Where the log names voters by that, its node is an
    observer until it is added again. Where it does not (kraft.version 0), a voter may not come back
    on an empty disk at all: it could vote a second time in an epoch.
    """

    def __init__(
        self, quorum: SimulatedQuorum, faults: DrawnFaults, administrator: Administrator
    ) -> None:
        self._view = quorum.invariants.view
        self._hosts = quorum.hosts
        self._voters_are_in_the_log = quorum.options.kraft_version > 0
        self._faults = faults
        self._administrator = administrator

    def wipe(self) -> None:
        """A node dies and comes back with an empty disk. Who is down with a damaged one first."""
        damaged = [host for host in self._hosts if host.disk.is_damaged]
        found = [host for host in damaged or self._hosts if self._may_wipe(host)]
        if not found:
            return
        host = self._faults.choose(found)
        if host.is_up:
            self._faults.crash(host)
        else:
            self._faults.restart_later(host)
        was_voter = self._view.is_voter(host)
        self._faults.inject("wipe", [host.node_id])
        if was_voter:
            self._faults.isolate_leader()

    def damage(self) -> None:
        """A node dies, and finds at its next start that its log is not what it wrote."""
        found = [host for host in self._hosts if host.is_up and self._may_damage(host)]
        if found:
            host = self._faults.choose(found)
            self._faults.crash(host)
            self._faults.inject("bit-flip", [host.node_id])

    def _may_wipe(self, host: Host) -> bool:
        if self._view.is_voter(host) and not self._voters_are_in_the_log:
            return False
        return host.disk.is_damaged or self._may_lose(host)

    def _may_damage(self, host: Host) -> bool:
        """Who cannot be replaced stays away for ever: another may then fail all the same."""
        if self._view.is_voter(host) and not self._voters_are_in_the_log:
            return self._view.spare(self._view.committed_voters) > 1
        return self._may_lose(host)

    def _may_lose(self, host: Host) -> bool:
        """One more voter can be lost of every set that a node may come to go by."""
        known = {self._view.committed_voters, *map(self._view.voters_of, self._hosts)}
        own = key_of(host)
        removing = self._administrator.removing - {own}
        left = {self._view.without(voters, removing) for voters in known}
        if own in self._administrator.adding:  # the request may still be on its way
            known |= {(*voters, own) for voters in known | left if own not in voters}
        return all(
            self._view.spare(voters) > 0
            for voters in known | left
            if any(present is host for present in self._view.present(voters))
        )
