"""Settings for all tests, which worker runs which file, and the cost of each file.

A property test has no deadline, since a wall clock judges the machine, and prints a line to replay.
SIGINT means what it means at a terminal: a shell that starts something in the background lets it
ignore Ctrl-C, and its children would, too.

Workers are given whole files, and whole folders where the files share a cluster or a Spark, since
every worker would start its own.
"""

import gc
import signal
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count
from math import inf
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has none

from tests import processor_time

settings.register_profile(
    "quorumlab",
    deadline=None,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a wall clock, too
)
settings.register_profile("long", parent=settings.get_profile("quorumlab"), max_examples=2000)
settings.load_profile("quorumlab")
signal.signal(signal.SIGINT, signal.default_int_handler)

# Folders whose files share a fixture that costs seconds of all cores.
SHARED = ("tests/integration/on_cluster", "tests/spark/on_spark")

# What takes more than a minute of `make extra`, which has no record of its own.
LONGEST = (
    "tests/spark/test_on_connect.py",
    "tests/spark/test_standalone.py",
    "tests/integration/test_zookeeper_mode.py",
    "tests/spark/on_spark",
    "tests/integration/test_compare.py",
    "tests/differential/test_differential.py",
    "tests/kafka/test_interop_mixed.py",
    "tests/integration/test_killed_quorum.py",
)


def scope_of(file: str) -> str:
    """What goes to one worker as a whole: a file, or a folder of `SHARED`."""
    folder = file.rpartition("/")[0]
    return folder if folder in SHARED else file


# What a file says that has tests for `make extra`, or whose tests are marked elsewhere.
SAYS_EXTRA = ("mark.extra", "needs_kafka", "OnAnySession")


@cache
def says_extra(file: Path) -> bool:
    text = file.read_text()
    return any(word in text for word in SAYS_EXTRA)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make extra` does not import the files of `make test`, which takes each worker 11 s."""
    is_test = collection_path.match("test_*.py")
    is_extra = str(config.getoption("markexpr")).startswith("extra ")
    return True if is_extra and is_test and not says_extra(collection_path) else None


def refuse_unsaid(items: list[pytest.Item]) -> None:
    """No test that is extra may be in a file that `make extra` does not import."""
    unsaid = {
        item.location[0]
        for item in items
        if item.get_closest_marker("extra") and not says_extra(item.path)
    }
    if unsaid:
        raise pytest.UsageError(f"extra, and none of {SAYS_EXTRA} stands there: {sorted(unsaid)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest and the dearest first, so that no worker is left with much at the end; unknown
    ones before."""
    refuse_unsaid(items)
    costs: defaultdict[str, float] = defaultdict(float)
    for file, seconds in processor_time.read().files.items():
        costs[scope_of(file)] += seconds
    longest = dict(zip(LONGEST, count(), strict=False))

    def place(item: pytest.Item) -> tuple[float, float]:
        scope = scope_of(item.location[0])
        return longest.get(scope, inf), -costs.get(scope, inf)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them again."""
    gc.freeze()


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # as above
    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    return Scheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-cost", action="store_true", help="write what this run cost: see `make cost`"
    )


BEGAN = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if config.getoption("--record-cost") and not is_worker:
        config.pluginmanager.register(processor_time.Recording())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = processor_time.spent()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield
    seconds = processor_time.spent() - item.stash[BEGAN]
    item.user_properties.append((processor_time.PROPERTY, seconds))
