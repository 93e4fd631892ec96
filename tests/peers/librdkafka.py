"""librdkafka's own tests, which the npm package of Confluent's client for JavaScript brings along.

Each is run by itself: what hangs takes its time and no other's.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kafka.kafka_jars import write_properties
from tests.peers.distribution import tools, write_scripts
from tests.peers.outcomes import Outcome
from tests.peers.servers import PASSWORD, SASL_SETTINGS, SERVERS, USER
from tests.peers.sources import CACHE, MissingError, run

__all__ = ["NO_SERVER", "PROTOCOLS", "fetch", "outcomes", "told"]

NO_SERVER = "nothing"
PROTOCOLS = ("classic", "consumer")
_PACKAGE = "@confluentinc/kafka-javascript@1.10.1"  # it holds librdkafka 2.15.1
_TESTS = CACHE / "librdkafka" / "package" / "deps" / "librdkafka" / "tests"
_SECONDS_MAX = 900.0
_PATIENCE = 3  # so many times the tests' own time-outs, on a machine that does other things, too
_BROKER_VERSION = "4.3.1.0"
_ROW = re.compile(r"\| +(\d{4}\w+) +\| +(PASSED|FAILED|SKIPPED|RUNNING) \|[^|]*\|(.*)")
_REASON = re.compile(r"^### Test .* ###\n(.*)", re.MULTILINE)  # of what ends by an assertion
_SHARE_GROUPS = "share_"  # in the names of their tests, which are left out: we do not serve them
_RUN_CLASS = 'exec java -cp "$CLASSPATH:$KAFKA_PATH/libs/*" "$@"'
_ELSEWHERE = ("", "Filtered due to negative test flags")  # it is of another stage
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def fetch() -> Path:
    """Fetches and builds what is not there yet, which takes minutes; raises MissingError."""
    runner = _TESTS / "test-runner"
    if not runner.exists():
        home = CACHE / "librdkafka"
        home.mkdir(parents=True, exist_ok=True)
        run("npm", "pack", _PACKAGE, cwd=home)
        (packed,) = home.glob("*.tgz")
        run("tar", "xzf", packed.name, cwd=home)
        source = _TESTS.parent
        run("./configure", "--disable-gssapi", cwd=source)
        for part, target in (("src", "librdkafka.a"), ("src-cpp", "librdkafka++.a")):
            run("make", "-j2", "-C", part, target, cwd=source)
        run("make", "-j2", "-C", "tests", "test-runner", cwd=source)
    if not runner.exists():
        raise MissingError(f"{runner} was not built")
    return runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Tests that want brokers with these settings, and the runner with these options."""

    settings: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ("-L",)  # not those without brokers
    only: tuple[str, ...] = ()  # none: all
    without: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # that run, by number


# By number: their parts, but those with share consumers; none: all.
_SASL_TESTS = {
    "0126": (),
    "0135": ("do_test:",),
    "0142": ("do_test_consumer", "do_test_producer", "do_test_reauth_failure", "do_test_txn_"),
}
STAGES = (
    Stage(without=("0113", *_SASL_TESTS)),
    # Two consumers that come one after the other are to be assigned to at once.
    Stage(settings={"group.initial.rebalance.delay.ms": "3000"}, only=("0113",)),
    Stage(
        settings={"auto.create.topics.enable": "false"},
        options=("-L", "-s", "noautocreate"),
        only=("0045", "0107", "0111"),
    ),
    Stage(
        settings=SASL_SETTINGS,
        client={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        },
        only=tuple(_SASL_TESTS),
        parts=_SASL_TESTS,
    ),
)
LOCAL = Stage(options=("-l",))


def outcomes(
    runner: Path,
    server: str,
    protocol: str,
    numbers: Iterable[str] = (),
    *,
    at_once: int = 3,
) -> Iterator[Outcome]:
    """Yields how the tests end, stage after stage: what a stage skips may run in a later one.

    `server` is quorumlab, kafka, or nothing for those tests that start a broker of their own.
    `numbers` are those to be run, not all.
    """
    files = (file.stem.replace("-", "_") for file in runner.parent.glob("0*-*.c*"))
    named = {stem[:4]: stem for stem in files if _SHARE_GROUPS not in stem}
    for stage in (LOCAL,) if server == NO_SERVER else STAGES:
        asked = named.keys() & set(numbers or named) & set(stage.only or named) - set(stage.without)
        if asked:
            with ExitStack() as stack:
                directory = Path(stack.enter_context(TemporaryDirectory()))
                servers = ""
                if server != NO_SERVER:
                    servers = stack.enter_context(SERVERS[server](directory, stage.settings))
                names = [
                    f"{named[number]}{part and '/'}{part}"
                    for number in sorted(asked)
                    for part in stage.parts.get(number) or ("",)
                ]
                yield from _staged(runner, stage, servers, protocol, names, at_once)


def _staged(
    runner: Path,
    stage: Stage,
    servers: str,
    protocol: str,
    names: Sequence[str],
    at_once: int,
) -> Iterator[Outcome]:
    with TemporaryDirectory() as directory, ThreadPoolExecutor(at_once) as pool:
        root = Path(directory)
        write_scripts(root, {**tools("acls", "topics"), "kafka-run-class.sh": _RUN_CLASS})
        configuration = {
            "test.topic.random": "true",
            "test.timeout.multiplier": _PATIENCE,
            **stage.client,
        }
        if servers:
            configuration["bootstrap.servers"] = servers
        environment = {
            **os.environ,
            "RDKAFKA_TEST_CONF": str(write_properties(root / "test.conf", configuration)),
            "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
            "TEST_KAFKA_VERSION": _BROKER_VERSION,
            "KAFKA_PATH": str(root),
            "BROKERS": servers,
            "LD_LIBRARY_PATH": f"{runner.parent.parent / 'src'}",
        }
        command = [str(runner), *stage.options, "-p1"]
        for found in pool.map(lambda name: _run(command, name, environment), names):
            yield from found


def _run(command: Sequence[str], name: str, environment: dict[str, str]) -> list[Outcome]:
    part = name.partition("/")[2]
    chosen = {"TESTS": name[:4], **({"SUBTESTS": part} if part else {})}
    child = subprocess.Popen(
        command,
        cwd=_TESTS,
        env={**environment, **chosen},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        said, _ = child.communicate(timeout=_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return [Outcome(name, "failed", f"no end within {_SECONDS_MAX:.0f} s")]
    return told(name, said, child.returncode)


def told(name: str, said: str, code: int) -> list[Outcome]:
    """By the summary at the end of what the runner said; nothing of a test of another stage.

    `name` is that of the first test of its file; behind a stroke follows which part of it ran.
    """
    plain = _COLOURS.sub("", said)
    rows = [row for row in _ROW.findall(plain) if row[0].startswith(name[:4])]
    if not rows and code:
        why = _REASON.search(plain)
        reason = why[1][:160] if why else f"ended with {code}, without a word"
        return [Outcome(name, "failed", reason)]
    states = {"PASSED": "passed", "SKIPPED": "skipped"}
    stroke, part = name.partition("/")[1:]
    ended = [
        Outcome(f"{test}{stroke}{part}", states.get(state, "failed"), why.strip())
        for test, state, why in rows
    ]
    return [each for each in ended if each.state != "skipped" or each.reason not in _ELSEWHERE]
