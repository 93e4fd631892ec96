"""Seeds run on Spark come to what they come to without it."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jepsen_like.sim.assemblies.quorum.simulation import run
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.runs.sweep import SweepResult, run_all
from spark.sweeps import Plans, outcomes, run_plans, sweep_seeds
from tests.sim.test_errors import DIES, RAISES, VIOLATES, run_some
from tests.spark.conftest import SETTINGS

pytestmark = [pytest.mark.slow, pytest.mark.extra]  # much of the machine

PLANT = "votes_twice"
SEEDS = range(3)


def told(result: SweepResult) -> tuple[object, ...]:
    """All of it but the time it took."""
    return result.seeds, result.events, result.faults, result.coverage, result.failures


def test_sweep_finds_on_spark_what_it_finds_here(spark: SparkSession) -> None:
    here = run_all(run, PLANT, SEEDS)
    there = sweep_seeds(spark, SEEDS, SETTINGS, run=run, plant=PLANT)
    assert told(there) == told(here)
    assert here.coverage.transitions["candidate -> leader"] > 0


def test_runs_of_a_workload_are_judged_where_they_ran(spark: SparkSession, tmp_path: Path) -> None:
    plan = Plan(seed=0, workload="cas-register", seconds=2)
    table = outcomes(spark.createDataFrame([(0,), (1,)], "seed int"), Plans(plan), tasks=2)
    found = {row["seed"]: row for row in table.collect()}
    for seed in range(2):
        ran = run_plan(replace(plan, seed=seed))
        told = found[seed]
        assert (told["outcome"], told["digest"]) == (ran.verdict.outcome.value, ran.digest)
        assert (told["events"], told["virtual_ms"]) == (ran.events, ran.now_ms)
    runs = run_plans(spark, plan, range(2), SETTINGS, path=str(tmp_path / "table"))
    assert sum(runs.ended.values()) == 2
    kept = spark.read.parquet((tmp_path / "table").as_uri())
    assert {row["digest"] for row in kept.collect()} == {row["digest"] for row in found.values()}


def test_exception_and_death_are_outcomes_there_too(spark: SparkSession) -> None:
    result = sweep_seeds(spark, range(60), SETTINGS, run=run_some)
    assert result.seeds == 60
    told = [(failure.seed, failure.kind) for failure in result.failures]
    assert told == [(RAISES, "error"), (DIES, "error"), (VIOLATES, "safety")]
