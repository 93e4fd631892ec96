"""Simulation seeds on the machines of a cluster: each is run and judged where it is given to.

What comes back is small: counts, coverage, and of what failed the seed and the line that replays
it. So the number of seeds is limited by time only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan
from jepsen_like.sim.chaos.workload_run import failed, run_plan
from jepsen_like.sim.runs.sweep import Run, SweepResult, sweep
from jepsen_like.sim.runs.workers import Died, mapped
from spark.session import Settings, bounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PlanResult", "run_plans", "sweep_seeds"]

_CHUNKS_OF_A_CORE = 16  # so that the last one does not keep all others waiting for long
_CHUNK_MAX = 100
_FINDINGS_KEPT = 5
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The parts of a `ChaosOutcome` worth sending: not the history, which the seed gives again."""

    plan: Plan
    outcome: Outcome
    broken: str
    is_error: bool
    void: tuple[str, ...]
    findings: tuple[Finding, ...]
    bitten: Counter[str]  # faults, by kind
    digest: str

    @classmethod
    def of(cls, run: ChaosOutcome) -> "PlanResult":
        return cls(
            plan=run.plan,
            outcome=Outcome.VIOLATED if run.is_red and not run.is_error else run.verdict.outcome,
            broken=run.broken,
            is_error=run.is_error,
            void=run.void,
            findings=run.verdict.findings[:_FINDINGS_KEPT],
            bitten=Counter(
                each.scheduled.fault.kind for each in run.fault_outcomes if each.proof.bit
            ),
            digest=run.digest,
        )


def sweep_seeds(
    spark: "SparkSession",
    seeds: Sequence[int],
    settings: Settings,
    *,
    run: Run,
    plant: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> SweepResult:
    """Raises `NotInTime`. `progress` is told which share of the seeds is done."""
    result = SweepResult()
    work = partial(sweep, plant=plant, processes=1, run=run)
    for part in _mapped(spark, seeds, work, settings, progress):
        result.include(part)
    return result


def run_plans(
    spark: "SparkSession",
    plans: Sequence[Plan],
    settings: Settings,
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> list[PlanResult]:
    """In the order of the plans. Raises `NotInTime`."""
    parts = _mapped(spark, plans, _ran, settings, progress)
    return [result for part in parts for result in part]


def _ran(plans: Sequence[Plan]) -> list[PlanResult]:
    """In a process that may die of it."""
    return [
        PlanResult.of(failed(plan, part.ending)) if isinstance(part, Died) else part
        for plan, part in mapped(_ran_one, plans, 1)
    ]


def _ran_one(plan: Plan) -> PlanResult:
    return PlanResult.of(run_plan(plan))


def _mapped(
    spark: "SparkSession",
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Result],
    settings: Settings,
    progress: Callable[[float], None],
) -> list[Result]:
    context = spark.sparkContext
    chunks = list(_chunks(items, context.defaultParallelism * _CHUNKS_OF_A_CORE))

    def job() -> list[Result]:
        return context.parallelize(chunks, max(1, len(chunks))).map(work).collect()

    return bounded(spark, settings.seconds, job, progress)


def _chunks(items: Sequence[Item], count: int) -> Iterable[Sequence[Item]]:
    size = min(_CHUNK_MAX, max(1, len(items) // count))
    return (items[start : start + size] for start in range(0, len(items), size))
