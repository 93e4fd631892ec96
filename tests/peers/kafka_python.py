"""The integration tests that kafka-python wrote for itself, from its sdist.

They start brokers of their own, by scripts of Kafka's distribution: what the scripts start here
is one node of ours, or of Apache Kafka, from the same server.properties.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from jepsen_like.python_children import python_command
from tests.peers.distribution import java_line, tools, write_scripts
from tests.peers.outcomes import Outcome, settled
from tests.peers.sources import CACHE, MissingError, run

__all__ = ["ALL", "FAST", "fetch", "outcomes"]

ALL = "test/integration"
FAST = "test/integration/test_producer_integration.py"
_HERE = Path(__file__).parent
_RELEASE = "3.0.12"
_HOME = CACHE / "kafka-python"
_PLUGINS = _HOME / "plugins"
_KAFKA_VERSION = "4.3.0"  # whose behaviour the tests expect
_SECONDS_MAX = "240"  # for one test and what it starts
_FAILED_ONES = ("--last-failed", "--last-failed-no-failures", "none")
_FORMAT = (
    '--standalone --cluster-id "$4" --config "$6" $7 $8'  # after: format --standalone -t ID -c FILE
)


def fetch() -> Path:
    """The folder of the sdist, with the file that it lacks; raises MissingError."""
    source = _HOME.resolve() / f"kafka_python-{_RELEASE}"
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    if not _PLUGINS.exists():
        _HOME.mkdir(parents=True, exist_ok=True)
        only = ("--no-deps", "--no-binary", "kafka-python")
        run(*pip, "download", *only, f"kafka-python=={_RELEASE}", cwd=_HOME)
        run("tar", "xzf", f"{source.name}.tar.gz", cwd=_HOME)
        run(*pip, "install", "--no-deps", "--target", "new", "pytest-timeout==2.4.0", cwd=_HOME)
        (_HOME / "new").rename(_PLUGINS)
    if not (source / ALL).exists():
        raise MissingError(f"no {ALL} in {source}")
    copyfile(_HERE / "spawned_service.py", source / "test" / "service.py")
    (source / "test" / "__init__.py").touch()  # before the `test` of Python's own library
    return source


def outcomes(source: Path, server: str, *tests: str) -> Iterator[Outcome]:
    """Yields how the tests end on one node of `server`, quorumlab or kafka.

    What fails runs once more. kafka-python's clients lose a subscription that is made while they
    first ask for metadata (`ClusterMetadata._need_update`: the answer clears it): they ask again
    after five minutes, and the tests wait for half of one.
    """
    with TemporaryDirectory() as directory:
        root = Path(directory)
        _distribution(root, server)
        first = {each.test: each for each in _run(source, root, *tests)}
        again = {}
        if any(each.state == "failed" for each in first.values()):
            again = {each.test: each for each in _run(source, root, *_FAILED_ONES, *tests)}
        yield from settled(first, again)


def _run(source: Path, root: Path, *arguments: str) -> list[Outcome]:
    report = root / "report.xml"
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(source)),
            *("-q", "-o", f"cache_dir={root / 'cache'}", "--timeout", _SECONDS_MAX),
            *("--show-capture=no", "--tb=no", "--junitxml", str(report), *arguments),
        ],
        cwd=source,
        env={
            **os.environ,
            "KAFKA_VERSION": _KAFKA_VERSION,
            "KAFKA_ROOT": str(root),
            "PROJECT_ROOT": str(root),
            "PYTHONPATH": f"{source}{os.pathsep}{_PLUGINS}",
        },
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return list(_reported(report))


def _reported(report: Path) -> Iterator[Outcome]:
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        told = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        if told is None:
            yield Outcome(name, "passed")
        else:
            state = "skipped" if told.tag == "skipped" else "failed"
            yield Outcome(name, state, " ".join(told.get("message", "").split())[:160])


def _distribution(root: Path, server: str) -> None:
    """The parts of a distribution that the tests know: three scripts, and templates of files."""
    templates = root / "servers" / "resources" / "default"
    templates.mkdir(parents=True)
    for name in ("kafka.properties", "sasl_command.conf"):
        copyfile(_HERE / name, templates / name)
    for name in ("log4j.properties", "kafka_server_jaas.conf"):
        (templates / name).write_text("# what it would say stands in the server.properties\n")
    write_scripts(root, _scripts(server))


def _scripts(server: str) -> dict[str, str]:
    if server == "kafka":
        node = f'exec {java_line("kafka.Kafka")} "$2"'
        storage = f'exec {java_line("kafka.tools.StorageTool")} "$@"'
    else:
        ours = f"PYTHONPATH={shlex.quote(str(_HERE.parents[1]))} exec " + shlex.join(
            python_command("quorumlab")
        )
        node = f'{ours} node --config "$2"'
        storage = f"{ours} format {_FORMAT}"
    own = {"kafka-run-class.sh": node, "kafka-storage.sh": storage}
    return {**own, **tools("topics")}
