"""Seeds of the simulator on the machines of a cluster: each is run and judged where it is given to.

Seeds go in as a table with a column `seed`, and what they came to comes out as one:

    schema      the version of this table
    seed        and nothing else is needed to run it again
    outcome     of a simulation: ok, or the kind of its end; of a workload: its verdict, or error
    rule        that was broken; detail: how
    digest      of all that happened
    faults      that were injected, of a workload those that bit: how many of each kind
    coverage    how often what happened: "transition …", "trace …", "meeting …"
    void        why a run of a workload proves nothing
    findings    of a workload, the first few
    events, virtual_ms, elections, committed, voters, observers

It is lazy, as tables are, and asks nothing of a session that only some have: see `library`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.sim.assemblies.quorum.simulation import Outcome as Ended
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan
from jepsen_like.sim.chaos.workload_run import failed, run_plan
from jepsen_like.sim.runs.sweep import Run, SweepResult, error_outcome, run_seed
from jepsen_like.sim.runs.workers import Died, mapped
from jepsen_like.sim.time.ending import ERROR, Ending
from jepsen_like.sim.world.coverage import Coverage
from spark.bounded import bounded
from spark.schema import ddl_of
from spark.session import Settings
from spark.shipping import ship

__all__ = [
    "OUTCOMES",
    "Plans",
    "Runs",
    "Seeds",
    "Swept",
    "outcomes",
    "run_plans",
    "sweep_seeds",
]

VERSION = 1
_OK = "ok"
Result = TypeVar("Result")
_TASKS_MIN = 64  # if there are as many seeds
_TASK_MAX = 100  # seeds, so that the last one does not keep all others waiting for long
_FINDINGS_KEPT = 5
_SHOWN = 20
_FINDING = pa.struct(
    [
        pa.field("rule", pa.string()),
        pa.field("object", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("operations", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """One row: how a seed ended. It has no history, since the seed gives that again."""

    seed: int
    outcome: str
    rule: str = ""
    detail: str = ""
    digest: str
    events: int
    virtual_ms: int
    elections: int = 0
    committed: int = 0
    voters: int = 0
    observers: int = 0
    faults: Mapping[str, int]
    coverage: Mapping[str, int] = field(default_factory=dict)
    void: Sequence[str] = ()
    findings: Sequence[Mapping[str, Any]] = ()


_TYPES = {
    **dict.fromkeys(("outcome", "rule", "detail", "digest"), pa.string()),
    **dict.fromkeys(("faults", "coverage"), pa.map_(pa.string(), pa.int64())),
    "void": pa.list_(pa.string()),
    "findings": pa.list_(_FINDING),
}
OUTCOMES = pa.schema(
    [
        pa.field("schema", pa.int32()),
        *(pa.field(each.name, _TYPES.get(each.name, pa.int64())) for each in fields(Swept)),
    ]
)


class Work(Protocol):
    """Runs one seed, in a process that may die of it. It is pickled for the workers."""

    def __call__(self, seed: int, /) -> Swept: ...

    def died(self, seed: int, how: Ending) -> Swept: ...


@dataclass(frozen=True, slots=True)
class Seeds:
    """Simulations without a workload; `run` is a function of some module."""

    run: Run
    plant: str | None = None

    def __call__(self, seed: int) -> Swept:
        coverage = Coverage()
        ended = run_seed(self.run, seed, plant=self.plant, tracer=coverage)
        return _simulated(ended, coverage)

    def died(self, seed: int, how: Ending) -> Swept:
        return _simulated(error_outcome(seed, how), Coverage())


@dataclass(frozen=True, slots=True)
class Plans:
    """Runs of a workload, which differ in their seeds only."""

    plan: Plan

    def __call__(self, seed: int) -> Swept:
        return _judged(run_plan(replace(self.plan, seed=seed)))

    def died(self, seed: int, how: Ending) -> Swept:
        return _judged(failed(replace(self.plan, seed=seed), how))


def outcomes(seeds: DataFrame, work: Work, *, tasks: int) -> DataFrame:
    """What the seeds come to, as a table that is made when it is used."""
    ship(seeds.sparkSession)
    spread = seeds.selectExpr("cast(seed as bigint) as seed").repartition(tasks)
    return spread.mapInArrow(_Sweeping(work).told, ddl_of(OUTCOMES))


@dataclass(frozen=True, slots=True)
class _Sweeping:
    work: Work

    def told(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            seeds = batch.column("seed").to_pylist()
            with closing(mapped(self.work, seeds, 1)) as ended:
                rows = [
                    self.work.died(seed, swept.ending) if isinstance(swept, Died) else swept
                    for seed, swept in ended
                ]
            if rows:
                yield _batch_of(rows)


def _batch_of(rows: Sequence[Swept]) -> pa.RecordBatch:
    arrays = [pa.repeat(pa.scalar(VERSION, pa.int32()), len(rows))]
    for each in list(OUTCOMES)[1:]:
        cells = [getattr(row, each.name) for row in rows]
        if pa.types.is_map(each.type):
            cells = [list(cell.items()) for cell in cells]
        arrays.append(pa.array(cells, each.type))
    return pa.RecordBatch.from_arrays(arrays, schema=OUTCOMES)


def _simulated(ended: Ended, coverage: Coverage) -> Swept:
    counted = {
        f"{what} {name}": count
        for what, counts in _counters(coverage).items()
        for name, count in counts.items()
    }
    return Swept(
        seed=ended.seed,
        outcome=ended.kind,
        rule=ended.rule,
        detail=ended.detail,
        digest=ended.digest,
        events=ended.event,
        virtual_ms=ended.now_ms,
        elections=ended.elections,
        committed=ended.committed,
        voters=ended.voters,
        observers=ended.observers,
        faults=ended.faults,
        coverage=counted,
    )


def _counters(coverage: Coverage) -> Mapping[str, Counter[str]]:
    return {
        "transition": coverage.transitions,
        "trace": coverage.traces,
        "meeting": coverage.meetings,
    }


def _judged(run: ChaosOutcome) -> Swept:
    outcome = run.verdict.outcome.value
    if run.is_red and outcome != Outcome.VIOLATED.value:
        outcome = ERROR if run.is_error else Outcome.VIOLATED.value
    bitten = (each.scheduled.fault.kind for each in run.fault_outcomes if each.proof.bit)
    return Swept(
        seed=run.plan.seed,
        outcome=outcome,
        detail=run.broken,
        digest=run.digest,
        events=run.events,
        virtual_ms=run.now_ms,
        faults=Counter(bitten),
        void=run.void,
        findings=[_finding(each) for each in run.verdict.findings[:_FINDINGS_KEPT]],
    )


def _finding(told: Finding) -> Mapping[str, Any]:
    shown = {"rule": told.rule, "object": told.object, "detail": told.detail}
    return {**shown, "operations": list(told.ops)}


# --- what a command tells -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """What the runs of a workload came to."""

    ended: Mapping[tuple[str, bool], int]  # how many, by their outcome and by whether they are void
    bitten: Mapping[str, int]  # faults, by kind
    shown: Sequence[Swept]  # the first of those that are violated, or errors


def sweep_seeds(
    spark: SparkSession,
    seeds: Sequence[int],
    settings: Settings,
    *,
    run: Run,
    plant: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
    path: str | None = None,
) -> SweepResult:
    """Raises `NotInTime`, and `OutputExists`. `progress` is told which share of the seeds is done;
    `path` is where the table is written."""

    def result(table: DataFrame) -> SweepResult:
        from spark.summary import counted

        sums = ("events", "virtual_ms", "elections", "committed")
        totals = table.selectExpr("count(*) as seeds", *(f"sum({each}) as {each}" for each in sums))
        wrong = table.filter(f"outcome != '{_OK}'").orderBy("seed").drop("coverage").collect()
        total = {name: count or 0 for name, count in totals.collect()[0].asDict().items()}
        return SweepResult(
            seeds=total["seeds"],
            events=total["events"],
            virtual_ms=total["virtual_ms"],
            elections=total["elections"],
            committed=total["committed"],
            faults=Counter(counted(table, "faults")),
            coverage=_coverage(counted(table, "coverage")),
            failures=[_ended(row) for row in wrong],
        )

    return _kept(spark, seeds, settings, Seeds(run, plant), result, progress, path)


def run_plans(
    spark: SparkSession,
    plan: Plan,
    seeds: Sequence[int],
    settings: Settings,
    *,
    progress: Callable[[float], None] = lambda share: None,
    path: str | None = None,
) -> Runs:
    """Raises `NotInTime`, and `OutputExists`."""

    def result(table: DataFrame) -> Runs:
        from spark.summary import counted

        is_void = "size(void) > 0 as is_void"
        ended = table.selectExpr("outcome", is_void).groupBy("outcome", "is_void").count()
        shown = []
        for outcome in (Outcome.VIOLATED.value, ERROR):
            first = table.filter(f"outcome = '{outcome}'").orderBy("seed").limit(_SHOWN)
            shown += [_swept(row) for row in first.collect()]
        return Runs(
            ended={(row["outcome"], row["is_void"]): row["count"] for row in ended.collect()},
            bitten=counted(table, "faults"),
            shown=shown,
        )

    return _kept(spark, seeds, settings, Plans(plan), result, progress, path)


def _kept(
    spark: SparkSession,
    seeds: Sequence[int],
    settings: Settings,
    work: Work,
    result: Callable[[DataFrame], Result],
    progress: Callable[[float], None],
    path: str | None,
) -> "Result":
    """Each seed is run once, however often the table is looked at."""

    def job() -> "Result":
        from spark.kept import kept

        tasks = max(1, min(len(seeds), _TASKS_MIN), -(-len(seeds) // _TASK_MAX))
        frame = spark.createDataFrame([(seed,) for seed in seeds], "seed bigint")
        with kept(outcomes(frame, work, tasks=tasks), path) as table:
            return result(table)

    return bounded(spark, settings.seconds, job, progress)


def _swept(row: Any) -> Swept:
    told = row.asDict(recursive=True)
    return Swept(**{each.name: told[each.name] for each in fields(Swept)})


def _ended(row: Any) -> Ended:
    same = ("seed", "rule", "detail", "digest", "faults", "elections", "committed", "voters")
    return Ended(
        kind=row["outcome"],
        event=row["events"],
        now_ms=row["virtual_ms"],
        observers=row["observers"],
        **{name: row[name] for name in same},
    )


def _coverage(counts: Mapping[str, int]) -> Coverage:
    coverage = Coverage()
    counters = _counters(coverage)
    for full, count in counts.items():
        what, _, name = full.partition(" ")
        counters[what][name] += count
    return coverage
