"""Records what the fast suite costs: processor seconds of each test file, and of the whole run.

`make cost` runs the suite and writes `processor_time.json`; `test_processor_time.py` holds that
record to a budget. Another machine's seconds are not this one's, so the run also times a loop that
never changes, the yardstick, and the budget is counted in yardsticks.

A process counts for the test that reaps it: the nodes of a shared cluster count at its end.
"""

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["Cost", "read", "record", "spent"]

RECORD = Path(__file__).with_name("processor_time.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One run of the fast suite, in seconds."""

    date: str
    python: str
    yardstick: float
    total: float  # all processes: collection and shared clusters, too
    files: Mapping[str, float]  # by path below the root

    @property
    def yardsticks(self) -> float:
        return self.total / self.yardstick


def spent() -> float:
    """Processor seconds of this process and of its children that have been reaped."""
    return sum(os.times()[:4])


def yardstick() -> float:
    """Processor seconds of a fixed loop: a million updates of a dictionary, the best of five."""

    def once() -> float:
        began = time.process_time()
        counts: Counter[int] = Counter()
        for number in range(1_000_000):
            counts[number & 1023] += number
        return time.process_time() - began

    return min(once() for _ in range(5))


def read() -> Cost:
    return Cost(**json.loads(RECORD.read_text()))


def record(total: float, files: Mapping[str, float]) -> None:
    cost = Cost(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        python=platform.python_version(),
        yardstick=round(yardstick(), 4),
        total=round(total, 1),
        files={name: round(seconds, 2) for name, seconds in sorted(files.items())},
    )
    RECORD.write_text(json.dumps(asdict(cost), indent=1) + "\n")
