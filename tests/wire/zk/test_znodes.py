"""Payloads: those that Apache Kafka 3.9 wrote, byte by byte, and those of the documents."""

import json
from pathlib import Path
from typing import Protocol, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.zk.znodes import (
    BrokerRegistration,
    ClusterId,
    ConfigChange,
    ControllerOwner,
    EntityConfig,
    InvalidZnode,
    PartitionIsr,
    PartitionLeader,
    PartitionList,
    PartitionState,
    ProducerIdBlock,
    Reassignments,
    ReplicaList,
    StateChange,
    StateChangeKind,
    TopicAssignment,
    decode_epoch,
    encode_epoch,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/zookeeper.json").read_text())["znodes"]


class Payload(Protocol):
    def encode(self) -> bytes: ...

    @classmethod
    def decode(cls, data: bytes) -> Self: ...


BY_PATH: dict[str, type[Payload]] = {
    "/brokers/ids/0": BrokerRegistration,
    "/brokers/topics/t": TopicAssignment,
    "/brokers/topics/t/partitions/0/state": PartitionState,
    "/cluster/id": ClusterId,
    "/config/brokers/<default>": EntityConfig,
    "/config/changes/config_change_0000000000": ConfigChange,
    "/config/topics/t": EntityConfig,
    "/controller": ControllerOwner,
}

OTHERS: tuple[Payload, ...] = (
    BrokerRegistration(host="h", port=9092),
    BrokerRegistration(host="h", port=9092, version=2, endpoints=("PLAINTEXT://h:9092",)),
    ControllerOwner(broker_id=8, timestamp_ms=5),
    TopicAssignment(partitions={0: (1, 2), 1: (2, 3)}),
    TopicAssignment(partitions={0: (1, 2, 3)}, version=2, adding={0: (3,)}, removing={0: (1,)}),
    PartitionList(partitions=(("t", 1), ("u", 0))),
    Reassignments(replicas={("t", 1): (1, 2, 3)}),
    ProducerIdBlock(broker_id=1, first=0, last=999),
    ReplicaList(replicas=(3, 1)),
    PartitionLeader(leader=1),
    PartitionLeader(leader=1, leader_epoch=4),
    PartitionIsr(isr=(1, 2)),
    PartitionIsr(isr=(), leader_epoch=4),
    StateChange(kind=StateChangeKind.CLOSE_REPLICA, topic="t", partition=1, leader_epoch=4),
)


@pytest.mark.parametrize("path", BY_PATH)
def test_node_of_kafka_is_read_and_written_byte_by_byte(path: str) -> None:
    data = GOLDEN[path]["data"].encode()
    assert BY_PATH[path].decode(data).encode() == data


@pytest.mark.parametrize("payload", OTHERS, ids=lambda payload: type(payload).__name__)
def test_payload_is_read_as_it_was_written(payload: Payload) -> None:
    assert type(payload).decode(payload.encode()) == payload


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (
            PartitionList(partitions=(("Topic1", 8), ("Topic2", 16))),
            '{"version":1,"partitions":[{"topic":"Topic1","partition":8},'
            '{"topic":"Topic2","partition":16}]}',
        ),
        (
            Reassignments(replicas={("Topic3", 1): (1, 2, 3)}),
            '{"version":1,"partitions":[{"topic":"Topic3","partition":1,"replicas":[1,2,3]}]}',
        ),
        (
            ProducerIdBlock(broker_id=2, first=1000, last=1999),
            '{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}',
        ),
        (
            TopicAssignment(partitions={0: (2,), 1: (3,)}),
            '{"version":1,"partitions":{"0":[2],"1":[3]}}',
        ),
    ],
)
def test_payload_looks_as_in_its_document(payload: Payload, text: str) -> None:
    assert payload.encode() == text.encode()


def test_epoch_of_the_controller_is_a_bare_integer() -> None:
    assert encode_epoch(12) == b"12"
    assert decode_epoch(GOLDEN["/controller_epoch"]["data"].encode()) == 1
    with pytest.raises(InvalidZnode):
        decode_epoch(b'{"epoch":1}')


def test_administrator_may_write_a_bare_broker_id_as_controller() -> None:
    assert ControllerOwner.decode(b"3\n").broker_id == 3


def test_unknown_keys_are_ignored_and_lower_versions_taken() -> None:
    data = b'{"jmx_port":-1,"host":"Node1","version":1,"port":9092,"colour":"red"}'
    assert BrokerRegistration.decode(data) == BrokerRegistration(host="Node1", port=9092)


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"[]", b"{", b"\xff", b'{"isr":[1]}', b'{"partitions":{"x":[1]}}', b"[" * 9999],
)
@pytest.mark.parametrize("kind", dict.fromkeys(type(one) for one in OTHERS))
def test_what_no_reader_understands_is_invalid(kind: type[Payload], data: bytes) -> None:
    if kind is PartitionIsr and data == b'{"isr":[1]}':
        return
    with pytest.raises(InvalidZnode):
        kind.decode(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = ("version", "partitions", "isr", "leader", "leader_epoch", "controller_epoch", "replicas")


@given(values=st.dictionaries(st.sampled_from(KEYS), json_values))
def test_whatever_a_person_writes_is_read_or_invalid(values: dict[str, object]) -> None:
    data = json.dumps(values).encode()
    for kind in (PartitionState, TopicAssignment, Reassignments, PartitionList, ReplicaList):
        try:
            kind.decode(data)
        except InvalidZnode:
            continue
