"""A quorum that does what a scenario says: the only file here that knows how one is simulated."""

from dataclasses import dataclass, replace

from jepsen_like.scenarios.machines import DISKS, LINKS, Machines
from jepsen_like.scenarios.quorum_story import QuorumStory
from jepsen_like.scenarios.steady_streams import SteadyStreams
from jepsen_like.scenarios.story import Story
from jepsen_like.sim.content import Content
from jepsen_like.sim.host import Host
from jepsen_like.sim.pace import AT_ONCE
from jepsen_like.sim.quorum.administrator import ADMINISTRATOR, Administrator
from jepsen_like.sim.quorum.quorum_options import Options
from jepsen_like.sim.quorum.replicas import SimulatedReplica
from jepsen_like.sim.quorum.simulated_quorum import SimulatedQuorum
from quorum.core.storage import METADATA_LOG
from quorum.raft.config import SnapshotSettings

__all__ = ["DirectedQuorum", "QuorumSettings"]

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
        streams = SteadyStreams()
        self.story = story
        self._told = QuorumStory(story)
        options = settings.options()
        self._quorum = quorum = SimulatedQuorum(
            0, options, tracer=self._told, is_judged=is_judged, streams=streams
        )
        self.machines = Machines(quorum.world, streams)
        self._told.slow = self.machines.slow
        self._administrator = Administrator(
            world=quorum.world,
            network=quorum.network,
            view=quorum.invariants.view,
            counts=quorum.counts,
            timeout_ms=options.request_timeout_ms,
        )
        quorum.world.delivers_elsewhere[ADMINISTRATOR] = self._administrator.deliver
        if not settings.are_timers_equal:
            self.machines.order_timers(self.machines.nodes)
        quorum.start()

    def _host(self, node: int) -> Host:
        return self._quorum.hosts[node - 1]

    # --- looking ------------------------------------------------------------------------

    def replica(self, node: int) -> SimulatedReplica:
        return self._quorum.replicas[node]

    @property
    def leader(self) -> int | None:
        """Of the newest epoch among those that take themselves for the leader."""
        leading = [node for node in self.machines.up if self.replica(node).leads]
        return max(leading, key=lambda node: self.replica(node).leader.epoch, default=None)

    def is_followed(self, leader: int) -> bool:
        """Do all nodes that it reaches follow it?"""
        known = self.replica(leader).leader
        reached = [node for node in self.machines.up if not self.machines.are_cut(leader, node)]
        return all(self.replica(node).leader == known for node in reached)

    def takes_records(self, node: int) -> bool:
        application = self.replica(node).application
        return node in self.machines.up and application.leads_epoch is not None

    def written(self, node: int) -> Content:
        return self._host(node).disk.log(METADATA_LOG).written

    def durable(self, node: int) -> Content:
        return self._host(node).disk.log(METADATA_LOG).durable

    @property
    def committed(self) -> int:
        return self._quorum.invariants.committed_offset

    @property
    def voters(self) -> list[int]:
        return [voter.id for voter in self._quorum.invariants.view.committed_voters]

    # --- doing --------------------------------------------------------------------------

    def forget(self, node: int) -> None:
        """Its process has ended."""
        self._told.forget(node)

    def stop(self, node: int) -> None:
        self._host(node).command(self.replica(node).shut_down)

    def wipe(self, node: int) -> None:
        self._host(node).disk.wipe()

    def propose(self, node: int) -> None:
        self._host(node).command(self.replica(node).propose)

    def resign(self, node: int) -> None:
        self._host(node).command(self.replica(node).resign)

    def add_voter(self, node: int, leader: int) -> None:
        self._administrator.add(self._host(leader), self._host(node))

    def remove_voter(self, node: int, leader: int) -> None:
        voters = self._quorum.invariants.view.committed_voters
        voter = next(voter for voter in voters if voter.id == node)
        self._administrator.remove(self._host(leader), voter)
