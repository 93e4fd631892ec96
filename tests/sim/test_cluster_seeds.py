"""Whole clusters on the shipped rules: no seed breaks an invariant or a bound, and no run is void.

`quorumlab chaos sim --cluster` runs more. A failing seed prints the command that shows it again.
"""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from jepsen_like.sim.assemblies.cluster.cluster_options import (
    CLUSTER_NEMESIS_KINDS,
    DIRECTORY_KINDS,
    draw_cluster_options,
    draw_run,
)
from jepsen_like.sim.assemblies.cluster.cluster_run import ClusterRun, run_cluster
from jepsen_like.sim.assemblies.quorum.simulation import Outcome
from jepsen_like.sim.runs.command import describe_failure
from jepsen_like.sim.time.virtual_time import VirtualTime

ROOT = Path(__file__).parents[2]
SEEDS = (*range(184, 194), 212)  # which have every kind of fault among them


def failures_of(outcomes: Iterable[Outcome]) -> str:
    failed = [outcome for outcome in outcomes if outcome.kind != "ok"]
    return "\n".join(describe_failure(outcome, flag=" --cluster") for outcome in failed)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [run_cluster(seed) for seed in SEEDS]


def test_shipped_rules_hold_on_every_seed(outcomes: list[Outcome]) -> None:
    assert not failures_of(outcomes)


@pytest.mark.parametrize(
    "kind",
    [
        *CLUSTER_NEMESIS_KINDS,
        *DIRECTORY_KINDS,
        "commits_loaded",
        "partition-one-way",
        "partition",
        "duplicated",
        "fsync_failed",
        "kill",
        "lost",
        "lost_tail",
        "pause",
        "power-loss",
        "reordered",
        "resign",
        "stop",
        "snapshot_received",
    ],
)
def test_every_kind_of_fault_fired(outcomes: list[Outcome], kind: str) -> None:
    assert sum(outcome.faults[kind] for outcome in outcomes) > 0


@pytest.mark.parametrize("seed", [1, 4, 14])
def test_shipped_rules_hold_at_levels_that_kafka_4_0_did_not_have(seed: int) -> None:
    wants = frozenset({"newer metadata"})
    options, drawn = (draw_run(VirtualTime(seed), wants=each) for each in (wants, frozenset()))
    assert replace(options, metadata_version=25) == drawn, "nothing else is drawn otherwise"
    run = ClusterRun(seed, wants=wants)
    run.run()
    image = run.cluster.metadata.image
    assert 26 <= image.features["metadata.version"] == options.metadata_version <= 33
    brokers = image.brokers.values()
    assert all(broker.features["share.version"].max_supported_version > 0 for broker in brokers)


def test_controllers_were_elected_and_decided(outcomes: list[Outcome]) -> None:
    assert sum(outcome.elections for outcome in outcomes) > 2 * len(outcomes)
    assert all(outcome.committed > 0 for outcome in outcomes)


def test_same_seed_has_the_same_digest_whatever_the_hash_seed(outcomes: list[Outcome]) -> None:
    """One that passes its messages through codecs, and one that does not."""
    drawn = {draw_cluster_options(VirtualTime(n).fork("options")).quorum.codecs: n for n in SEEDS}
    seeds = sorted(drawn.values())
    assert len(seeds) == 2
    script = (
        "from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster;"
        f"print([(o.digest, o.event) for o in map(run_cluster, {tuple(seeds)})])"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    here = [(outcomes[SEEDS.index(n)].digest, outcomes[SEEDS.index(n)].event) for n in seeds]
    assert elsewhere == f"{here}\n"


def test_until_event_cuts_the_run_short_at_that_event() -> None:
    outcome = run_cluster(3, until_event=100)
    assert (outcome.kind, outcome.event) == ("cut short", 100)
