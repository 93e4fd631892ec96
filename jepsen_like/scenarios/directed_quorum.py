"""A quorum that does what a scenario says: the only file here that knows how one is simulated."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from jepsen_like.scenarios.quorum_story import QuorumStory
from jepsen_like.scenarios.steady_world import SteadyWorld
from jepsen_like.scenarios.story import Story
from jepsen_like.sim.content import Content
from jepsen_like.sim.disk import DiskFaults
from jepsen_like.sim.host import Host
from jepsen_like.sim.interception import Interception, Rule
from jepsen_like.sim.network import LinkFaults, Message
from jepsen_like.sim.pace import AT_ONCE
from jepsen_like.sim.quorum.administrator import ADMINISTRATOR, Administrator
from jepsen_like.sim.quorum.options import Options
from jepsen_like.sim.quorum.replicas import SimulatedReplica
from jepsen_like.sim.quorum.simulated_quorum import SimulatedQuorum
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ReplicaKey
from quorum.raft.config import SnapshotSettings

__all__ = ["DISKS", "EVENTS_MAX", "LINKS", "DirectedQuorum", "QuorumSettings"]

EVENTS_MAX = 300_000
_POLL_US = 250
_CUT = "cut_two_way"
LINKS = LinkFaults(delay_us_min=1_000, delay_us_mean=1)
DISKS = DiskFaults(sync_us_min=200, sync_us_mean=1, keeps_unsynced=False)
_OPTIONS = Options(
    kraft_version=1,
    election_timeout_ms=100,
    fetch_timeout_ms=300,
    fetch_max_wait_ms=10,  # so short that timers, not the moment of a fetch, say who is first
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    shutdown_timeout_ms=100,
    propose_interval_ms=0,
    turns_us=AT_ONCE,
    links=LINKS,
    disks=DISKS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    voters: int
    observers: int = 0
    snapshot_bytes: int = 0  # after how many a snapshot is taken; 0: none is
    fetch_bytes: int = _OPTIONS.bytes_max  # of one fetch, which gives one batch at least
    are_timers_equal: bool = False

    def options(self) -> Options:
        """The log before a snapshot is dropped as soon as it may be."""
        often = SnapshotSettings(
            bytes_between=self.snapshot_bytes, interval_ms=0, retention_bytes=0
        )
        return replace(
            _OPTIONS,
            voters=self.voters,
            observers=self.observers,
            bytes_max=self.fetch_bytes,
            snapshots=often if self.snapshot_bytes else SnapshotSettings(),
        )


class DirectedQuorum:
    """Not judged: invariants are not looked at."""

    def __init__(self, story: Story, settings: QuorumSettings, *, is_judged: bool) -> None:
        self._world = SteadyWorld()
        self.story = story
        self._told = QuorumStory(story)
        options = settings.options()
        self.quorum = SimulatedQuorum(self._world, options, tracer=self._told, is_judged=is_judged)
        self._administrator = Administrator(
            world=self._world,
            network=self.quorum.network,
            view=self.quorum.invariants.view,
            counts=self.quorum.counts,
            timeout_ms=options.request_timeout_ms,
        )
        self.quorum.delivers_elsewhere = self._administrator.deliver
        self._messages = Interception(self.quorum.network, self._deliver)
        self._rules: list[Rule] = []
        self._cuts: list[list[tuple[int, int]]] = []
        if not settings.are_timers_equal:
            self.order_timers(self.nodes)
        self.quorum.start()

    def _deliver(self, message: Message) -> None:
        if message.target == ADMINISTRATOR:
            self._administrator.deliver(message)
        else:
            self.host(message.target).deliver(message)

    # --- looking ------------------------------------------------------------------------

    @property
    def nodes(self) -> list[int]:
        return [host.node_id for host in self.quorum.hosts]

    @property
    def up(self) -> list[int]:
        return [host.node_id for host in self.quorum.hosts if host.is_up]

    def host(self, node: int) -> Host:
        return self.quorum.hosts[node - 1]

    def replica(self, node: int) -> SimulatedReplica:
        return self.quorum.replicas[node]

    @property
    def leader(self) -> int | None:
        """Of the newest epoch among those that take themselves for the leader."""
        leading = [node for node in self.up if self.replica(node).leads]
        return max(leading, key=lambda node: self.replica(node).leader.epoch, default=None)

    def is_followed(self, leader: int) -> bool:
        """Do all nodes that it reaches follow it?"""
        known = self.replica(leader).leader
        reached = [node for node in self.up if not self.quorum.network.is_cut(leader, node)]
        return all(self.replica(node).leader == known for node in reached)

    def takes_records(self, node: int) -> bool:
        return node in self.up and self.replica(node).application.leads_epoch is not None

    def written(self, node: int) -> Content:
        return self.host(node).disk.log(METADATA_LOG).written

    def durable(self, node: int) -> Content:
        return self.host(node).disk.log(METADATA_LOG).durable

    @property
    def committed(self) -> int:
        return self.quorum.invariants.committed_offset

    @property
    def voters(self) -> list[int]:
        return [voter.id for voter in self.quorum.invariants.view.committed_voters]

    # --- time ---------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        self._world.run_until(self._world.now_us + ms * 1000, events_max=EVENTS_MAX)

    def reach(self, condition: Callable[[], bool], within_ms: int) -> bool:
        end_us = self._world.now_us + within_ms * 1000
        while not condition():
            if self._world.now_us >= end_us:
                return False
            self._world.run_until(self._world.now_us + _POLL_US, events_max=EVENTS_MAX)
        return True

    def order_timers(self, nodes: Iterable[int]) -> None:
        """The random parts of time-outs grow in this order of the nodes."""
        ordered = list(nodes)
        for place, node in enumerate(ordered):
            self._world.shares[node] = place / len(ordered)

    def level_timers(self) -> None:
        """No random part: whoever begins to wait at the same time stops at the same time."""
        self._world.shares.clear()

    # --- processes and disks ------------------------------------------------------------

    def crash(self, node: int, *, power_loss: bool) -> None:
        self._told.forget(node)
        self.host(node).crash(power_loss=power_loss)

    def restart(self, node: int) -> None:
        self.host(node).start()

    def stop(self, node: int) -> None:
        host = self.host(node)
        host.command(self.replica(node).shut_down)
        self.reach(lambda: not host.is_up, within_ms=1000)
        self._told.forget(node)

    def wipe(self, node: int) -> None:
        self.host(node).disk.wipe()

    def pause(self, node: int) -> None:
        self.host(node).pause()

    def resume(self, node: int) -> None:
        self.host(node).resume()

    def sync_in(self, node: int, ms: int) -> None:
        """How long a sync takes from now on."""
        self.host(node).disk.faults = replace(DISKS, sync_us_min=ms * 1000)
        self._told.slow.add(node)

    # --- links --------------------------------------------------------------------------

    def cut(self, side: Iterable[int], others: Iterable[int]) -> None:
        links = [(a, b) for a in side for b in others]
        links += [(b, a) for a, b in links]
        self.quorum.network.cut(links, kind=_CUT, holding=False)
        self._cuts.append(links)

    def heal(self) -> None:
        for links in self._cuts:
            self.quorum.network.heal(links, kind=_CUT)
        self._cuts.clear()

    def hold(self, matches: Callable[[Message], bool]) -> None:
        self._rules.append(self._messages.hold(matches))

    @property
    def held(self) -> int:
        """How many messages are kept."""
        return sum(len(rule.kept) for rule in self._rules)

    def release(self) -> None:
        """What is kept arrives now; nothing is kept any more."""
        self._end_rules(self._messages.release)

    def lose(self) -> None:
        """What is kept never arrives; nothing is kept any more."""
        self._end_rules(self._messages.drop)

    def _end_rules(self, end: Callable[[Rule], None]) -> None:
        rules, self._rules = self._rules, []
        for rule in rules:
            end(rule)

    # --- the replicas -------------------------------------------------------------------

    def propose(self, node: int) -> None:
        self.host(node).command(self.replica(node).propose)

    def resign(self, node: int) -> None:
        self.host(node).command(self.replica(node).resign)

    def add_voter(self, node: int, leader: int) -> None:
        self._administrator.add(self.host(leader), self.host(node))

    def remove_voter(self, node: int, leader: int) -> None:
        self._administrator.remove(self.host(leader), self._voter(node))

    def _voter(self, node: int) -> ReplicaKey:
        voters = self.quorum.invariants.view.committed_voters
        return next(voter for voter in voters if voter.id == node)
