"""The plugin in suites of applications: each is a pytest run of its own, without our conftest."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from quorumlab.inspection.surroundings import running_nodes
from tests.integration.waiting import wait

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "testing-your-app.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
PLUGIN = "quorumlab.pytest_plugin"
MODES = ["in-process", "processes"]
PRODUCE = """
    from confluent_kafka import Producer

    def produce(cluster, topic):
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce(topic, b"hello")
        assert producer.flush(30) == 0
"""
Suite = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Runs a suite: its test files, then options of pytest."""

    def run(
        *files: str, options: tuple[str, ...] = (), path: str = ""
    ) -> subprocess.CompletedProcess[str]:
        for number, text in enumerate(files):
            (tmp_path / f"test_{number}.py").write_text(dedent(text))
        arguments = ["-p", PLUGIN, "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
        search = os.pathsep.join(filter(None, (str(ROOT), path)))
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *arguments, *options],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": search},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    return run


def outcome(run: subprocess.CompletedProcess[str], **expected: int) -> str:
    """Compare the last line with the numbers of outcomes; the output."""
    output = run.stdout + run.stderr
    last = (run.stdout.splitlines() or [""])[-1]  # librdkafka says on stderr what failed, too
    counted = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|errors?)", last)}
    assert counted == expected, output
    return output


# --- what it costs, and how it is loaded ---------------------------------------------------


def test_suite_without_a_cluster_imports_nothing_of_it(suite: Suite) -> None:
    text = """
        import sys

        def test_modules():
            loaded = {name.partition(".")[0] for name in sys.modules}
            assert not loaded & {"numpy", "aiohttp", "kio", "msgspec", "wire", "jepsen_like"}
            assert "quorumlab.pytest_plugin" in sys.modules
    """
    outcome(suite(text), passed=1)


def test_installed_plugin_may_be_named_once_more(suite: Suite, tmp_path: Path) -> None:
    """`-p` and the entry point are one plugin."""
    installed = tmp_path / "site" / "quorumlab_again-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: quorumlab-again\nVersion: 1\n"
    )
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{PLUGIN} = {PLUGIN}\n")
    assert f'"{PLUGIN}" = "{PLUGIN}"' in (ROOT / "pyproject.toml").read_text()
    outcome(suite("def test_nothing(): pass", path=str(tmp_path / "site")), passed=1)


def test_options_that_cannot_be_are_refused(suite: Suite) -> None:
    options = ("--quorumlab-brokers=none",)
    run = suite("def test_it(quorumlab_cluster): pass", options=options)
    assert "quorumlab_brokers = none: a number from 1 to 99" in outcome(run, error=1)


# --- faults that never fire, and what is kept ----------------------------------------------


@pytest.mark.extra
def test_fault_that_never_fires_fails_its_test_alone(suite: Suite) -> None:
    text = (
        PRODUCE
        + """
    import pytest

    def test_never(quorumlab_cluster, kafka_topic):
        quorumlab_cluster.inject("NOT_COORDINATOR", api="JoinGroup").once()
        produce(quorumlab_cluster, kafka_topic)

    def test_unarmed(quorumlab_cluster):
        quorumlab_cluster.inject("NOT_COORDINATOR", api="JoinGroup")

    def test_fails_for_another_reason(quorumlab_cluster):
        quorumlab_cluster.inject("NOT_COORDINATOR", api="Heartbeat").once()
        assert 1 == 2

    def test_fires(kafka_cluster, kafka_topic):
        rule = kafka_cluster.inject("NOT_LEADER_OR_FOLLOWER", api="Produce").once()
        produce(kafka_cluster, kafka_topic)
        assert rule.fired == 1

    @pytest.mark.kafka_topic(partitions=3)
    def test_next(quorumlab_cluster, kafka_topic):
        assert type(kafka_topic) is str
        assert quorumlab_cluster.partition(kafka_topic, 2).isr
        produce(quorumlab_cluster, kafka_topic)

    def test_strangers(quorumlab_cluster):
        with pytest.raises(Exception, match="no broker 99: this cluster has"):
            quorumlab_cluster.pause(99)
        with pytest.raises(Exception, match="did you mean Produce"):
            quorumlab_cluster.inject("NOT_COORDINATOR", api="Product")

    @pytest.fixture
    def breaks():
        yield
        assert 3 == 4

    def test_last_one_fails_late(quorumlab_cluster, breaks):
        pass
"""
    )
    output = outcome(suite(text, options=("--quorumlab=in-process",)), passed=4, failed=3, error=1)
    assert len(re.findall("data and logs kept in", output)) == 4
    assert 'inject("NOT_COORDINATOR", api="JoinGroup") never fired' in output
    assert "was never armed: add .once()" in output
    assert 'inject("NOT_COORDINATOR", api="Heartbeat") never fired' in output
    kept = re.search(r"data and logs kept in (\S+) \(in-process\)\nquorumlab inspect (\S+)", output)
    assert kept is not None
    assert Path(kept[2]).is_dir()
    assert Path(kept[2]).is_relative_to(kept[1])


@pytest.mark.extra
def test_workers_of_xdist_have_a_cluster_each(suite: Suite) -> None:
    text = """
        import time

        def test_it(quorumlab_cluster, kafka_topic, worker_id):
            time.sleep(0.3)  # for the other worker to take the next one
            print(f"here {worker_id} {quorumlab_cluster.bootstrap_servers}")
            assert 0
    """
    options = ("-n2", "--dist=loadfile", "--quorumlab=in-process", "--quorumlab-brokers=1")
    output = outcome(suite(text, text, options=options), failed=2)
    seen = dict(re.findall(r"here (gw\d) (\S+)", output))
    assert len({*seen.values()}) == len(seen) == 2
    assert len({*re.findall(r"kept in (\S+)", output)}) == 2


@pytest.mark.extra
def test_nodes_end_with_a_pytest_that_is_killed(suite: Suite, tmp_path: Path) -> None:
    text = """
        import os, signal

        def test_it(quorumlab_cluster):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    run = suite(text, options=("--quorumlab-brokers=1", "--quorumlab-controllers=1"))
    assert run.returncode == -9
    assert len(list(tmp_path.glob("base/quorumlab0/cluster/*/node.log"))) == 2
    wait(
        lambda: not any(tmp_path in node.config.parents for node in running_nodes()),
        "the end of all nodes",
        15,
    )


# --- each fault ----------------------------------------------------------------------------


@pytest.mark.extra
@pytest.mark.parametrize("mode", MODES)
def test_every_fault_strikes_and_heals(suite: Suite, mode: str) -> None:
    text = (
        PRODUCE
        + """
    import time

    def wait(look):
        deadline = time.monotonic() + 20
        while not look():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def test_kill_controller(quorumlab_cluster, kafka_topic):
        old = quorumlab_cluster.active_controller()
        with quorumlab_cluster.kill_controller() as fault:
            assert fault.nodes == (old,)
            wait(lambda: quorumlab_cluster.active_controller() != old)
            produce(quorumlab_cluster, kafka_topic)

    def test_kill(quorumlab_cluster, kafka_topic):
        leader = quorumlab_cluster.partition(kafka_topic).leader
        quorumlab_cluster.kill(leader)
        wait(lambda: quorumlab_cluster.partition(kafka_topic).leader != leader)
        produce(quorumlab_cluster, kafka_topic)

    def test_pause(quorumlab_cluster, kafka_topic):
        leader = quorumlab_cluster.partition(kafka_topic).leader
        with quorumlab_cluster.pause(leader):
            wait(lambda: quorumlab_cluster.partition(kafka_topic).leader != leader)

    def test_isolate(quorumlab_cluster, kafka_topic):
        leader = quorumlab_cluster.partition(kafka_topic).leader
        with quorumlab_cluster.isolate(leader):
            wait(lambda: quorumlab_cluster.partition(kafka_topic).leader != leader)

    def test_lag_follower(quorumlab_cluster, kafka_topic):
        fault = quorumlab_cluster.lag_follower(kafka_topic)
        produce(quorumlab_cluster, kafka_topic)
        [follower] = fault.nodes
        wait(lambda: follower not in quorumlab_cluster.partition(kafka_topic).isr)

    def test_all_is_well(quorumlab_cluster, kafka_topic):
        assert len(quorumlab_cluster.partition(kafka_topic).isr) == 3
        produce(quorumlab_cluster, kafka_topic)
"""
    )
    options = (f"--quorumlab={mode}", "--quorumlab-controllers=3")
    outcome(suite(text, options=options), passed=6)


# --- real clients --------------------------------------------------------------------------


AIOKAFKA = """
    import asyncio
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    def test_aiokafka(quorumlab_cluster, kafka_topic):
        servers = quorumlab_cluster.bootstrap_servers
        full = quorumlab_cluster.inject("NOT_ENOUGH_REPLICAS", api="Produce", topic=kafka_topic)
        busy = quorumlab_cluster.inject("COORDINATOR_LOAD_IN_PROGRESS", api="FindCoordinator")

        async def test():
            async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
                full.times(2)
                await producer.send_and_wait(kafka_topic, b"hello")
            busy.once()
            async with AIOKafkaConsumer(
                kafka_topic, bootstrap_servers=servers, group_id="a", auto_offset_reset="earliest"
            ) as consumer:
                return (await consumer.getone()).value

        assert asyncio.run(asyncio.wait_for(test(), 60)) == b"hello"
        assert (full.fired, busy.fired) == (2, 1)
"""
KAFKA_PYTHON = """
    import pytest
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import TopicAuthorizationFailedError

    def test_kafka_python(quorumlab_cluster, kafka_topic):
        servers = quorumlab_cluster.bootstrap_servers.split(",")
        producer = KafkaProducer(bootstrap_servers=servers, acks="all")
        quorumlab_cluster.inject("NOT_LEADER_OR_FOLLOWER", api="Produce", topic=kafka_topic).once()
        assert producer.send(kafka_topic, b"hello").get(30).offset == 0
        denied = quorumlab_cluster.inject(
            "TOPIC_AUTHORIZATION_FAILED", api="Produce", topic=kafka_topic
        )
        with denied.always(), pytest.raises(TopicAuthorizationFailedError):
            producer.send(kafka_topic, b"forbidden").get(30)
        producer.close()
        quorumlab_cluster.inject("REBALANCE_IN_PROGRESS", api="SyncGroup").once()
        consumer = KafkaConsumer(
            kafka_topic,
            bootstrap_servers=servers,
            group_id="k",
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )
        assert next(consumer).value == b"hello"
        consumer.close()
"""
CONFLUENT = """
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    import pytest

    def test_confluent(quorumlab_cluster, kafka_topic):
        servers = quorumlab_cluster.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        moved = quorumlab_cluster.inject("NOT_LEADER_OR_FOLLOWER", api="Produce", topic=kafka_topic)
        moved.times(2)
        for number in range(10):
            producer.produce(kafka_topic, str(number))
        assert producer.flush(30) == 0
        consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "c", "auto.offset.reset": "earliest"}
        )
        gone = quorumlab_cluster.inject("NOT_LEADER_OR_FOLLOWER", api="Fetch", topic=kafka_topic)
        gone.once()
        consumer.subscribe([kafka_topic])
        read = [consumer.poll(30).value() for _ in range(10)]
        assert read == [str(number).encode() for number in range(10)]
        quorumlab_cluster.inject("GROUP_AUTHORIZATION_FAILED", api="OffsetCommit").once()
        with pytest.raises(KafkaException) as failed:
            consumer.commit(asynchronous=False)
        assert failed.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        [committed] = consumer.committed([TopicPartition(kafka_topic, 0)])
        assert committed.offset < 0, "the broker has not heard of it"
        consumer.close()
"""


@pytest.mark.extra
@pytest.mark.parametrize("mode", MODES)
def test_clients_meet_their_errors_and_the_examples_of_the_page_run(
    suite: Suite, tmp_path: Path, mode: str
) -> None:
    assert len(EXAMPLES) == 3
    options = (f"--quorumlab={mode}",)
    outcome(suite(AIOKAFKA, KAFKA_PYTHON, CONFLUENT, *EXAMPLES, options=options), passed=6)
    assert not list(tmp_path.glob("base/quorumlab0/cluster")), "the data of a green run"
