"""The pytest plugin: a Kafka-compatible cluster for tests, with faults that prove they fired.

    def test_orders(quorumlab_cluster, kafka_topic):
        quorumlab_cluster.inject("NOT_LEADER_OR_FOLLOWER", api="Produce", topic=kafka_topic).once()
        ...

Every suite of an environment loads this file, so it imports nothing but pytest until a test asks
for a cluster. See docs/testing-your-app.md.
"""

import re
import secrets
import shutil
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from quorumlab.testing.cluster_under_test import ClusterUnderTest

__all__ = ["kafka_cluster", "kafka_topic", "quorumlab_cluster"]

_FIXTURE = "quorumlab_cluster"
_MODES = ("processes", "in-process")
_CLUSTER = pytest.StashKey["ClusterUnderTest"]()
_DIRECTORY = pytest.StashKey[str]()
_DESCRIPTION = pytest.StashKey[str]()  # of the cluster, for reports
_HAS_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("quorumlab", "Kafka-compatible clusters")
    for name, text in (
        ("quorumlab", f"the nodes of the cluster: {' or '.join(_MODES)}; default: {_MODES[0]}"),
        ("quorumlab-brokers", "number of brokers; default: 3"),
        ("quorumlab-controllers", "number of controllers; default: 3, in-process 1"),
    ):
        ini = name.replace("-", "_")
        choices = _MODES if name == "quorumlab" else None
        group.addoption(f"--{name}", dest=f"{ini}_option", choices=choices, help=text)
        parser.addini(ini, text, default="")
    parser.addini(
        "quorumlab_settings", "settings of all nodes, one key=value a line", "linelist", []
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka_topic(partitions=1): of the fixture kafka_topic")


@pytest.fixture(scope="session")
def quorumlab_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["ClusterUnderTest"]:
    """A cluster of the whole session, of each xdist worker its own: `.bootstrap_servers`."""
    config = request.config
    mode = _option(config, "quorumlab") or _MODES[0]
    if mode not in _MODES:
        raise pytest.UsageError(f"quorumlab = {mode}: one of {', '.join(_MODES)}")
    brokers = _count(config, "quorumlab_brokers", 3)
    controllers = _count(config, "quorumlab_controllers", 3 if mode == _MODES[0] else 1)
    settings = dict(_settings(config))

    from quorumlab.testing.cluster_under_test import ClusterUnderTest

    cluster = ClusterUnderTest(
        tmp_path_factory.mktemp("quorumlab").resolve() / "cluster",
        mode=mode,
        brokers=brokers,
        controllers=controllers,
        settings=settings,
    )
    with cluster:
        config.stash[_CLUSTER] = cluster
        config.stash[_DIRECTORY] = str(cluster.directory)
        config.stash[_DESCRIPTION] = cluster.describe()
        try:
            yield cluster
        finally:
            del config.stash[_CLUSTER]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Nobody will look at the data if no test with the cluster has failed."""
    stash = session.config.stash
    if _DIRECTORY in stash and not stash.get(_HAS_FAILED, False):
        shutil.rmtree(stash[_DIRECTORY], ignore_errors=True)


@pytest.fixture(scope="session")
def kafka_cluster(quorumlab_cluster: "ClusterUnderTest") -> "ClusterUnderTest":
    """The same as `quorumlab_cluster`."""
    return quorumlab_cluster


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, quorumlab_cluster: "ClusterUnderTest") -> str:
    """The name of a new topic: one partition, or as the marker `kafka_topic` says."""
    marker = request.node.get_closest_marker("kafka_topic")
    wanted = dict(marker.kwargs) if marker is not None else {}
    readable = re.sub(r"[^\w.-]+", "-", request.node.name, flags=re.ASCII)[:60]
    name = f"{readable}-{secrets.token_hex(4)}"
    quorumlab_cluster.create_topic(name, **wanted)
    return name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A fault that never fired fails the test, unless the test has failed already."""
    try:
        result = yield
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise  # the cluster ends at once: nothing needs to heal
    except BaseException as error:
        for complaint in _finish(item):
            error.add_note(complaint)
        raise
    complaints = _finish(item)
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Faults of a test whose setup failed end, too."""
    _finish(item)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    told = item.config.stash.get(_DESCRIPTION, None)
    if report.failed and told is not None and _FIXTURE in getattr(item, "fixturenames", ()):
        item.config.stash[_HAS_FAILED] = True
        report.sections.append(("quorumlab cluster", told))
    return report


def _finish(item: pytest.Item) -> list[str]:
    cluster = item.config.stash.get(_CLUSTER, None)
    return [] if cluster is None else cluster.finish()


def _option(config: pytest.Config, name: str) -> str:
    return str(config.getoption(f"{name}_option") or config.getini(name))


def _count(config: pytest.Config, name: str, default: int) -> int:
    text = _option(config, name) or str(default)
    if not text.isdecimal() or not 1 <= int(text) <= 99:
        raise pytest.UsageError(f"{name} = {text}: a number from 1 to 99")
    return int(text)


def _settings(config: pytest.Config) -> Iterator[tuple[str, str]]:
    for line in config.getini("quorumlab_settings"):
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"quorumlab_settings: {line!r} is no key=value")
        yield key.strip(), value.strip()
