"""Transactions in simulated clusters: seeds that were judged wrongly, and workloads of clients."""

import pytest

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.sim.assemblies.cluster.cluster_options import draw_run
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.time.virtual_time import VirtualTime


@pytest.mark.parametrize(
    "seed",
    [
        18,  # a coordinator's clock was behind the one before: nobody ran out of time
        20,  # who was elected had lost what its predecessor had decided
        2043,  # so had the coordinator of a transaction that then was open for ever
    ],
)
def test_seeds_that_failed_once(seed: int) -> None:
    options = draw_run(VirtualTime(seed), wants=frozenset({"transactions"}))
    outcome = run_cluster(seed, options=options)
    assert outcome.kind == "ok", outcome
    assert outcome.faults["transactions_initialized"] > 0


@pytest.mark.parametrize("workload", ["bank", "transactions"])
def test_clients_see_transactions_whole(workload: str) -> None:
    plan = Plan(seed=3, workload=workload, faults=("kill", "pause", "partition"), seconds=3)
    assert run_plan(plan).verdict.outcome is Outcome.VALID


@pytest.mark.parametrize(
    ("workload", "plant"),
    [
        ("transactions", "tells_no_aborted_transactions"),
        ("transactions", "commits_what_is_to_be_aborted"),
    ],
)
def test_clients_see_what_a_broken_rule_costs_them(workload: str, plant: str) -> None:
    plan = Plan(seed=1, workload=workload, faults=(), seconds=2, plants=plant)
    assert run_plan(plan).verdict.outcome is Outcome.VIOLATED
