"""Many seeds on several processes: what failed, what fired, how fast."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from jepsen_like.installation import ROOT, has_history
from jepsen_like.sim.coverage import Coverage
from jepsen_like.sim.quorum.simulation import Outcome, run
from jepsen_like.sim.tracing import Watcher
from jepsen_like.sim.workers import workers

__all__ = ["Run", "SweepResult", "Sweeper", "commit_of_code", "run_all", "sweep"]

_CHUNK = 20  # seeds a process is given at once


class Run(Protocol):
    def __call__(
        self, seed: int, /, *, plant: str | None, tracer: Watcher | None = None
    ) -> Outcome:
        """One seed, on the shipped rules or with a planted bug."""
        ...


class Sweeper(Protocol):
    """Whoever can run many seeds: `sweep` does it on processes of this machine."""

    def __call__(
        self,
        seeds: Sequence[int],
        *,
        plant: str | None,
        processes: int,
        progress: "Callable[[SweepResult], None] | None",
        run: Run,
    ) -> "SweepResult": ...


@dataclass(slots=True)
class SweepResult:
    """What a sweep came to. `failures` are in the order of their seeds."""

    seeds: int = 0
    seconds: float = 0.0
    events: int = 0
    virtual_ms: int = 0
    elections: int = 0
    committed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    failures: list[Outcome] = field(default_factory=list)

    @property
    def seeds_per_second(self) -> float:
        return self.seeds / self.seconds if self.seconds else 0.0

    @property
    def simulated_hours_per_hour(self) -> float:
        return self.virtual_ms / 1000 / self.seconds if self.seconds else 0.0

    def never_fired(self, kinds: Iterable[str]) -> tuple[str, ...]:
        return tuple(kind for kind in kinds if not self.faults[kind])

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.events += outcome.event
        self.virtual_ms += outcome.now_ms
        self.elections += outcome.elections
        self.committed += outcome.committed
        self.faults.update(outcome.faults)
        if outcome.kind != "ok":
            self.failures.append(outcome)

    def include(self, other: "SweepResult") -> None:
        """Of other seeds, which are later ones. The time is that of whoever waits for both."""
        self.seeds += other.seeds
        self.events += other.events
        self.virtual_ms += other.virtual_ms
        self.elections += other.elections
        self.committed += other.committed
        self.faults.update(other.faults)
        self.coverage.add(other.coverage)
        self.failures += other.failures


def sweep(
    seeds: Sequence[int],
    plant: str | None = None,
    processes: int = 2,
    progress: Callable[[SweepResult], None] | None = None,
    failures_max: int | None = None,
    run: Run = run,
) -> SweepResult:
    """Run `seeds`; stop early once `failures_max` of them have failed.

    `run` is a function of some module: it is called in other processes.
    """
    result = SweepResult()
    began = time.monotonic()
    with workers(processes) as pool:
        for part in _chunks(pool, run, seeds, plant, processes):
            result.include(part)
            result.seconds = time.monotonic() - began
            if progress is not None:
                progress(result)
            if failures_max is not None and len(result.failures) >= failures_max:
                break
    return result


def _chunks(
    pool: ProcessPoolExecutor, run: Run, seeds: Sequence[int], plant: str | None, processes: int
) -> Iterator[SweepResult]:
    """Results in the order of the seeds, with few chunks under way at a time."""
    starts = iter(range(0, len(seeds), _CHUNK))
    waiting = [
        pool.submit(run_all, run, seeds[start : start + _CHUNK], plant)
        for start in islice(starts, 4 * processes)
    ]
    while waiting:
        yield waiting.pop(0).result()
        waiting += [
            pool.submit(run_all, run, seeds[start : start + _CHUNK], plant)
            for start in islice(starts, 1)
        ]


def run_all(run: Run, seeds: Iterable[int], plant: str | None) -> SweepResult:
    """One after the other, here."""
    result = SweepResult()
    for seed in seeds:
        result.add(run(seed, plant=plant, tracer=result.coverage))
    return result


def commit_of_code() -> str:
    """The commit that a failing seed belongs to; "unknown" outside a repository."""
    if not has_history():
        return "unknown"
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607 - whichever git is in use
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
            cwd=ROOT,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
