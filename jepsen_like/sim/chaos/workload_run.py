"""One run of a workload on virtual time: what `quorumlab chaos run` does on processes.

    setup       the cluster starts; the workload's topics are made
    warm-up     clients without faults
    safety      clients with faults, as the schedule says
    liveness    all is healed, and must be whole again within a bound; clients go on
    final       fresh clients read what is there
    judgement   of the history alone

A run is a function of its plan: the same plan gives the same history and the same digest in any
process. Invariants are not looked at unless that is asked for: then the first broken one ends it.
"""

from collections.abc import Callable, Sequence

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Finding, Verdict, compose
from jepsen_like.clients.admin_client import AdminClient, RegisterClient, create_topic
from jepsen_like.clients.bank_client import BankClient
from jepsen_like.clients.log_client import LogClient
from jepsen_like.clients.steps import Clock, Steps
from jepsen_like.faults.kinds import kind_and_role
from jepsen_like.faults.nemesis import Nemesis, Roles
from jepsen_like.faults.validity import Figures, operations_during, why_void
from jepsen_like.histories.history import Header, History, Kind, Op
from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, digest_of, schedule_of
from jepsen_like.sim.chaos.sampled_beliefs import Observers
from jepsen_like.sim.chaos.workload_core import OpenClient, Performs, Workers
from jepsen_like.sim.chaos.workload_stages import ClusterStage, EnsembleStage, RegisterQuorum
from jepsen_like.sim.faults.virtual_injectors import injectors
from jepsen_like.sim.open_history import Recording
from jepsen_like.sim.time.ending import ANY_ERROR, ERROR, Ending, ending_of, error_ending
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Crash
from jepsen_like.sim.world.assembly import AnyAssembly
from jepsen_like.sim.world.client_releases import NEWEST, draw_release, spoken
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.interception import Interception
from jepsen_like.workloads.registry import PROMISES, WORKLOADS
from jepsen_like.workloads.workload import Done, NewTopic, Wish, Workload, WorkloadOptions, deed

__all__ = ["client_opener", "failed", "run_plan", "stage_of", "start_nemesis", "workload_of"]

_QUORUM_WORKLOADS = ("cas-register",)
# The chance that a process has older software: in most runs none has.
_OLDER_SHARES = (0.0, 0.0, 0.0, 0.5)
_LOG_WORKLOADS = ("admin", "kafka", "log", "observe", "transactions")
_EVENTS_MAX = 5_000_000
_READY_MS = 30_000  # for a cluster to start, and for topics to be made
_LIVENESS_MS = 45_000
_FINAL_MS = 60_000
_LOOK_MS = 50
_NEWS_MS = 1_000  # a broker hears later than who asked another that something was done
_SAMPLE_MS = 200
_OFTEN_MS = 50  # where samples are what is judged


def run_plan(plan: Plan) -> ChaosOutcome:
    """Also what is raised before there is a run is an outcome."""
    with planted(plan.plants):
        try:
            return _Run(plan).run()
        except ANY_ERROR as error:
            return failed(plan, error_ending(error))


def failed(plan: Plan, ending: Ending) -> ChaosOutcome:
    """Nothing is known of the run but how it ended."""
    history = History(header=_header(plan), ops=())
    return ChaosOutcome(
        plan=plan,
        schedule=plan.schedule or (),
        history=history,
        verdict=Verdict.undecided("nothing was judged"),
        broken=f"{ending.rule}: {ending.detail}",
        is_error=True,
        digest=digest_of(history, ""),
        now_ms=0,
        events=0,
    )


def _header(plan: Plan) -> Header:
    return Header(
        workload=plan.workload,
        seed=plan.seed,
        design=plan.design,
        options={
            "idempotent": plan.idempotent,
            "simulated": True,
            **PROMISES.get(plan.workload, {}),
        },
    )


class _Run:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stage = stage_of(plan)
        self._world = self._stage.world
        self._workload = workload_of(plan, self._stage)
        self._recording = Recording(now_us=lambda: self._world.now_us)
        open_client = client_opener(plan, self._stage)
        self._workers = Workers(self._workload, open_client, self._recording)
        self._workers.operations_max = plan.operations_max
        self._host = self._world.add_client(self._workers)
        self._host.settles_idly = self._workers.settles_idly
        self._schedule = schedule_of(plan)
        world = self._world
        self._messages = Interception(world.network, world.deliver, world.fork("rules"))
        self._nemesis = Nemesis(
            self._schedule,
            injectors=injectors(self._stage, self._messages),
            roles=Roles(
                controllers=self._stage.controllers or self._stage.brokers,
                brokers=self._stage.brokers,
                active_controller=lambda: self._stage.active_controller,
                partition_leaders=self._stage.partition_leaders,
                random=self._world.fork("roles"),
                zookeepers=self._stage.zookeepers,
            ),
            recording=self._recording,
            is_storm=plan.storm,
        )
        self._observers = Observers(
            self._stage,
            [topic.name for topic in self._workload.topics],
            self._recording,
            interval_ms=_OFTEN_MS if plan.workload == "observe" else _SAMPLE_MS,
            design=plan.zookeeper_design,
        )
        self._elections = 0  # of an active controller, while there were faults
        self._findings: list[Finding] = []
        self._measured: list[tuple[int, int]] = []  # ok operations and ms of warm-up and safety

    # --- phases -------------------------------------------------------------------------

    def run(self) -> ChaosOutcome:
        ending = ending_of(self._play)
        history = History(header=_header(self._plan), ops=tuple(self._recording.ops))
        verdict = Verdict.undecided("nothing was judged")
        if ending.kind != ERROR:
            try:
                verdict = compose([judge(history), Verdict.of(self._findings)])
            except ANY_ERROR as error:
                ending = error_ending(error)
        return self._outcome(ending, history, verdict)

    def _play(self) -> None:
        for host in (*self._world.nodes.values(), self._host):
            host.start()
        for host in self._world.nodes.values():
            host.on_stop = self._start_again
            host.must_not_stop = self._plan.judges_invariants
        self._reach("the cluster has not started", self._stage.missing, _READY_MS)
        self._make_topics()
        self._recording.begin()
        self._observers.start()
        self._workers.works = True
        self._host.command(lambda _now_ms: None)  # it has work now
        self._phase("warm-up", self._plan.warm_up_seconds * 1000)
        start_nemesis(self._nemesis, self._world)
        epoch = self._stage.epoch
        self._phase("safety", self._plan.seconds * 1000)
        self._nemesis.end()
        self._elections = self._stage.epoch - epoch
        self._messages.release_all()
        self._recording.enter(deed("phase", "liveness"))
        self._lives_again()
        self._workers.works = False
        self._run_until(lambda: "" if self._workers.is_idle else "busy", _FINAL_MS)
        self._read_back()

    def _phase(self, name: str, ms: int) -> None:
        self._recording.enter(deed("phase", name))
        before = len(self._recording.ops)
        self._run_ms(ms)
        done = sum(_is_ok(op) for op in self._recording.ops[before:])
        self._measured.append((done, ms))

    def _make_topics(self) -> None:
        """By a client of its own, whose work is no part of the history."""
        topics = list(self._workload.topics)
        if not topics:
            return
        maker = _TopicMaker(topics, self._stage.brokers[0], self._plan.timeout_ms)
        setup = Workers(maker, lambda _process, _clock: maker.perform, Recording())
        host = self._world.add_client(setup)
        host.start()
        setup.works = True
        host.command(lambda _now_ms: None)
        self._reach("the topics are not made", lambda: maker.missing, _READY_MS)
        setup.works = False
        self._reach("the topics are not in sync", self._stage.missing, _READY_MS)

    def _lives_again(self) -> None:
        began = self._recording.ops[-1].index
        for host in self._world.nodes.values():
            host.resume()
            if not host.is_up:
                host.start()
        why = self._run_until(self._stage.missing, _LIVENESS_MS)
        if why:
            detail = f"{_LIVENESS_MS / 1000:.0f} s after everything was healed: {why}"
            self._find("not-live-again", detail, began)
        self._run_ms(self._plan.warm_up_seconds * 1000)

    def _read_back(self) -> None:
        """When what clients have done last has come to all who are asked now."""
        self._run_ms(_NEWS_MS)
        begun = self._recording.enter(deed("phase", "final"))
        self._workers.begin_final()
        self._host.command(lambda _now_ms: None)
        why = self._run_until(lambda: "" if self._workers.is_idle else "reading", _FINAL_MS)
        if why or self._workers.unfinished:
            detail = f"not everything could be read within {_FINAL_MS / 1000:.0f} s"
            self._find("not-readable", detail, begun.index)

    def _find(self, rule: str, detail: str, index: int) -> None:
        self._findings.append(Finding(rule=rule, object="cluster", detail=detail, ops=(index,)))

    def _start_again(self, host: Host) -> None:
        """Somebody sees to it that a process that ended by itself is started again."""
        incarnation = host.incarnation

        def start() -> None:
            if not host.is_up and host.incarnation == incarnation:
                host.start()

        self._world.after(1_000_000, start)

    # --- time ---------------------------------------------------------------------------

    def _run_ms(self, ms: int) -> None:
        self._world.run_until(self._world.now_us + ms * 1000, events_max=_EVENTS_MAX)

    def _run_until(self, missing: Callable[[], str], bound_ms: int) -> str:
        """What is still missing when the time is up; "" if nothing is."""
        return self._world.wait_for(
            missing, bound_ms, events_max=_EVENTS_MAX, every_us=_LOOK_MS * 1000
        )

    def _reach(self, problem: str, missing: Callable[[], str], bound_ms: int) -> None:
        why = self._run_until(missing, bound_ms)
        if why:
            raise Crash("setup", f"{problem}: {why}")

    # --- judgement ----------------------------------------------------------------------

    def _outcome(self, ending: Ending, history: History, verdict: Verdict) -> ChaosOutcome:
        broken = "" if ending.kind == "ok" else f"{ending.rule}: {ending.detail}"
        return ChaosOutcome(
            plan=self._plan,
            schedule=self._schedule,
            history=history,
            verdict=verdict,
            broken=broken,
            is_error=ending.kind == ERROR,
            void=() if broken or verdict.findings else self._void(),
            fault_outcomes=tuple(self._nemesis.fault_outcomes),
            digest=digest_of(history, str(self._stage.digest)),
            now_ms=self._world.now_ms,
            events=self._world.events_done,
            counts={kind: count for kind, count in self._world.counts.by_kind.items() if count},
        )

    def _void(self) -> tuple[str, ...]:
        if self._plan.storm:
            return ()
        (calm, calm_ms), (wild, wild_ms) = self._measured
        figures = Figures(
            seconds=self._plan.seconds,
            kinds=[kind_and_role(wanted)[0] for wanted in self._plan.faults],
            faults=self._nemesis.fault_outcomes,
            operations=operations_during(self._recording.ops, self._nemesis.fault_outcomes),
            ok_a_second=1000 * wild / max(1, wild_ms),
            ok_a_second_without_faults=1000 * calm / max(1, calm_ms),
            controller_elections=self._elections,
        )
        return why_void(figures)


class _TopicMaker:
    """Makes topics before a history begins: a workload of its own, and its client."""

    name = "setup"
    processes = 1

    def __init__(self, topics: Sequence[NewTopic], broker: int, timeout_ms: int) -> None:
        self.topics = topics
        self._left = {topic.name: topic for topic in topics}
        self._broker = broker
        self._timeout_ms = timeout_ms

    @property
    def missing(self) -> str:
        return ", ".join(self._left)

    def next(self, process: int, now_ms: int) -> Wish | None:
        return Wish(f="add", value=next(iter(self._left))) if self._left else None

    def perform(self, wish: Wish) -> Steps[Done]:
        error = yield from create_topic(self._left[wish.value], self._broker, self._timeout_ms)
        return Done(kind=Kind.OK if error is not None else Kind.INFO, value=wish.value)

    def completed(self, op: Op) -> None:
        if op.kind is Kind.OK:
            self._left.pop(op.value, None)

    def final(self, process: int) -> Sequence[Wish]:
        return ()


def _is_ok(op: Op) -> bool:
    return op.kind is Kind.OK and isinstance(op.process, int)


def start_nemesis(nemesis: Nemesis, world: VirtualTime) -> None:
    """Play faults on virtual time: an event of the world whenever the next one is due."""

    def play() -> None:
        while (wait_ms := nemesis.play()) == 0:
            pass
        if wait_ms is not None:
            world.after(wait_ms * 1000, play)

    nemesis.begin()
    play()


def stage_of(plan: Plan) -> AnyAssembly:
    if plan.zookeeper_design is not None:
        return EnsembleStage(plan, plan.zookeeper_design)
    return RegisterQuorum(plan) if plan.workload in _QUORUM_WORKLOADS else ClusterStage(plan)


def workload_of(plan: Plan, stage: AnyAssembly) -> Workload:
    options = WorkloadOptions(
        seed=plan.seed,
        brokers=stage.brokers,
        controllers=(),  # topics are listed at brokers only: controllers do not speak Metadata
        processes=plan.processes,
        partitions=plan.partitions,
        pause_ms=plan.pause_ms,
        idempotent=plan.idempotent,
        stale_reads_as_reads=plan.stale_reads_as_reads,
    )
    return WORKLOADS[plan.workload](options)


def client_opener(plan: Plan, stage: AnyAssembly) -> OpenClient:
    share = stage.world.fork("releases of clients").choice(_OLDER_SHARES)

    def open_client(process: int, clock: Clock) -> Performs:
        random, timeout_ms = stage.world.fork(f"process/{process}"), plan.timeout_ms
        if plan.workload in _QUORUM_WORKLOADS:
            voters = stage.controllers
            return RegisterClient(voters, random=random, timeout_ms=timeout_ms).perform
        if plan.workload == "bank":
            bank = BankClient(stage.brokers, clock=clock, random=random, timeout_ms=timeout_ms)
            return bank.perform
        if plan.workload not in _LOG_WORKLOADS:
            controllers = stage.controllers
            admin = AdminClient(stage.brokers, controllers, random=random, timeout_ms=timeout_ms)
            return admin.perform
        release = draw_release(stage.world.fork(f"release/{process}"), share)
        client = LogClient(
            stage.brokers,
            clock=clock,
            random=random,
            timeout_ms=timeout_ms,
            is_idempotent=plan.idempotent,
            is_read_committed=plan.workload == "transactions",
        )
        if release is NEWEST:
            return client.perform
        return lambda wish: spoken(client.perform(wish), release)

    return open_client
