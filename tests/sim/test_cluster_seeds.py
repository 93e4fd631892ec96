"""Whole clusters on the shipped rules: no seed breaks an invariant or a bound, and no run is void.

`quorumlab chaos sim --cluster` runs more. A failing seed prints the command that shows it again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like.sim.cluster_options import CLUSTER_NEMESIS_KINDS
from jepsen_like.sim.cluster_run import run_cluster
from jepsen_like.sim.simulation import Outcome

ROOT = Path(__file__).parents[2]
SEEDS = range(120)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [run_cluster(seed) for seed in SEEDS]


def test_shipped_rules_hold_on_every_seed(outcomes: list[Outcome]) -> None:
    failures = [outcome for outcome in outcomes if outcome.kind != "ok"]
    assert not failures, "\n".join(f"{o.seed}: {o.rule}: {o.detail}" for o in failures)


@pytest.mark.parametrize(
    "kind", [*CLUSTER_NEMESIS_KINDS, "cut_one_way", "kill", "lost_tail", "paused", "shut_down"]
)
def test_faults_of_clusters_fired(outcomes: list[Outcome], kind: str) -> None:
    assert sum(outcome.faults[kind] for outcome in outcomes) > 0


def test_controllers_were_elected_and_decided(outcomes: list[Outcome]) -> None:
    assert sum(outcome.elections for outcome in outcomes) > len(outcomes)
    assert all(outcome.committed > 0 for outcome in outcomes)


def test_same_seed_has_the_same_digest_whatever_the_hash_seed() -> None:
    script = (
        "from jepsen_like.sim.cluster_run import run_cluster;"
        "print([(run_cluster(seed).digest, run_cluster(seed).event) for seed in (3, 5)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("0", "4711")
    }
    assert len(printed) == 1, printed


def test_until_event_cuts_the_run_short_at_that_event() -> None:
    outcome = run_cluster(3, until_event=100)
    assert (outcome.kind, outcome.event) == ("cut short", 100)
