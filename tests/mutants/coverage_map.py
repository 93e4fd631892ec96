"""The coverage map: the lines that each test runs, and its cost; renewed where a file has changed.

Kept below `.cache`, a file of tests at a time, by the contents of the sources and of that file.
Groups with the same tests are looked at together.
"""

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants.forks import forked
from tests.mutants.groups import GROUPS, ROOT, Group

__all__ = ["CoverageMap", "covered"]

Run = Callable[[pytest.Item], tuple[bool, float]]  # whether it passed, and its processor seconds


@dataclass(slots=True)
class CoverageMap:
    """`lines`: by source file and line, the tests. `costs`: processor seconds of a test, traced."""

    lines: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)

    def lines_of(self, file: str) -> list[int]:
        """Those that some test runs."""
        return [line for path, line in self.lines if path == file]

    def tests_of(self, file: str, lines: Sequence[int]) -> list[str]:
        """Cheap ones first, and early on some of each file: other files look at other things."""
        found = {test for line in lines for test in self.lines.get((file, line), ())}
        before: Counter[str] = Counter()
        ranks = {}
        for test in sorted(found, key=lambda test: (self.costs[test], test)):
            path = test.partition("::")[0]
            before[path] += 1
            ranks[test] = self.costs[test] * before[path]
        return sorted(ranks, key=ranks.__getitem__)


def covered(group: Group, items: Sequence[pytest.Item], run: Run) -> CoverageMap:
    folder = ROOT / ".cache" / "mutants" / group.tests[0].replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    together = [each for each in GROUPS.values() if each.tests[0] == group.tests[0]]
    files = sorted({file for each in together for file in each.files})
    sources = b"".join((ROOT / file).read_bytes() for file in files)
    found = CoverageMap()
    for path in dict.fromkeys(item.path for item in items):
        mine = [item for item in items if item.path == path]
        ids = "\n".join(item.nodeid for item in mine).encode()
        key = hashlib.sha256(sources + path.read_bytes() + ids).hexdigest()
        name = path.relative_to(ROOT).as_posix().replace("/", "-")
        kept = folder / f"{name}.json"
        told = json.loads(kept.read_text()) if kept.exists() else {}
        if told.get("key") != key:
            told = {"key": key, **forked(lambda: _traced(files, mine, run))}  # noqa: B023 - called at once
            kept.write_text(json.dumps(told))
        _add(found, told)
    return found


def _traced(files: Sequence[str], items: Sequence[pytest.Item], run: Run) -> dict[str, Any]:
    tracer = coverage.Coverage(
        data_file=None, include=[str(ROOT / file) for file in files], config_file=False
    )
    tracer.start()
    costs = {}
    for item in items:
        tracer.switch_context(item.nodeid)
        passed, seconds = run(item)
        if passed:
            costs[item.nodeid] = seconds
    tracer.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing of the group was run
        data = tracer.get_data()
    lines: dict[str, dict[int, list[str]]] = {}
    for name in data.measured_files():
        file = Path(name).relative_to(ROOT).as_posix()
        lines[file] = data.contexts_by_lineno(name)
    return {"costs": costs, "lines": lines}


def _add(found: CoverageMap, told: dict[str, Any]) -> None:
    found.costs |= told["costs"]
    for file, lines in told["lines"].items():
        for line, tests in lines.items():
            ran = found.lines.setdefault((file, int(line)), set())
            ran.update(test for test in tests if test in told["costs"])
