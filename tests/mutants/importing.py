"""Runs a mutant that must be there while modules are imported, in a process of its own.

Tables of keys, for example, are made by functions that run at no other time. No test covers their
lines, and giving live functions the changed code would come too late.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType
from unittest.mock import patch

import pytest

from tests.mutants.groups import ROOT
from tests.mutants.operators import Mutant, mutants_of, mutated
from tests.mutants.pytest_run import arguments

__all__ = ["first_failing"]

_SECONDS_MAX = 600.0


def first_failing(mutant: Mutant, names: Sequence[str]) -> str:
    """The first of the tests `names` that fails, or what else goes wrong; empty if nothing does."""
    command = [sys.executable, "-m", "tests.mutants.importing"]
    wanted = json.dumps([mutant.file, mutant.name, *names])
    try:
        run = subprocess.run(
            command, input=wanted, text=True, capture_output=True, cwd=ROOT, timeout=_SECONDS_MAX
        )
    except subprocess.TimeoutExpired:
        return "takes too long"
    return "" if run.returncode == 0 else run.stdout.strip()[-200:] or "cannot be imported"


class _First:
    """A plugin of pytest: tells the first failure."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(report.nodeid)


def _main() -> int:
    file, name, *tests = json.load(sys.stdin)
    (mutant,) = (each for each in mutants_of(ROOT, file) if each.name == name)
    code = mutated(ROOT, mutant)
    shipped = SourceFileLoader.get_code

    def changed(loader: SourceFileLoader, module: str) -> CodeType | None:
        return code if loader.path == str(ROOT / file) else shipped(loader, module)

    with patch.object(SourceFileLoader, "get_code", changed), arguments(tests) as given:
        return int(pytest.main(["--maxfail=1", *given], plugins=[_First()]))


if __name__ == "__main__":
    sys.exit(_main())
