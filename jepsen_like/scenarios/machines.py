"""What a scenario does to nodes, disks, links and time, whatever runs on the nodes."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.scenarios.steady_streams import SteadyStreams
from jepsen_like.sim.interception import Interception, Rule
from jepsen_like.sim.network import LinkCut, LinkFaults, Message
from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.world import World

__all__ = ["DISKS", "EVENTS_MAX", "LINKS", "Machines"]

LINKS = LinkFaults(delay_us_min=1_000, delay_us_mean=1)
DISKS = DiskFaults(sync_us_min=200, sync_us_mean=1, keeps_unsynced=False)
EVENTS_MAX = 100_000  # of a scenario; the longest has a tenth of that
_POLL_US = 250  # shorter than a message takes: a script acts between two of them


class Machines:
    """Those of `world`, whose streams are `streams`."""

    def __init__(self, world: World, streams: SteadyStreams) -> None:
        self.slow: set[int] = set()  # nodes whose disks the scenario has slowed down
        self._world = world
        self._shares = streams.shares
        self._network = world.network
        self._hosts = world.nodes
        self._messages = Interception(world.network, world.deliver)
        self._rules: list[Rule] = []
        self._cuts: list[LinkCut] = []

    @property
    def nodes(self) -> list[int]:
        return sorted(self._hosts)

    @property
    def up(self) -> list[int]:
        return [node for node in self.nodes if self._hosts[node].is_up]

    # --- time ---------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        self._run_us(ms * 1000)

    def reach(self, condition: Callable[[], bool], within_ms: int) -> bool:
        end_us = self._world.now_us + within_ms * 1000
        while not condition():
            if self._world.now_us >= end_us:
                return False
            self._run_us(_POLL_US)
        return True

    def _run_us(self, us: int) -> None:
        self._world.run_until(self._world.now_us + us, events_max=EVENTS_MAX)

    def order_timers(self, nodes: Iterable[int]) -> None:
        """The random parts of time-outs grow in this order of the nodes."""
        ordered = list(nodes)
        for place, node in enumerate(ordered):
            self._shares[node] = place / len(ordered)

    def level_timers(self) -> None:
        """No random part: whoever begins to wait at the same time stops at the same time."""
        self._shares.clear()

    # --- processes and disks ------------------------------------------------------------

    def crash(self, node: int, *, power_loss: bool) -> None:
        self._hosts[node].crash(power_loss=power_loss)

    def restart(self, node: int) -> None:
        self._hosts[node].start()

    def pause(self, node: int) -> None:
        self._hosts[node].pause()

    def resume(self, node: int) -> None:
        self._hosts[node].resume()

    def sync_in(self, node: int, ms: int) -> None:
        """How long a sync takes from now on."""
        self._hosts[node].disk.faults = replace(DISKS, sync_us_min=ms * 1000)
        self.slow.add(node)

    # --- links --------------------------------------------------------------------------

    def cut(self, side: Iterable[int], others: Iterable[int]) -> None:
        self._cuts.append(self._network.cut(both_ways(side, list(others)), kind="partition"))

    def are_cut(self, one: int, other: int) -> bool:
        return self._network.is_cut(one, other)

    def heal(self) -> None:
        for cut in self._cuts:
            self._network.heal(cut)
        self._cuts.clear()

    def hold(self, matches: Callable[[Message], bool]) -> None:
        self._rules.append(self._messages.hold(matches))

    @property
    def held(self) -> int:
        """How many messages are kept."""
        return sum(len(rule.kept) for rule in self._rules)

    def release(self) -> None:
        """What is kept arrives now; nothing is kept any more."""
        self._end_rules(Rule.release)

    def lose(self) -> None:
        """What is kept never arrives; nothing is kept any more."""
        self._end_rules(Rule.drop)

    def _end_rules(self, end: Callable[[Rule], None]) -> None:
        rules, self._rules = self._rules, []
        for rule in rules:
            end(rule)
