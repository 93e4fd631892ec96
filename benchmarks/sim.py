"""The simulator: seeds, events and virtual time a second, on every processor."""

import os

from benchmarks.figures import print_figure
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.assemblies.quorum.simulation import run
from jepsen_like.sim.runs.sweep import Run, sweep

SEEDS = 40


def main() -> None:
    _measure("", run)
    _measure("cluster ", run_cluster)


def _measure(what: str, run_seed: Run) -> None:
    """`what`: whose seeds these are, in the names of the figures."""
    processes = os.cpu_count() or 1
    result = sweep(range(SEEDS), processes=processes, run=run_seed)
    assert not result.failures, f"seed {result.failures[0].seed} of a {what}run fails"
    figures = {
        "seeds": (result.seeds_per_second, "seeds/s"),
        "events": (result.events_per_second, "events/s"),
        "time": (result.virtual_seconds_per_second, "s/s"),
    }
    for name, (value, unit) in figures.items():
        print_figure(
            f"simulated {what}{name}",
            value,
            unit,
            processes=processes,
            seeds=result.seeds,
            events_a_seed=round(result.events / result.seeds),
        )
