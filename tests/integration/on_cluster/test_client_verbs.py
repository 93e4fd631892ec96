"""`produce`, `consume`, `groups` and `topics`, as somebody types them."""

import io
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from quorumlab.verbs import librdkafka
from quorumlab.verbs.produce import timeout_ms
from tests.integration.waiting import wait


class Terminal(io.BytesIO):
    """Each line is sent before the next one is read."""

    def isatty(self) -> bool:
        return True


class Typed:
    """A command line for one cluster, with what it says."""

    def __init__(
        self,
        cluster: LocalCluster,
        monkeypatch: pytest.MonkeyPatch,
        capfdbinary: pytest.CaptureFixture[bytes],
    ) -> None:
        self._servers = cluster.layout.bootstrap_servers
        self._monkeypatch = monkeypatch
        self._said = capfdbinary

    def __call__(self, line: str, text: bytes = b"", code: int = 0) -> list[str]:
        """The lines of its output, or what it complained of if another code is expected."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Terminal(text)))
        assert main([*line.split(), "--bootstrap-server", self._servers]) == code
        said, complained = self._said.readouterr()
        return (complained if code else said).decode().splitlines()


@pytest.fixture
def typed(
    cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Typed:
    return Typed(cluster, monkeypatch, capfdbinary)


def test_what_is_produced_is_consumed_by_whoever_asks(typed: Typed) -> None:
    typed("topics create typed --partitions 2 --replication-factor 3")
    (described,) = typed("topics describe typed --format jsonl")
    leaders = {each["partition"]: each["leader"] for each in json.loads(described)["partitions"]}

    told = typed("produce typed --partition 1 --key-separator :", b"a:1\nplain\n")
    assert told == [f"typed-1  offset {at}  leader {leaders[1]}" for at in (0, 1)]
    (other,) = typed("produce typed --partition 0 --header by=me --format jsonl", b"\xff\n")
    assert json.loads(other)["partition"] == 0

    lines = typed("consume typed --until-end")
    assert sorted(lines) == [
        f"typed-0  offset 0  leader {leaders[0]}  \\xff  by=me",
        f"typed-1  offset 0  leader {leaders[1]}  a  1",
        f"typed-1  offset 1  leader {leaders[1]}  plain",
    ]
    assert typed("consume typed --partition 1 --from -1 --until-end --format value") == ["plain"]
    assert typed("consume typed --partition 1 --from 0 --count 1 --format value") == ["1"]
    assert typed("consume typed --from end --until-end") == []


def test_output_that_nobody_reads_loses_no_input(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("topics create unheard --partitions 1 --replication-factor 1")
    reader, writer = os.pipe()
    os.close(reader)
    with monkeypatch.context() as closed, open(writer, "w") as nowhere:
        closed.setattr(sys, "stdout", nowhere)
        typed("produce unheard", b"1\n2\n3\n")
    assert typed("consume unheard --until-end --format value") == ["1", "2", "3"]


def test_leaders_are_asked_for_again_while_records_are_acknowledged(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("topics create again --partitions 1 --replication-factor 1")
    monkeypatch.setattr(librdkafka, "_NEW_SECONDS", 0.0)
    assert len(typed("produce again", b"1\n2\n3\n")) == 3


def test_bounds_are_kept(typed: Typed) -> None:
    typed("topics create bounds --partitions 1 --replication-factor 1")
    assert typed("produce bounds --count 0", b"1\n2\n") == []
    assert len(typed("produce bounds --count 1 --timeout 1e300", b"1\n2\n")) == 1
    assert typed("consume bounds --until-end --format value") == ["1"]
    for line in (
        "consume bounds --count -1",
        "produce bounds --count -1",
        "produce bounds --timestamp 0",
        "consume bounds --from 99999999999999999999",
    ):
        assert len(typed(line, code=2)) == 1
    (told,) = typed("consume bounds --from 7 --until-end", code=1)
    assert told.startswith("quorumlab: bounds-0: "), "and it does not begin elsewhere"


def test_member_is_told_with_what_it_has_not_committed_yet(
    typed: Typed, cluster: LocalCluster
) -> None:
    typed("topics create owned --partitions 1 --replication-factor 1")
    consumer = Consumer(
        {"bootstrap.servers": cluster.layout.bootstrap_servers, "group.id": "owner"}
    )
    consumer.subscribe(["owned"])
    try:
        wait(lambda: consumer.poll(0.1) is None and consumer.assignment() != [], "an assignment")
        (described,) = typed("groups describe owner --format jsonl")
    finally:
        consumer.close()
    (partition,) = json.loads(described)["partitions"]
    assert (partition["committed"], partition["end"]) == (None, 0)
    assert partition["member"] is not None


def test_group_goes_on_where_it_was_and_is_described(typed: Typed) -> None:
    typed("topics create --topic read --partitions 1 --replication-factor 1")
    typed("produce read --quiet", b"1\n2\n3\n")
    assert typed("consume read --group typing --count 2 --format value") == ["1", "2"]
    (described,) = typed("groups describe typing --format jsonl")
    (partition,) = json.loads(described)["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (2, 3, 1)
    assert typed("consume read --group typing --count 1 --format value") == ["3"]
    assert any(line.startswith("typing") for line in typed("groups list"))
    assert typed("groups delete typing") == ["Deleted group typing."]
    (told,) = typed("groups describe typing", code=1)
    assert told.startswith("quorumlab: no group 'typing'")


def test_what_is_not_there_is_named(typed: Typed) -> None:
    typed("topics create near --partitions 1 --replication-factor 1")
    for line in ("consume nar --until-end", "produce nar"):
        (told,) = typed(line, code=1)
        assert told.startswith("quorumlab: no topic 'nar': did you mean 'near'?")
    assert typed("consume near --partition 3", code=2) == [
        "quorumlab: --partition 3: near has 0 to 0"
    ]
    (told,) = typed("consume near --from noon", code=2)
    assert told.startswith("quorumlab: --from noon: ")


def test_time_out_is_never_for_ever() -> None:
    assert [timeout_ms(each) for each in (1e-9, 0.5, 1e300)] == [1, 500, 2**31 - 1]


def test_partition_without_a_leader_is_named() -> None:
    partitions = {index: SimpleNamespace(leader=leader) for index, leader in ((0, 1), (1, -1))}
    topics = SimpleNamespace(topics={"t": SimpleNamespace(partitions=partitions)})
    client: Any = SimpleNamespace(list_topics=lambda *_, **__: topics)
    told = librdkafka.Partitions(client, "t")
    assert told.without_leader([0]) == ""
    assert told.without_leader([1, 0]) == "no leader: t-1 (`quorumlab topics describe t`)"


def test_interrupt_within_a_callback_is_one() -> None:
    """Librdkafka's binding makes a SystemError of it."""
    with pytest.raises(KeyboardInterrupt), librdkafka.kafka_errors_as_failed():
        raise SystemError
