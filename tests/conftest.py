"""Settings for all tests, and the hooks that order them and record their cost.

A property test has no deadline, since a wall clock judges the machine, and prints a line to replay.
SIGINT means what it means at a terminal: a shell that starts something in the background lets it
ignore Ctrl-C, and its children would, too.
"""

import gc
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import processor_time
from tests.extra import has_extra_tests, refuse_unmarked_files
from tests.scheduling import Scheduling, put_in_order

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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make extra` does not import the files of `make test`."""
    is_test = collection_path.match("test_*.py")
    is_extra = config.getoption("markexpr").split()[:1] == ["extra"]
    return True if is_extra and is_test and not has_extra_tests(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    refuse_unmarked_files(items)
    put_in_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests stay until the end: the garbage collector need never look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    return Scheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-cost", action="store_true", help="write what this run cost: see `make cost`"
    )


def client_threads() -> set[str]:
    """Threads of confluent-kafka's clients in this process, by id (Linux)."""
    ids = set()
    for thread in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has just ended
            if thread.read_text().startswith("rdk:"):
                ids.add(thread.parent.name)
    return ids


CLIENTS_LEFT = pytest.StashKey[set[str]]()


@pytest.fixture(scope="module", autouse=True)
def no_client_of_an_earlier_module(pytestconfig: pytest.Config) -> None:
    """Once its cluster is gone, it would complain of that on the stderr of the tests here.

    Who comes next is told, and nobody else.
    """
    known = pytestconfig.stash.setdefault(CLIENTS_LEFT, set())
    if client_threads() - known:
        gc.collect()  # those that nobody holds any more
    left = client_threads() - known
    known |= left
    assert not left, "a module that ran before has left a client open"


BEGAN = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-cost"):
        processor_time.adopt_orphans()
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(processor_time.Recording())


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--record-cost"):
        processor_time.reap_orphans()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGAN] = processor_time.spent()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield
    seconds = processor_time.spent() - item.stash[BEGAN]
    item.user_properties.append((processor_time.PROPERTY, seconds))
