"""A real Kafka node can be formatted, started, asked and stopped from the jars."""

from itertools import islice
from pathlib import Path

import pytest

from jepsen_like.real.free_ports import free_ports
from tests.kafka.kafka_jars import (
    KafkaNode,
    format_storage,
    missing_reason,
    run_tool,
    version,
    write_properties,
)


def test_versions_are_pinned_exactly() -> None:
    assert [version(line).count(".") for line in ("4", "3.9")] == [2, 2]


@pytest.mark.extra
@pytest.mark.slow
@pytest.mark.parametrize("line", ["4", "3.9"])
def test_combined_node_serves_and_stops(line: str, tmp_path: Path) -> None:
    reason = missing_reason(line)
    if reason is not None:
        pytest.skip(reason)
    broker, controller = islice(free_ports(), 2)
    properties = write_properties(
        tmp_path / "server.properties",
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": tmp_path / "data",
        },
    )
    format_storage(properties, "MkU3OEVBNTcwNTJENDM2Qg", line=line)
    topics = "org.apache.kafka.tools.TopicCommand"
    to_broker = ["--bootstrap-server", f"127.0.0.1:{broker}"]
    with KafkaNode(properties, tmp_path / "out", line=line) as node:
        run_tool(topics, [*to_broker, "--create", "--topic", "t"], line=line, check=True)
        listed = run_tool(topics, [*to_broker, "--list"], line=line, check=True)
        status = node.stop()
    assert listed.stdout.split() == ["t"]
    assert status == 143, "ended by our SIGTERM, after its shutdown hooks"
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
