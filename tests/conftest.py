"""Settings for all tests, which worker runs which file, and the cost of each file.

A property test has no deadline, since a wall clock judges the machine, and prints a line to replay.
SIGINT means what it means at a terminal: a shell that starts something in the background lets it
ignore Ctrl-C, and its children would, too.

Workers are given whole files. Files that share a cluster or a Spark go to one worker, since every
worker would start its own.
"""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has none

from tests import processor_time

settings.register_profile("quorumlab", deadline=None, print_blob=True)
settings.load_profile("quorumlab")
signal.signal(signal.SIGINT, signal.default_int_handler)

# Fixtures of a whole session that cost seconds of all cores -> the files that use them.
SHARED = {
    "shared_cluster": (
        "tests/integration/test_admin.py",
        "tests/integration/test_chaos.py",
        "tests/integration/test_clients.py",
        "tests/integration/test_groups.py",
    ),
    "spark": (
        "tests/spark/test_checks.py",
        "tests/spark/test_pieces.py",
        "tests/spark/test_sweeps.py",
    ),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name, files in SHARED.items():
            if isinstance(item, pytest.Function) and name in item.fixturenames:
                assert item.location[0] in files, f"{item.location[0]} uses {name}: add it above"


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # as above
    def _split_scope(self, nodeid: str) -> str:
        """The name of what goes to one worker: a file, or the fixture that files share."""
        file = nodeid.partition("::")[0]
        return next((name for name, files in SHARED.items() if file in files), file)


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
