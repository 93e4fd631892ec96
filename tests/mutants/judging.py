"""Judges mutants in forks of one pytest process that has collected all tests and imported all code.

    unit tests     those that run the mutant's line, the cheap ones first, until one fails
    seeds          of the simulator, until an invariant is broken
    histories      until one is judged wrongly

Each only if what comes before it has found nothing.
"""

import os
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf

import pytest

from tests.mutants.coverage_map import CoverageMap, covered
from tests.mutants.forks import Lost, forked, limit_processor_time
from tests.mutants.groups import ROOT, Group
from tests.mutants.importing import first_failing
from tests.mutants.operators import Mutant
from tests.mutants.patching import Live, functions_in_memory
from tests.mutants.pytest_run import arguments
from tests.mutants.trials import HISTORIES, SECONDS_MAX, SEEDS, first_found

__all__ = ["Judge", "with_judge"]

_TIMES_LONGER = 2  # than on the shipped code, traced, which triples it
_SECONDS_MORE = 2.0
_UNITS_SECONDS_MAX = 5.0  # traced: of the tests of one mutant, in a first pass


class Judge:
    """A plugin of pytest: takes over once everything is collected."""

    def __init__(self, group: Group, work: Callable[["Judge"], None]) -> None:
        self.group = group
        self._work = work
        self._items: dict[str, pytest.Item] = {}
        self._failed = False

    # --- what pytest calls --------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests that cannot be collected")
        self._items = {item.nodeid: item for item in session.items}
        self._live = Live(ROOT, functions_in_memory())
        self.coverage: CoverageMap = covered(self.group, session.items, self._run)
        self._work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    # --- judging ------------------------------------------------------------------------------

    def unfit(self, stages: Sequence[str]) -> list[str]:
        """What fails on the shipped code."""
        failing = [name for name in self._items if name not in self.coverage.costs]
        trials = [self._in_trials(None, name) for name in stages if name != "unit"]
        return [*failing, *filter(None, trials)]

    def judge(self, mutant: Mutant, stages: Sequence[str]) -> tuple[str, str]:
        """The stage that kills the mutant, and what it found; two empty texts if it survives."""
        for name in stages:
            try:
                if name == "unit":
                    found = self._units(mutant, inf if len(stages) > 1 else _UNITS_SECONDS_MAX)
                else:
                    found = self._in_trials(mutant, name)
            except Lost as lost:
                found = str(lost)
            if found:
                return name, found
        return "", ""

    def _units(self, mutant: Mutant, seconds_max: float) -> str:
        names = self._within(self.coverage.tests_of(mutant.file, mutant.lines), seconds_max)
        if names:
            return self._in_fork(mutant, lambda: self._first_failing(names))
        # Nobody runs it, or it runs while modules are imported.
        names = self.coverage.tests_of(mutant.file, self.coverage.lines_of(mutant.file))
        return first_failing(mutant, self._within(names, _UNITS_SECONDS_MAX))

    def _within(self, names: Sequence[str], seconds_max: float) -> list[str]:
        """Return as many of the first tests as cost no more."""
        spent = accumulate(self.coverage.costs[name] for name in names)
        return [name for name, cost in zip(names, spent, strict=True) if cost <= seconds_max]

    def _in_trials(self, mutant: Mutant | None, stage: str) -> str:
        trial, numbers = (
            SEEDS[self.group.seeds] if stage == "invariant" else HISTORIES[self.group.histories]
        )

        def limited() -> None:
            limit_processor_time(SECONDS_MAX)

        return self._in_fork(mutant, lambda: first_found(trial, numbers, limited))

    def _in_fork(self, mutant: Mutant | None, work: Callable[[], str]) -> str:
        def changed() -> str:
            if mutant is not None:
                self._live.apply(mutant)
            return work()

        found: str = forked(changed)
        return found

    def _first_failing(self, names: Sequence[str]) -> str:
        for name in names:
            limit_processor_time(_TIMES_LONGER * self.coverage.costs[name] + _SECONDS_MORE)
            passed, _ = self._run(self._items[name])
            if not passed:
                return name
        return ""

    def _run(self, item: pytest.Item) -> tuple[bool, float]:
        self._failed = False
        began = time.process_time()
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        except BaseException:  # noqa: BLE001 - also those that would end all tests
            self._failed = True
        return not self._failed, time.process_time() - began


def with_judge(group: Group, tests: Sequence[str], work: Callable[[Judge], None]) -> int:
    """Collects the tests, and has `work` done among them; pytest's exit code."""
    os.chdir(ROOT)
    with arguments(tests) as given:
        return int(pytest.main(given, plugins=[Judge(group, work)]))
