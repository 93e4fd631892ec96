"""What `benchmarks.profiling` counts, and that its table knows every module of ours."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.profiling import OTHER, OWN, PHASES, Calls, phase_of

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Value:
    number: int


@dataclass
class Variable:
    number: int


@pytest.mark.parametrize(
    "package",
    [
        "wire",
        "quorum/core",
        "quorum/log",
        "quorum/node",
        "quorum/raft",
        "controller",
        "broker",
        "quorumlab",
    ],
)
def test_every_module_has_a_phase(package: str) -> None:
    paths = [path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")]
    assert paths
    modules = {".".join(path.with_suffix("").parts) for path in paths}
    assert {module for module in modules if phase_of(module) == OTHER} == set()


def test_every_line_of_the_table_names_a_module_that_exists() -> None:
    ours = [name for name in PHASES if name not in ("__main__", "asyncio", "selectors")]
    paths = [ROOT / name.replace(".", "/") for name in ours]
    gone = [path for path in paths if not path.is_dir() and not path.with_suffix(".py").exists()]
    assert gone == []


def test_longest_prefix_decides() -> None:
    assert phase_of("quorum.log.files.jobs") == "bookkeeping of syncs"
    assert phase_of("quorum.log.files.disk") == "storage"
    assert phase_of("quorum.raft.replica", "deadline_ms") == "deadlines"
    assert phase_of("aiohttp.web") == OTHER
    assert phase_of("contextlib") is None


def test_calls_are_counted_exactly() -> None:
    with Calls() as calls:
        for number in range(7):
            Value(number)
            Variable(number)
            os.getpid()
    assert calls.values_built() == 7
    assert calls.times("getpid") == 7
    assert sum(calls.python.values()) == 14 + 1  # and its own end
    # Not of `benchmarks`: pytest gives this module a name that no line of the table knows.
    assert {phase for _, phase in calls.python} <= {OWN, OTHER}
