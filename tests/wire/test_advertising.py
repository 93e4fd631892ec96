"""What clients and nodes are told of APIs and features."""

from wire.api_table import (
    ListenerKind,
    api_by_key,
    api_versions_for,
    api_versions_response,
    api_versions_unsupported,
)
from wire.apis import decode_response, encode_response
from wire.errors import ErrorCode
from wire.messages.features import ApiVersion, SupportedFeatureKey

BROKER, CONTROLLER = ListenerKind.BROKER, ListenerKind.CONTROLLER


def joined(buffers: list[bytes]) -> bytes:
    return b"".join(buffers)


def advertised(listener: ListenerKind) -> dict[int, tuple[int, int]]:
    return {api.api_key: (api.min_version, api.max_version) for api in api_versions_for(listener)}


def test_brokers_advertise_what_clients_ask_for() -> None:
    ranges = advertised(BROKER)
    assert ranges[0] == (0, 13)  # librdkafka compresses only if 0 is there
    assert ranges[1] == (4, 18)
    assert ranges[10][0] == 0
    assert ranges[22][0] == 0
    assert not ranges.keys() & {52, 53, 54, 56, 58, 62, 63, 67, 70}


def test_controllers_advertise_what_nodes_ask_for() -> None:
    ranges = advertised(CONTROLLER)
    assert ranges[1] == (12, 18)
    assert ranges[52] == (0, 2)
    assert ranges.keys() >= {18, 53, 54, 55, 56, 58, 62, 63, 64, 67, 70}
    assert not ranges.keys() & {0, 2, 3}


def test_forwarded_apis_are_cut_to_what_the_controller_serves() -> None:
    controller = (
        ApiVersion(api_key=19, min_version=0, max_version=5),
        ApiVersion(api_key=20, min_version=7, max_version=9),
        ApiVersion(api_key=1, min_version=0, max_version=4),
    )
    answer = api_versions_response(BROKER, controller=controller)
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert ranges[19] == (2, 5)
    assert 20 not in ranges  # nothing in common
    assert 37 not in ranges  # not served there
    assert ranges[1] == (4, 18)  # not forwarded


def test_features_from_0_up_are_left_out_before_version_4() -> None:
    supported = (
        SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),
        SupportedFeatureKey(name="metadata.version", min_version=7, max_version=33),
    )
    answer = api_versions_response(CONTROLLER, supported=supported, finalized_epoch=9)
    for version, names in ((3, ["metadata.version"]), (4, ["kraft.version", "metadata.version"])):
        _, body = decode_response(joined(encode_response(answer, 18, version, 1)), 18, version)
        assert [feature.name for feature in body.supported_features] == names
        assert body.finalized_features_epoch == 9


def test_unknown_version_of_api_versions_is_answered_with_the_range() -> None:
    frame = joined(encode_response(api_versions_unsupported(), 18, 0, 1))
    assert decode_response(frame, 18, 0)[1].error_code is ErrorCode.UNSUPPORTED_VERSION
    assert api_versions_unsupported().api_keys == (
        ApiVersion(api_key=18, min_version=0, max_version=4),
    )


def test_apis_are_called_as_kafka_calls_them() -> None:
    topics, voters = api_by_key(19), api_by_key(80)
    assert topics is not None
    assert voters is not None
    assert (topics.title, voters.title) == ("CreateTopics", "AddRaftVoter")
