"""The plan of a simulated run: everything that decides it, as it is kept in `run.json`; and what
came of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from random import Random

from jepsen_like.checkers.verdict import Verdict
from jepsen_like.faults.fault import Fault, Role, Scheduled, schedule_as_json, schedule_from_json
from jepsen_like.faults.fault_schedule import draw_schedule
from jepsen_like.faults.kinds import KINDS, kind_and_role
from jepsen_like.faults.validity import FaultOutcome
from jepsen_like.histories.history import History, Value, encode_header, encode_op
from wire.zk.designs import DESIGNS, Design

__all__ = ["ChaosOutcome", "Plan", "digest_of", "plan_as_json", "plan_from_json", "schedule_of"]

_EVERY = 3  # units between two faults, on the average
_LASTS = (0.05, 0.5, 2.0, 5.0)  # units
_WIDE = (Role.ALL, Role.MAJORITY, Role.BROKERS)
_MAY_BE_WIDE = ("kill", "pause", "power-loss", "torn-write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The same plan gives the same run."""

    seed: int
    design: str = "quorum"
    workload: str = "log"
    faults: tuple[str, ...] = ("kill",)
    seconds: int = 20  # of virtual time, with faults
    warm_up_seconds: int = 2
    controllers: int = 3  # none in the designs that have ZooKeeper
    zookeepers: int = 1  # in those alone
    brokers: int = 3
    processes: int = 4
    partitions: int = 3
    pause_ms: int = 100  # of a process between two operations, on the average
    unit_ms: int = 500  # of which all time-outs are multiples: these are a local cluster's
    idempotent: bool = True
    stale_reads_as_reads: bool = False  # a mistake of the checker's user; only tests make it
    plants: str | None = None  # bugs to plant, by name
    judges_invariants: bool = False  # the first broken one ends the run
    storm: bool = False  # many short faults, which spare nobody
    sync_us: int = 500  # how long a sync takes, on the average
    schedule: tuple[Scheduled, ...] | None = None  # None: drawn from the seed
    operations_max: int | None = None  # of clients, before the final reads

    @property
    def zookeeper_design(self) -> Design | None:
        """None in quorum mode."""
        return DESIGNS.get(self.design)

    @property
    def timeout_ms(self) -> int:
        """How long an operation may take."""
        return 6 * self.unit_ms


def _draw_storm(plan: Plan) -> tuple[Scheduled, ...]:
    """A schedule that no cluster of processes would bear: many short faults, on whomever they meet.

    Virtual time is cheap, and most bugs of replication need two faults within a few messages of
    each other, or all of a quorum to lose its power at once. Nothing is spared here, and no run is
    void for that: what a cluster acknowledged, it must keep. The faults come in the order of time.

    Source: TigerBeetle's VOPR, and `jepsen_like.sim.assemblies.quorum.drawn_faults`.
    """
    if not plan.faults:
        return ()
    random, unit_ms = Random(f"storm/{plan.seed}"), plan.unit_ms
    drawn: list[Scheduled] = []
    at_ms = 0.0
    while (at_ms := at_ms + random.expovariate(1 / (_EVERY * unit_ms))) < plan.seconds * 1000:
        name, given = kind_and_role(random.choice(plan.faults))
        drawn.append(
            Scheduled(
                at_ms=int(at_ms),
                lasts_ms=1 + int(random.expovariate(1 / (random.choice(_LASTS) * unit_ms))),
                fault=_fault(name, given, random),
            )
        )
    return tuple(drawn)


def _fault(name: str, given: Role | None, random: Random) -> Fault:
    kind = KINDS[name]
    roles = kind.roles
    if len(roles) > 1:
        roles = (*roles, Role.ACTIVE_CONTROLLER, Role.ONE_CONTROLLER)
    if name in _MAY_BE_WIDE and random.random() < 0.5:
        roles = _WIDE
    parameters = {key: random.choice(choices) for key, choices in kind.choices.items()}
    if name == "power-loss":
        parameters["amid"] = "write"  # of a sync's time, a power failure at random sees little
    return Fault(kind=name, role=given or random.choice(roles), parameters=parameters)


def schedule_of(plan: Plan) -> tuple[Scheduled, ...]:
    if plan.schedule is not None:
        return plan.schedule
    if plan.storm:
        return _draw_storm(plan)
    design = plan.zookeeper_design
    return draw_schedule(
        seed=plan.seed,
        kinds=plan.faults,
        seconds=plan.seconds,
        combined=design is not None,
        has_controller=design is None or design.has_controller,
    )


def plan_as_json(plan: Plan) -> dict[str, Value]:
    """With its schedule, drawn or not: what draws it may be another by then."""
    told = asdict(plan)
    told["faults"] = list(plan.faults)
    told["schedule"] = schedule_as_json(schedule_of(plan))
    return told


def plan_from_json(told: Mapping[str, Value]) -> Plan:
    """Raises ValueError with what is wrong."""
    known = {field.name for field in fields(Plan)}
    unknown = sorted(set(told) - known)
    if unknown:
        raise ValueError(f"no plan of a simulated run: it has {', '.join(unknown)}")
    try:
        schedule = schedule_from_json(told["schedule"])
        return Plan(**{**told, "faults": tuple(told["faults"]), "schedule": schedule})
    except (KeyError, TypeError) as error:
        raise ValueError(f"no plan of a simulated run: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosOutcome:
    plan: Plan
    schedule: tuple[Scheduled, ...]
    history: History
    verdict: Verdict
    broken: str = ""  # the invariant that was, how a core failed, or an exception
    is_error: bool = False  # an exception that no rule foresees: then nothing is judged
    void: tuple[str, ...] = ()
    fault_outcomes: tuple[FaultOutcome, ...] = ()
    digest: str
    now_ms: int
    events: int
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_red(self) -> bool:
        return bool(self.verdict.findings) or bool(self.broken)


def digest_of(history: History, of_stage: str) -> str:
    digest = blake2b(encode_header(history.header), digest_size=8)
    for op in history.ops:
        digest.update(encode_op(op))
    digest.update(of_stage.encode())
    return digest.hexdigest()
