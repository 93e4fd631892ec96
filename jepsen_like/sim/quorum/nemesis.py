"""Injects the faults that have a moment of their own: crashes, power cuts, pauses, partitions.

Draws when and whom from its own random stream. Leaders are favourites, and so are nodes that have
just asked their disk for something (an *ambush*): most bugs of replication need a crash between
two steps that lie microseconds apart. `heal` ends all of it for the liveness phase.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.host import Host
from jepsen_like.sim.logtree import voters_named_in
from jepsen_like.sim.network import Network
from jepsen_like.sim.observer import Observer
from jepsen_like.sim.quorum.options import Options
from jepsen_like.sim.virtual_time import VirtualTime
from quorum.core.effects import Append, Effect, SaveElection, Truncate
from wire.batch import read_header

__all__ = ["Nemesis"]

Link = tuple[int, int]
_WRITES = (SaveElection, Append, Truncate)
_JUMP_MS_MAX = 30 * 24 * 3_600_000
_HAND_OVER = 0.3  # chance that the end of a partition costs the leader
_HAND_OVER_ISOLATED = 0.6  # and that the next leader is isolated as the last one comes back


def _names_voters(effect: Effect) -> bool:
    return (
        isinstance(effect, Append)
        and read_header(effect.records).is_control
        and voters_named_in(effect.records) is not None
    )


class Nemesis(Observer):
    """The schedule of faults of one run."""

    def __init__(
        self,
        *,
        world: VirtualTime,
        network: Network,
        hosts: Sequence[Host],
        options: Options,
        counts: Counts,
        leads: Callable[[Host], bool],
        resign: Callable[[Host], None],
        shut_down: Callable[[Host], None],
        keeps_power: frozenset[int] = frozenset(),
        others: Mapping[str, Callable[[], None]] = MappingProxyType({}),
    ) -> None:
        """`keeps_power`: nodes that may be killed, but not lose what they have written.

        `others`: what to do for kinds of faults that somebody else knows.
        """
        self._world = world
        self._network = network
        self._hosts = hosts
        self._options = options
        self._counts = counts
        self._leads = leads
        self._resign = resign
        self._shut_down = shut_down
        self._keeps_power = keeps_power
        self._others = others
        self._random: Random = world.fork("nemesis")
        self._ambush_random: Random = world.fork("ambush")
        self._is_over = False
        self._cuts: list[tuple[str, list[Link]]] = []
        for host in hosts:
            host.on_stop = self.restart_later  # also if its disk fails in its very first turn

    def begin(self) -> None:
        for kind in self._options.nemesis_ms:
            self._next(kind)

    def heal(self) -> None:
        """No more faults; links whole, processes awake, the dead restarted."""
        self._is_over = True
        for kind, links in self._cuts:
            self._network.heal(links, kind=kind)
        self._cuts.clear()
        for host in self._hosts:
            host.resume()
            if not host.is_up:
                self._restart(host, host.incarnation)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Perhaps cut the power of a node that has just asked its disk for something."""
        if self._is_over or not effects:
            return
        written = [e for e in effects if isinstance(e, _WRITES)]
        if not written:
            return
        if self._options.ambush and self._ambush_random.random() < self._options.ambush:
            self._ambush(host, power_loss=True)
        elif self._leads(host) and any(map(_names_voters, written)):
            self._changes_voters(host)

    def _ambush(self, host: Host, *, power_loss: bool) -> None:
        incarnation = host.incarnation
        delay_us = self._ambush_random.randint(0, 3 * self._options.disks.sync_us_mean)
        self._world.after(delay_us, lambda: self._crash(host, incarnation, power_loss=power_loss))

    def _changes_voters(self, leader: Host) -> None:
        """Perhaps take a leader away in the midst of that: to no other write so much may happen."""
        match self._ambush_random.choice(("crash", "cut", "resign", "", "", "")):
            case "crash":
                self._ambush(leader, power_loss=self._ambush_random.random() < 0.5)
            case "cut":
                self._cut("cut_two_way", leader)
            case "resign":
                self._resign(leader)
            case _:
                pass

    # --- one fault after the other ------------------------------------------------------

    def _next(self, kind: str) -> None:
        self._world.after(self._draw_us(self._options.nemesis_ms[kind]), lambda: self._strike(kind))

    def _strike(self, kind: str) -> None:
        if self._is_over:
            return
        match kind:
            case "kill" | "power_loss":
                host = self._victim()
                if host is not None:
                    self._crash(host, host.incarnation, power_loss=kind == "power_loss")
            case "paused":
                self._pause(self._victim())
            case "resigned":
                self._make_resign()
            case "shut_down":
                self._make_shut_down(self._victim())
            case "isolated":
                self._cut(kind, self.leader())
            case _ if kind in self._others:
                self._others[kind]()
            case _:
                self._cut(kind, self._victim())
        self._next(kind)

    def _victim(self) -> Host | None:
        up = [host for host in self._hosts if host.is_up and not host.is_paused]
        return self.choose(up) if up else None

    def crash(self, host: Host) -> None:
        """Cut the power of this node now."""
        self._crash(host, host.incarnation, power_loss=True)

    def isolate_leader(self) -> None:
        """Perhaps; whoever is left must not need what has just been lost."""
        if self._random.random() < 0.5:
            self._cut("isolated", self.leader())

    def choose(self, hosts: Sequence[Host]) -> Host:
        """Leaders are favourites."""
        leaders = [host for host in hosts if host.is_up and self._leads(host)]
        return self._random.choice(leaders if leaders and self._random.random() < 0.5 else hosts)

    def _crash(self, host: Host, incarnation: int, *, power_loss: bool) -> None:
        if self._is_over or not host.is_up or host.incarnation != incarnation:
            return
        power_loss = power_loss and host.node_id not in self._keeps_power
        self._counts.fired("power_loss" if power_loss else "kill")
        host.crash(power_loss=power_loss)
        self.restart_later(host)

    def restart_later(self, host: Host) -> None:
        incarnation = host.incarnation
        down_us = 0 if self._is_over else self._draw_us(self._options.down_ms)
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

    def _pause(self, host: Host | None) -> None:
        if host is None:
            return
        self._counts.fired("paused")
        host.pause()
        incarnation = host.incarnation

        def resume() -> None:
            if host.incarnation == incarnation:
                host.resume()

        self._world.after(self._draw_us(self._options.pause_ms), resume)

    def _make_resign(self) -> None:
        leader = self.leader()
        if leader is not None:
            self._counts.fired("resigned")
            self._resign(leader)

    def _make_shut_down(self, host: Host | None) -> None:
        if host is not None:
            self._counts.fired("shut_down")
            self._shut_down(host)

    def _cut(self, kind: str, victim: Host | None) -> None:
        links = self._links(kind, victim)
        if not links:
            return
        holding = self._random.random() < 0.3
        self._network.cut(links, kind=kind, holding=holding)
        cut = (kind, links)
        self._cuts.append(cut)

        def heal() -> None:
            if any(other is cut for other in self._cuts):
                self._cuts = [other for other in self._cuts if other is not cut]
                self._network.heal(links, kind=kind)
                self._hand_over(kind)

        lasting_us = self._draw_us(self._options.cut_ms)
        if kind == "isolated":  # until the others have another leader
            lasting_us += 2000 * self._options.fetch_timeout_ms
        self._world.after(lasting_us, heal)

    def _hand_over(self, kind: str) -> None:
        """Perhaps take the leader away just as others come back, so that they must do without."""
        leader = self.leader()
        chance = _HAND_OVER_ISOLATED if kind == "isolated" else _HAND_OVER
        if leader is None or self._is_over or self._random.random() >= chance:
            return
        if kind != "isolated" and self._random.random() < 0.5:
            self._crash(leader, leader.incarnation, power_loss=True)
        else:
            self._cut(kind, leader)

    def leader(self) -> Host | None:
        leaders = [host for host in self._hosts if host.is_up and self._leads(host)]
        return self._random.choice(leaders) if leaders else None

    def _links(self, kind: str, victim: Host | None) -> list[Link]:
        """Between two sides, one or both directions, of all nodes or of one pair.

        Who is isolated goes on leading for a while: its log and the next leader's part ways.
        """
        ids = [host.node_id for host in self._hosts]
        if len(ids) < 2 or (kind == "isolated" and victim is None):
            return []
        shape = self._random.choice(("one", "group", "minority", "pair"))
        if kind == "isolated":
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
        out = [(source, target) for source in sorted(side) for target in others]
        back = [(target, source) for source, target in out]
        if kind != "cut_one_way":
            return out + back
        return out if self._random.random() < 0.5 else back

    def _draw_us(self, mean_ms: int) -> int:
        return 1 + int(self._random.expovariate(1 / (mean_ms * 1000)))
