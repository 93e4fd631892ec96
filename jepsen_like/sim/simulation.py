"""One run of a simulated quorum: a safety phase full of faults, then healing, then liveness.

    safety      faults of every kind that the options enable; invariants after every event
    healing     links whole, disks honest, the dead restarted
    liveness    a leader within 3 x L-EL; a new append committed and every log equal within 3 x
                L-HW more; then quiet: no election without a fault

A run is a function of its seed (and of the code): the same seed gives the same digest in any
process. Source: TigerBeetle's VOPR for the two phases.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from jepsen_like.sim.administrator import ADMINISTRATOR, Administrator
from jepsen_like.sim.codec import Codec
from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disk import Disk, DiskFaults
from jepsen_like.sim.host import Clock, Host
from jepsen_like.sim.invariants import Invariants
from jepsen_like.sim.logtree import Entry, LogTree
from jepsen_like.sim.losses import Losses
from jepsen_like.sim.nemesis import Nemesis
from jepsen_like.sim.network import LinkFaults, Message, Network
from jepsen_like.sim.options import Options, draw_options
from jepsen_like.sim.planted import planted
from jepsen_like.sim.quorum_view import written
from jepsen_like.sim.replicas import SimulatedReplica, format_disk, start_replica, voters_at_start
from jepsen_like.sim.tracing import Tracer
from jepsen_like.sim.violation import Crash, Stuck, Violation
from jepsen_like.sim.world import EventsSpent, World
from quorum.effects import Core, Effect, Event
from quorum.storage import METADATA_LOG
from quorum.types import LeaderAndEpoch

__all__ = ["Outcome", "Simulation", "run"]

_EVENTS_MAX = 3_000_000  # a run that needs more makes no progress
_POLL_US = 2_000  # how often the liveness phase looks
_FETCH_MS = 2  # a round trip and a sync of a healthy cluster: the least that a batch may take
_DIGEST = Struct(">qqqqqq")
_HEALTHY_LINKS = LinkFaults(delay_us_min=50, delay_us_mean=150)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a run. `kind` is "ok", "safety", "liveness", "crash" or "cut short"."""

    seed: int
    kind: str
    rule: str = ""  # the invariant, bound or cause
    detail: str = ""
    event: int  # how many there were
    now_ms: int
    digest: str
    faults: dict[str, int]
    elections: int
    committed: int  # records
    voters: int
    observers: int


class Simulation:
    """The parts of one run, wired together."""

    def __init__(
        self, seed: int, options: Options | None = None, tracer: Tracer | None = None
    ) -> None:
        self.world = World(seed)
        self.options = draw_options(self.world.fork("options")) if options is None else options
        self.counts = Counts()
        self.replicas: dict[int, SimulatedReplica] = {}
        self._tracer = tracer
        if tracer is not None:
            tracer.attach(self.world)
        self._digest = blake2b(digest_size=8)
        self._tree = LogTree()
        self._is_healed = False
        self.invariants = Invariants(
            world=self.world,
            voters=voters_at_start(self.options).keys,
            check_quorum_us=_unheard_us(self.options),
        )
        self._network = Network(
            world=self.world,
            random=self.world.fork("network"),
            counts=self.counts,
            faults=self.options.links,
            deliver=self._deliver,
        )
        codec = None
        if self.options.codecs:
            codec = Codec(self.world.fork("codec"), self.options.kraft_version)
        nodes = range(1, self.options.voters + self.options.observers + 1)
        self.hosts = [self._host(node_id, codec) for node_id in nodes]
        self._nemesis = Nemesis(
            world=self.world,
            network=self._network,
            hosts=self.hosts,
            options=self.options,
            counts=self.counts,
            leads=lambda host: self.replicas[host.node_id].leads,
            resign=lambda host: host.command(self.replicas[host.node_id].resign),
            shut_down=lambda host: host.command(self.replicas[host.node_id].shut_down),
            others={
                "damaged": lambda: self._losses.damage(),
                "voters": lambda: self._administrator.change_voters(self._nemesis.leader()),
                "wiped": lambda: self._losses.wipe(),
            },
        )
        self._losses = Losses(
            view=self.invariants.view,
            hosts=self.hosts,
            counts=self.counts,
            voters_are_in_the_log=self.options.kraft_version > 0,
            nemesis=self._nemesis,
        )
        self._administrator = Administrator(
            world=self.world,
            network=self._network,
            view=self.invariants.view,
            counts=self.counts,
            timeout_ms=self.options.request_timeout_ms,
        )

    def _host(self, node_id: int, codec: Codec | None) -> Host:
        disk = Disk(
            world=self.world,
            random=self.world.fork(f"disk/{node_id}"),
            counts=self.counts,
            faults=self.options.disks,
            tree_of=lambda _log: self._tree,
        )
        disk.saved = lambda _log, election: self.invariants.saved(node_id, election)
        return Host(
            node_id=node_id,
            world=self.world,
            network=self._network,
            disk=disk,
            clock=self._clock(node_id),
            codec=codec,
            counts=self.counts,
            watch=self,
            start_core=self._start_core,
        )

    def _clock(self, node_id: int) -> Clock:
        random = self.world.fork(f"clock/{node_id}")
        drift_ppm = random.randint(-self.options.drift_ppm_max, self.options.drift_ppm_max)
        if drift_ppm:
            self.counts.fired("skewed")
        return Clock(offset_ms=random.randrange(600_000), drift_ppm=drift_ppm)

    def _start_core(self, host: Host) -> Core:
        replica = start_replica(
            host=host,
            options=self.options,
            world=self.world,
            applies=self.invariants.applies,
            loads=self.invariants.loads,
        )
        replica.application.proposes = not self._is_healed
        self.replicas[host.node_id] = replica
        self.invariants.started(host, replica)
        return replica.member

    def _deliver(self, message: Message) -> None:
        if message.target == ADMINISTRATOR:
            self._administrator.deliver(message)
        else:
            self.hosts[message.target - 1].deliver(message)

    # --- Watch --------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        self.invariants.received(host, event)
        if self._tracer is not None:
            self._tracer.received(host, event)

    def performing(self, host: Host, effect: Effect) -> None:
        if self._tracer is not None:
            self._tracer.performing(host, effect)
        self.invariants.performing(host, effect)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        self.invariants.replying(host, token, request, response)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        replica = self.replicas[host.node_id]
        leader, high_watermark = replica.leader, replica.high_watermark
        self._digest.update(
            _DIGEST.pack(
                self.world.now_us,
                host.node_id << 32 | len(effects),
                leader.epoch,
                -1 if leader.leader_id is None else leader.leader_id,
                -1 if high_watermark is None else high_watermark,
                replica.end_offset,
            )
        )
        if self._tracer is not None:
            self._tracer.settled(host, replica)
        self.invariants.settled(host, effects)
        self._nemesis.settled(host, effects)

    # --- phases -------------------------------------------------------------------------

    def run(self, events_max: int = _EVENTS_MAX) -> None:
        """All phases; raises Violation, Stuck, Crash or EventsSpent."""
        for host in self.hosts:
            format_disk(host, self.options)
            host.start()
        self._nemesis.begin()
        self.world.run_until(self.options.safety_ms * 1000, events_max=events_max)
        self._heal()
        self._elects(events_max)
        self._converges(events_max)
        self._stays_quiet(events_max)

    def _heal(self) -> None:
        self._is_healed = True
        self._network.faults = _HEALTHY_LINKS
        for host in self.hosts:
            host.disk.faults = DiskFaults()
        for replica in self.replicas.values():
            replica.application.proposes = False
        self._nemesis.heal()

    def _elects(self, events_max: int) -> None:
        bound_ms = 3 * (self.options.election_bound_ms + self._catch_up_ms())
        if not self._reaches(lambda: self._leader() is not None, bound_ms, events_max):
            raise Stuck("L-EL", f"no leader within {bound_ms} ms: {self._summary()}")

    def _converges(self, events_max: int) -> None:
        """A new append is committed everywhere, and all logs are the same."""
        bound_ms = 3 * (self.options.catch_up_bound_ms + self._catch_up_ms())
        leader = self._leader()
        assert leader is not None
        assert leader.leader_id is not None
        self.hosts[leader.leader_id - 1].command(self.replicas[leader.leader_id].propose)
        if not self._reaches(self._has_converged, bound_ms, events_max):
            raise Stuck("L-HW", f"no agreement within {bound_ms} ms: {self._summary()}")

    def _stays_quiet(self, events_max: int) -> None:
        """No election without a fault, and no request without a reply.

        Votes that were under way, and timers that had all but run out, when everything was healed
        may still depose a leader: they are given their time first.
        """
        quiet_ms = 3 * max(self.options.fetch_timeout_ms, 2 * self.options.election_timeout_ms)
        self.world.run_until(self.world.now_us + quiet_ms * 1000, events_max=events_max)
        self._elects(events_max)
        before = self._leader()
        self.world.run_until(self.world.now_us + quiet_ms * 1000, events_max=events_max)
        if self._leader() != before:
            raise Stuck("L-ST", f"{before} did not last {quiet_ms} ms: {self._summary()}")
        for host in self.hosts:
            if host.waited_us > 2_000 * self.options.fetch_max_wait_ms + _POLL_US:
                raise Stuck("L-RP", f"node {host.node_id} owes a reply for {host.waited_us} us")

    def _reaches(self, condition: Callable[[], bool], bound_ms: int, events_max: int) -> bool:
        end_us = self.world.now_us + bound_ms * 1000
        while not condition():
            if self.world.now_us >= end_us:
                return False
            self.world.run_until(min(end_us, self.world.now_us + _POLL_US), events_max=events_max)
        return True

    def _leader(self) -> LeaderAndEpoch | None:
        """The leader whom every node knows, and who is ready to append; None if there is none."""
        up = self._up()
        first = self.replicas[up[0].node_id].leader
        if first.leader_id is None:
            return None
        if any(self.replicas[host.node_id].leader != first for host in up):
            return None
        application = self.replicas[first.leader_id].application
        return first if application.leads_epoch == first.epoch else None

    def _up(self) -> list[Host]:
        """All but those whose damaged disk nobody could replace."""
        return [host for host in self.hosts if host.is_up]

    def _has_converged(self) -> bool:
        last = self.invariants.committed[-1]
        return all(self._has_all(host, last) for host in self._up())

    def _has_all(self, host: Host, last: Entry) -> bool:
        log, replica = host.disk.log(METADATA_LOG), self.replicas[host.node_id]
        content = log.durable if self.invariants.view.is_voter(host) else log.written
        return (
            content.last is last
            and replica.high_watermark == last.next_offset
            and replica.application.end_offset == last.next_offset
        )

    def _catch_up_ms(self) -> int:
        """For who is furthest behind: small fetches take one round trip a batch."""
        ends = [written(host).last for host in self._up()]
        counts = [-1 if last is None else last.index for last in ends]
        return (max(counts) - min(counts)) * _FETCH_MS

    def _summary(self) -> str:
        return "; ".join(
            f"{node} {replica.role_name} {replica.leader} hw={replica.high_watermark}"
            f" end={replica.end_offset}"
            for node, replica in sorted(self.replicas.items())
        )

    def outcome(self, kind: str, rule: str = "", detail: str = "") -> Outcome:
        return Outcome(
            seed=self.world.seed,
            kind=kind,
            rule=rule,
            detail=detail,
            event=self.world.events_done,
            now_ms=self.world.now_ms,
            digest=self._digest.hexdigest(),
            faults=dict(self.counts.by_kind),
            elections=self.invariants.elections,
            committed=self.invariants.committed_offset,
            voters=self.options.voters,
            observers=self.options.observers,
        )


def _unheard_us(options: Options) -> int:
    """R-CQ: twice the timer, since its window may begin just after a majority was heard.

    A slow clock stretches it; busy processes are late with timers.
    """
    timeout_us = options.fetch_timeout_ms * 1500
    return 2 * timeout_us * 1_000_000 // (1_000_000 - options.drift_ppm_max) + 10_000


def run(
    seed: int,
    *,
    options: Options | None = None,
    plant: str | None = None,
    until_event: int | None = None,
    tracer: Tracer | None = None,
) -> Outcome:
    """Run one seed, on the shipped rules or with the planted bug `plant`."""
    with planted(plant):
        simulation = Simulation(seed, options, tracer)
        try:
            simulation.run(_EVENTS_MAX if until_event is None else until_event)
        except Violation as violation:
            return simulation.outcome("safety", violation.invariant, violation.detail)
        except Stuck as stuck:
            return simulation.outcome("liveness", stuck.bound, stuck.detail)
        except Crash as crash:
            return simulation.outcome("crash", crash.cause, crash.detail)
        except EventsSpent:
            if until_event is not None:
                return simulation.outcome("cut short")
            return simulation.outcome("liveness", "events", f"more than {_EVENTS_MAX} events")
        return simulation.outcome("ok")
