"""The simulator of the quorum: seeds and events a second, on every processor."""

import os
import sys

from benchmarks.figures import print_figure
from jepsen_like.sim.sweep import sweep

SEEDS = 40


def main() -> int:
    processes = os.cpu_count() or 1
    result = sweep(range(SEEDS), processes=processes)
    assert not result.failures, f"seed {result.failures[0].seed} fails: quorumlab chaos sim --seed"
    rates = {"seeds": result.seeds, "events": result.events}
    for what, count in rates.items():
        print_figure(
            f"simulated {what}",
            count / result.seconds,
            f"{what}/s",
            processes=processes,
            seeds=result.seeds,
            virtual_seconds_per_second=round(result.virtual_ms / 1000 / result.seconds),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
