"""One run of a simulated quorum: a safety phase full of faults, then healing, then liveness.

    safety      faults of every kind that the options enable; invariants after every event
    healing     links whole, disks honest, the dead restarted
    liveness    a leader within 3 x L-EL; a new append committed and every log equal within 3 x
                L-HW more; then quiet: no election without a fault

A run is a function of its seed (and of the code): the same seed gives the same digest in any
process. Source: TigerBeetle's VOPR for the two phases.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from jepsen_like.planted.every_bug import BUGS, planted
from jepsen_like.sim.assemblies.quorum.clients.administrator import Administrator
from jepsen_like.sim.assemblies.quorum.drawn_faults import DrawnFaults, Losses
from jepsen_like.sim.assemblies.quorum.invariants.quorum_invariants import Invariants
from jepsen_like.sim.assemblies.quorum.quorum_options import Options, draw_options, draw_storage
from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.faults.virtual_injectors import injectors
from jepsen_like.sim.time.ending import Ending, ending_of
from jepsen_like.sim.time.pace import LASTS_US
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Stuck
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.interception import Interception
from jepsen_like.sim.world.network import LinkFaults
from jepsen_like.sim.world.observer import Observer
from jepsen_like.sim.world.world import Digest, World
from quorum.raft.voters import majority_count

__all__ = [
    "Outcome",
    "Simulation",
    "ending_of_run",
    "outcome_of",
    "run",
    "set_faults",
    "wait_for_disks",
]

_EVENTS_MAX = 3_000_000  # a run that needs more makes no progress
_REPLY_US = 2_000 + 2 * max(LASTS_US)  # how much later than promised an answer may come
_TRIES = 3  # of a change of voters, each with a bound of its own
_HEALTHY_LINKS = LinkFaults(delay_us_min=50, delay_us_mean=150)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a run. `kind`: see `jepsen_like.sim.time.ending`."""

    seed: int
    kind: str
    rule: str = ""  # the invariant, bound or cause, or the type of the exception
    detail: str = ""
    event: int = 0  # how many there were
    now_ms: int = 0
    digest: str = ""
    faults: dict[str, int] = field(default_factory=dict)
    elections: int = 0
    committed: int = 0  # records
    voters: int = 0
    observers: int = 0


class Simulation:
    """A quorum, the faults of one run, and its phases."""

    def __init__(
        self,
        seed: int,
        options: Options | None = None,
        tracer: Observer | None = None,
        *,
        is_judged: bool = True,
        on_files: bool = False,
    ) -> None:
        """Not judged: invariants are looked at, and may break.

        On files: the shipped storage runs, which else is drawn.
        """
        if options is None:
            options = _options_of(seed, on_files)
        self.options = options
        self.quorum = quorum = SimulatedQuorum(seed, options, tracer, is_judged=is_judged)
        self.world = world = quorum.world
        self._administrator = Administrator(quorum)
        known = injectors(quorum, Interception(world.network, world.deliver))
        self._faults = DrawnFaults(world, options, injectors=known, leads=quorum.leads)
        self._losses = Losses(quorum, self._faults, self._administrator)
        self._faults.others = {
            "bit-flip": self._losses.damage,
            "voters": lambda: self._administrator.change_voters(self._faults.leader()),
            "wipe": self._losses.wipe,
        }

    # --- phases -------------------------------------------------------------------------

    def run(self, events_max: int = _EVENTS_MAX) -> None:
        """All phases; raises Violation, Stuck, Crash or EventsSpent."""
        self.quorum.start()
        self._faults.begin()
        self.world.run_until(self.options.safety_ms * 1000, events_max=events_max)
        self._heal(events_max)
        self._elects(events_max)
        self._converges(events_max)
        self._stays_quiet(events_max)
        self._loses_its_leader(events_max)
        is_changeable = self.options.kraft_version > 0 and not self.quorum.astray()
        if is_changeable and len(self.quorum.up()) > 1:
            self._changes_voters(events_max)

    def _heal(self, events_max: int) -> None:
        """No more faults; what sick disks have begun ends in its own time."""
        set_faults(self.world)
        self.quorum.let_propose(False)
        self._faults.heal()
        wait_for_disks(self.world, events_max)

    def _elects(self, events_max: int) -> None:
        bound_ms = 3 * (self.options.election_bound_ms + self.quorum.catch_up_ms())
        if not self.world.reaches(lambda: self.quorum.leader() is not None, bound_ms, events_max):
            raise Stuck("L-EL", f"no leader within {bound_ms} ms: {self.quorum.summary()}")

    def _converges(self, events_max: int) -> None:
        """A new append is committed everywhere, and all logs are the same."""
        bound_ms = 3 * (self.options.catch_up_bound_ms + self.quorum.catch_up_ms())
        before = self.quorum.invariants.committed_offset
        self.quorum.propose()
        has_converged = partial(self.quorum.has_converged, above=before)
        if not self.world.reaches(has_converged, bound_ms, events_max):
            raise Stuck("L-HW", f"no agreement within {bound_ms} ms: {self.quorum.summary()}")

    def _stays_quiet(self, events_max: int) -> None:
        """No election without a fault, and no request without a reply.

        Votes that were under way, and timers that had all but run out, when everything was healed
        may still depose a leader: they are given their time first. A request that was delayed for
        longer may still remove a leader from the voters.
        """
        quiet_ms = 3 * max(self.options.fetch_timeout_ms, 2 * self.options.election_timeout_ms)
        self.world.run_until(self.world.now_us + quiet_ms * 1000, events_max=events_max)
        self._elects(events_max)
        view = self.quorum.invariants.view
        before, voters = self.quorum.leader(), view.committed_voters
        self.world.run_until(self.world.now_us + quiet_ms * 1000, events_max=events_max)
        if self.quorum.leader() != before and view.committed_voters == voters:
            raise Stuck("L-ST", f"{before} did not last {quiet_ms} ms: {self.quorum.summary()}")
        for host in self.quorum.hosts:
            if host.waited_us > 2_000 * self.options.fetch_max_wait_ms + _REPLY_US:
                raise Stuck("L-RP", f"node {host.node_id} owes a reply for {host.waited_us} us")

    def _loses_its_leader(self, events_max: int) -> None:
        """It dies; one that has followed it in peace leads in time; then it comes back."""
        view = self.quorum.invariants.view
        leader = self._leading_host(events_max)
        voting = [host for host in view.present(view.committed_voters) if host.is_up]
        if len(voting) - 1 < majority_count(len(view.committed_voters)):
            return
        leader.crash(power_loss=True)
        self._elects(events_max)
        leader.start()
        self._elects(events_max)
        self._converges(events_max)

    def _leading_host(self, events_max: int) -> Host:
        """A request that was delayed for long may have removed the leader of before."""
        self._elects(events_max)
        return self.quorum.leading_host()

    def _changes_voters(self, events_max: int) -> None:
        """L-MC: what nothing forbids is done, and the quorum goes on with other voters.

        Whoever has not caught up yet in the leader's epoch is refused once: it is asked for again.
        """
        view = self.quorum.invariants.view
        before = view.committed_voters
        bound_ms = self.options.catch_up_bound_ms + self.options.request_timeout_ms
        for _ in range(_TRIES):
            self._administrator.repair(self._leading_host(events_max))
            if self.world.reaches(lambda: view.committed_voters != before, bound_ms, events_max):
                break
        else:
            raise Stuck("L-MC", f"{before} after {_TRIES} tries: {self.quorum.summary()}")
        self._elects(events_max)
        self._converges(events_max)

    def outcome_of(self, play: Callable[[int], None], until_event: int | None = None) -> Outcome:
        return self.outcome(ending_of_run(play, until_event, events_max=_EVENTS_MAX))

    def outcome(self, ending: Ending) -> Outcome:
        return outcome_of(
            self.world, self.options, self.quorum.invariants, self.quorum.digest, ending
        )


def set_faults(
    world: World, links: LinkFaults | None = None, disks: DiskFaults | None = None
) -> None:
    """Set the faults of links and of all disks; they are healthy where none are given."""
    world.network.faults = links or _HEALTHY_LINKS
    for host in world.hosts.values():
        host.disk.faults = disks or DiskFaults()


def wait_for_disks(world: World, events_max: int) -> None:
    """What sick disks have begun ends in its own time."""
    busy_until_us = max(host.disk.busy_until_us for host in world.hosts.values())
    world.run_until(max(busy_until_us, world.now_us), events_max=events_max)


def ending_of_run(
    play: Callable[[int], None], until_event: int | None, *, events_max: int
) -> Ending:
    """Play, up to this event if one is given; `play` is told how many events there may be."""
    if until_event is None:
        return ending_of(lambda: play(events_max))
    return ending_of(lambda: play(until_event), is_cut=True)


def outcome_of(
    world: World, options: Options, invariants: Invariants, digest: Digest, ending: Ending
) -> Outcome:
    return Outcome(
        seed=world.seed,
        kind=ending.kind,
        rule=ending.rule,
        detail=ending.detail,
        event=world.events_done,
        now_ms=world.now_ms,
        digest=str(digest),
        faults=Counter(world.counts.by_kind),
        elections=invariants.elections,
        committed=invariants.committed_offset,
        voters=options.voters,
        observers=options.observers,
    )


def _options_of(seed: int, on_files: bool) -> Options:
    world = VirtualTime(seed)
    options = draw_options(world.fork("options"))
    return draw_storage(options, world.fork("storage"), is_wanted=on_files)


def run(
    seed: int,
    *,
    options: Options | None = None,
    plant: str | None = None,
    until_event: int | None = None,
    tracer: Observer | None = None,
) -> Outcome:
    """Run one seed, on the shipped rules or with the planted bug `plant`."""
    with planted(plant):
        on_files = plant in BUGS["file"]
        simulation = Simulation(seed, options, tracer, on_files=on_files)
        return simulation.outcome_of(simulation.run, until_event)
