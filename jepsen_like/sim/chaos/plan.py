"""The plan of a simulated run: everything that decides it, as it is kept in `run.json`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from jepsen_like.faults.fault import Scheduled, schedule_as_json, schedule_from_json
from jepsen_like.faults.fault_schedule import draw_schedule, without_controller
from jepsen_like.histories.history import Value
from jepsen_like.sim.chaos.storm import draw_storm
from wire.zk.designs import DESIGNS, Design

__all__ = ["Plan", "plan_as_json", "plan_from_json", "schedule_of"]


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
        """Of an operation."""
        return 6 * self.unit_ms


def schedule_of(plan: Plan) -> tuple[Scheduled, ...]:
    if plan.schedule is not None:
        return plan.schedule
    if plan.storm:
        return draw_storm(
            seed=plan.seed, kinds=plan.faults, seconds=plan.seconds, unit_ms=plan.unit_ms
        )
    design = plan.zookeeper_design
    drawn = draw_schedule(
        seed=plan.seed, kinds=plan.faults, seconds=plan.seconds, combined=design is not None
    )
    has_controller = design is None or design.has_controller
    return drawn if has_controller else without_controller(drawn)


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
