"""Control RPCs on the wire: the bytes as they are, and back; what is not one is refused."""

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.api_table import APIS, CONTROL_RPCS, ListenerKind, Versions, api_of, api_versions_for
from wire.apis import UnsupportedVersion, decode_request, decode_response, encode_request
from wire.apis import encode_response as encode_answer
from wire.canonical import canonical_class
from wire.errors import ErrorCode
from wire.varint import Malformed
from wire.zk.control_rpc import (
    AlterIsrRequest,
    AlterIsrResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListenerAddress,
    LiveBroker,
    PartitionError,
    StopReplicaRequest,
    TopicPartition,
    UpdateMetadataRequest,
    WantedIsr,
)

STATE = LeaderAndIsr(
    topic="t", partition=1, leader=2, leader_epoch=3, isr=(2, 1), zk_version=4, replicas=(1, 2)
)
GOLDEN = [
    (
        LeaderAndIsrRequest(
            client_id=1,
            ack_timeout_ms=500,
            is_init=True,
            partitions=(STATE,),
            controller_epoch=7,
            broker_generation=99,
        ),
        "4e24 0000 0000002a 0001 31" + "9601cd01f4c39197a174010203920201049201020763",
    ),
    (
        LeaderAndIsrRequest(client_id=1, ack_timeout_ms=500),
        "4e24 0000 0000002a 0001 31" + "9601cd01f4c290ffff",
    ),
    (
        StopReplicaRequest(client_id=1, ack_timeout_ms=5, partitions=(TopicPartition("t", 0),)),
        "4e25 0000 0000002a 0001 31" + "9601059192a17400c3ffff",
    ),
    (
        UpdateMetadataRequest(
            client_id=1,
            ack_timeout_ms=5,
            live_brokers=(
                LiveBroker(
                    id=2, listeners=(ListenerAddress(listener="P", host="h", port=9),), generation=8
                ),
            ),
        ),
        "4e26 0000 0000002a 0001 31" + "9701059194029193a150a16809c00890ffffc2",
    ),
    (
        ControlledShutdownRequest(broker_id=3, broker_generation=9),
        "4e27 0000 0000002a 0001 31" + "920309",
    ),
    (
        AlterIsrRequest(broker_id=3, broker_epoch=9),
        "4e58 0000 0000002a 0001 31" + "93030990",
    ),
    (  # BrokerId BrokerEpoch [Topic [PartitionId LeaderAndIsr]], and nothing else
        AlterIsrRequest.of(
            3,
            9,
            {
                TopicPartition(*each): WantedIsr(
                    leader=3, leader_epoch=4, isr=(3, 1), current_zk_version=5
                )
                for each in (("t", 0), ("u", 1), ("t", 2))
            },
        ),
        "4e58 0000 0000002a 0001 31"
        + "930309"
        + "92"
        + "92a174"
        + "92"
        + "92009403049203 0105"
        + "92029403049203 0105"
        + "92a175"
        + "91"
        + "92019403049203 0105",
    ),
]


def joined(buffers: list[bytes]) -> bytes:
    return b"".join(buffers)


@pytest.mark.parametrize(("request_", "golden"), GOLDEN)
def test_request_has_these_bytes(request_: Any, golden: str) -> None:
    frame = joined(encode_request(request_, 0, 42, "1"))
    assert frame.hex() == golden.replace(" ", "")
    assert decode_request(frame, ListenerKind.ZOOKEEPER).body == request_


def test_response_has_these_bytes() -> None:
    answer = LeaderAndIsrResponse(
        results=(PartitionError(topic="t", partition=0, error_code=ErrorCode.KAFKA_STORAGE_ERROR),)
    )
    key = api_of(type(answer)).key
    frame = joined(encode_answer(answer, key, 0, 42))
    assert frame.hex() == "0000002a" + "92009193a1740038"
    assert decode_response(frame, key, 0) == (42, answer)


def test_answer_to_alter_isr_is_nested_by_topic() -> None:
    """ErrorCode [Topic [PartitionId ErrorCode]]"""
    answer = AlterIsrResponse.of({TopicPartition("t", 7): ErrorCode.FENCED_LEADER_EPOCH})
    frame = joined(encode_answer(answer, api_of(AlterIsrResponse).key, 0, 42))
    assert frame.hex() == "0000002a" + "9200" + "91" + "92a174" + "91" + "92074a"


def test_fields_that_a_peer_does_not_send_have_their_defaults() -> None:
    frame = bytes.fromhex("4e27000000000000ffff" + "9103")
    assert decode_request(frame).body == ControlledShutdownRequest(broker_id=3)


ANNOUNCED = ("dd7fffffff", "ddffffffff", "df7fffffff", "c67fffffff", "db7fffffff")  # and not there


@pytest.mark.parametrize(
    "body",
    [
        *("", "c0", "90", "92a16109", "9203", "80", "92030900", "9203c3"),
        "930309" + "91" * 100_000,
        *("93 03 09" + announced for announced in ANNOUNCED),
    ],
)
def test_what_is_no_message_is_malformed(body: str) -> None:
    with pytest.raises(Malformed):
        decode_request(bytes.fromhex("4e27000000000000ffff" + body))


def test_a_name_that_is_no_text_is_malformed() -> None:
    with pytest.raises(Malformed):
        decode_request(bytes.fromhex("4e25000000000000ffff" + "9601059192a1ff00c3ffff"))


@pytest.mark.parametrize("listener", [ListenerKind.BROKER, ListenerKind.CONTROLLER])
def test_control_rpcs_are_served_in_zookeeper_mode_only(listener: ListenerKind) -> None:
    frame = joined(encode_request(ControlledShutdownRequest(broker_id=3), 0, 1))
    with pytest.raises(UnsupportedVersion):
        decode_request(frame, listener)
    assert not {api.key for api in CONTROL_RPCS} & {
        each.api_key for each in api_versions_for(listener)
    }


def test_a_listener_of_zookeeper_mode_serves_what_brokers_do_and_more() -> None:
    served = {each.api_key for each in api_versions_for(ListenerKind.ZOOKEEPER)}
    assert served >= {api.key for api in APIS if api.broker is not None}
    assert served >= {api.key for api in CONTROL_RPCS} | {58, 67}


def test_keys_are_none_of_kafkas() -> None:
    assert all(api.key >= 20_000 and api.versions == Versions(0, 0) for api in CONTROL_RPCS)


def values_of(kind: type) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{name: from_hint(hint) for name, hint in get_type_hints(kind).items()})


def from_hint(hint: Any) -> st.SearchStrategy[Any]:
    if hint is int:
        return st.integers(-(2**31), 2**31 - 1)
    if hint is str:
        return st.text(max_size=5)
    if getattr(hint, "__origin__", None) is tuple:
        return st.lists(from_hint(hint.__args__[0]), max_size=3).map(tuple)
    if hint == str | None:
        return st.none() | st.text(max_size=5)
    if hint is ErrorCode:
        return st.sampled_from(ErrorCode)
    if hint is bool:
        return st.booleans()
    return values_of(hint)


@pytest.mark.parametrize("api", CONTROL_RPCS, ids=lambda api: api.name)
@given(data=st.data())
def test_every_message_comes_back_as_it_was(api: Any, data: st.DataObject) -> None:
    request = data.draw(values_of(canonical_class(api.name, "request")))
    assert decode_request(joined(encode_request(request, 0, 1))).body == request
    answer = data.draw(values_of(canonical_class(api.name, "response")))
    assert decode_response(joined(encode_answer(answer, api.key, 0, 1)), api.key, 0)[1] == answer


def test_remaining_partitions_are_told() -> None:
    answer = ControlledShutdownResponse(remaining=(TopicPartition("t", 1),))
    frame = joined(encode_answer(answer, 20_007, 0, 1))
    assert decode_response(frame, 20_007, 0)[1] == answer
