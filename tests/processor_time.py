"""Records what the fast suite costs: processor seconds of each test file, and of the whole run.

`make cost` runs the suite and writes `processor_time.json`; `test_processor_time.py` holds that
record to a budget. A second of processor time is worth more on a fast machine than on a slow or a
busy one, so the run also times a loop that never changes, the yardstick, again and again while the
tests run. The budget is counted in yardsticks.

A process counts for the test that reaps it: the nodes of a shared cluster count at its end. Nodes
that were forked together have lost their parent, and become children of the worker: those that no
test reaps count in the total alone.
"""

import ctypes
import json
import os
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median
from typing import cast

import pytest

__all__ = ["PROPERTY", "Cost", "Recording", "adopt_orphans", "read", "reap_orphans", "spent"]

PROPERTY = "processor_seconds"  # travels from a worker with the report of a test
_TESTS_A_YARDSTICK = 400
_PR_SET_CHILD_SUBREAPER = 36
RECORD = Path(__file__).with_name("processor_time.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One run of the fast suite, in seconds."""

    date: str
    python: str
    yardstick: float  # the median of those timed during the run
    total: float  # all processes: collection and shared clusters, too
    files: Mapping[str, float]  # by path below the root

    @property
    def yardsticks(self) -> float:
        return self.total / self.yardstick


def spent() -> float:
    """Processor seconds of this process and of its children that have been reaped."""
    return sum(os.times()[:4])


def yardstick() -> float:
    """Processor seconds of a fixed loop, 200,000 updates of a dictionary: about 0.06."""
    began = time.process_time()
    counts: Counter[int] = Counter()
    for number in range(200_000):
        counts[number & 1023] += number
    return time.process_time() - began


def adopt_orphans() -> None:
    """Processes below this one that lose their parent become its children (Linux's prctl)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans() -> None:
    """Once nobody else waits for children any more."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def read() -> Cost:
    return Cost(**json.loads(RECORD.read_text()))


class Recording:
    """Hears the reports of all tests, and writes at the end what they cost."""

    def __init__(self) -> None:
        self._files: defaultdict[str, float] = defaultdict(float)
        self._yardsticks: list[float] = []
        self._tests = count()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        # A test whose fixtures failed has none; pytest tells of it.
        seconds = cast(float, dict(report.user_properties).get(PROPERTY, 0.0))
        self._files[report.nodeid.partition("::")[0]] += seconds
        if next(self._tests) % _TESTS_A_YARDSTICK == 0:
            self._yardsticks.append(yardstick())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """By now the workers are reaped: their time, and that of their children, counts as ours."""
        cost = Cost(
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            python=platform.python_version(),
            yardstick=round(median(self._yardsticks), 4),
            total=round(spent(), 1),
            files={name: round(seconds, 2) for name, seconds in sorted(self._files.items())},
        )
        RECORD.write_text(json.dumps(asdict(cost), indent=1) + "\n")
        terminalreporter.write_line(
            f"{cost.total} s of processors, {cost.yardsticks:.0f} yardsticks"
        )
