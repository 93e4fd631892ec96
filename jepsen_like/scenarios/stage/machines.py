"""Steps on simulated nodes, disks, links and time, whatever runs on the nodes.

Each fault is noted in the account of the run, with the names that the nodes have there.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.scenarios.language.forms import Misused, Names
from jepsen_like.scenarios.stage.held_messages import HeldMessages, Traffic, fetches_of
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.world.interception import Interception
from jepsen_like.sim.world.network import LinkCut, LinkFaults, Message
from jepsen_like.sim.world.world import World
from wire.api_table import APIS, CONTROL_RPCS, api_of
from wire.messages.fetching import FetchRequest, FetchResponse

__all__ = ["DISKS", "EVENTS_MAX", "LINKS", "POLL_US", "SimulatedMachines"]

LINKS = LinkFaults(delay_us_min=1_000, delay_us_mean=1)
DISKS = DiskFaults(sync_us_min=200, sync_us_mean=1, keeps_unsynced=False)
EVENTS_MAX = 100_000  # of a scenario; the longest has a tenth of that
POLL_US = 250  # shorter than a message takes: a script acts between two of them
_APIS_OF = ("wire.messages.", "wire.zk.")  # where the bodies of Kafka's requests are


class SimulatedMachines:
    """Those of `world`.

    `names`     of the nodes
    `note`      takes what is done, for the account of the run
    `looked`    is called after each step of time
    `forget`    is called with a node whose process has ended
    """

    def __init__(
        self,
        world: World,
        names: Names,
        *,
        note: Callable[[str], None],
        looked: Callable[[], None] | None = None,
        forget: Callable[[int], None] = lambda _node: None,
        poll_us: int = POLL_US,
        events_max: int | None = None,
    ) -> None:
        self.slow: set[int] = set()  # nodes whose disks have been slowed down
        self._world = world
        self._names = names
        self._note = note
        self._looked = looked
        self.forget = forget
        self._poll_us = poll_us
        self._events_max = events_max
        self._network = world.network
        self._hosts = world.nodes
        self.messages = HeldMessages("the network", names, note=note)
        self._interception = Interception(world.network, world.deliver)
        self._targets: dict[str, set[int]] = {}  # by rule: of what it has taken
        self._cuts: list[LinkCut] = []

    @property
    def nodes(self) -> list[int]:
        return sorted(self._hosts)

    @property
    def up(self) -> list[int]:
        return [node for node in self.nodes if self._hosts[node].is_up]

    @property
    def events_max(self) -> int:
        """The most events of a run; more is an endless loop."""
        return EVENTS_MAX if self._events_max is None else self._events_max

    # --- time ---------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        if self._looked is None:
            self._run_us(ms * 1000)
        else:
            self.reach(lambda: False, ms)

    def reach(self, condition: Callable[[], bool], within_ms: int) -> bool:
        end_us = self._world.now_us + within_ms * 1000
        while not condition():
            if self._world.now_us >= end_us:
                return False
            self._run_us(min(self._poll_us, end_us - self._world.now_us))
        return True

    def _run_us(self, us: int) -> None:
        self._world.run_until(self._world.now_us + us, events_max=self.events_max)
        if self._looked is not None:
            self._looked()

    # --- processes and disks ------------------------------------------------------------

    def crash(self, node: int, *, power_loss: bool = False) -> None:
        """With the power goes all that the disk has not synced."""
        self._note(f"{self._names.of(node)} {'loses power' if power_loss else 'is killed'}")
        host = self._hosts[node]
        faults = host.disk.faults
        if power_loss:
            host.disk.faults = replace(faults, keeps_unsynced=False)
        host.crash(power_loss=power_loss)
        host.disk.faults = faults
        self.forget(node)

    def restart(self, node: int) -> None:
        self._note(f"{self._names.of(node)} is started")
        self._hosts[node].start()

    def pause(self, node: int) -> None:
        self._note(f"{self._names.of(node)} is paused")
        self._hosts[node].pause()

    def resume(self, node: int) -> None:
        self._note(f"{self._names.of(node)} goes on")
        self._hosts[node].resume()

    def sync_in(self, node: int, ms: int) -> None:
        """How long a sync takes from now on."""
        self._note(f"each sync of {self._names.of(node)} takes {ms} ms")
        self.change_disk(node, sync_us_min=ms * 1000)
        self.slow.add(node)

    def change_disk(self, node: int, **faults: float) -> None:
        disk = self._hosts[node].disk
        disk.faults = replace(disk.faults, **faults)  # type: ignore[arg-type]

    # --- links --------------------------------------------------------------------------

    def cut(self, side: Iterable[int], others: Iterable[int]) -> None:
        one, other = sorted(side), sorted(others)
        self.messages.note_cut(one, other)
        self._cuts.append(self._network.cut(both_ways(one, other), kind="partition"))

    def are_cut(self, one: int, other: int) -> bool:
        return self._network.is_cut(one, other)

    def heal(self) -> None:
        if self._cuts:
            self._note("the links are whole again")
        for cut in self._cuts:
            self._network.heal(cut)
        self._cuts.clear()

    # --- messages -----------------------------------------------------------------------

    def hold(
        self, matches: Callable[[Message], bool], name: str = "", *, times: int | None = None
    ) -> None:
        """Keep what matches on its way, until the rule of that name is ended."""
        targets = self._targets[name] = set()

        def takes(message: Message) -> bool:
            is_taken = matches(message)
            if is_taken:
                targets.add(message.target)
            return is_taken

        self.messages.add(name, self._interception.hold(takes, times=times))

    def hold_api(self, held: Traffic, name: str = "") -> None:
        self.messages.note_api(held)
        self.hold(_matches(held), name, times=held.times)

    def hold_fetches(self, follower: int, leader: int) -> None:
        """Nothing of the leader's log gets to the follower, nor what is parked for it there."""
        self.messages.note_fetches(follower, leader)
        name = fetches_of(follower, leader)
        directions = ((follower, leader, FetchRequest), (leader, follower, FetchResponse))
        for source, target, body in directions:
            self.hold(_is(body, source=source, target=target), name)

    def has_held_for(self, name: str, nodes: Iterable[int]) -> bool:
        """Has the rule of that name taken a message to each of these nodes?"""
        return set(nodes) <= self._targets.get(name, set())


def _matches(held: Traffic) -> Callable[[Message], bool]:
    """Raises Misused if there is no such API."""
    if held.api not in {each.name for each in (*APIS, *CONTROL_RPCS)}:
        raise Misused(f"there is no request `{held.api}`; fetch, vote, alter_partition, … are some")

    def matches(message: Message) -> bool:
        return (
            message.source in held.sources
            and message.target in held.targets
            and message.is_request == held.is_request
            and type(message.body).__module__.startswith(_APIS_OF)
            and api_of(type(message.body)).name == held.api
        )

    return matches


def _is(body: type, *, source: int, target: int) -> Callable[[Message], bool]:
    def matches(message: Message) -> bool:
        is_between = (message.source, message.target) == (source, target)
        return is_between and isinstance(message.body, body)

    return matches
