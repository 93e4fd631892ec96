"""Configs: which value holds, what may be set, what is described."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.config import ControllerConfig
from controller.decisions.config_changes import (
    decide_alter_configs,
    decide_incremental_alter_configs,
)
from controller.metadata.config_keys import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    ConfigType,
    Update,
    description,
    problem,
)
from controller.metadata.configs import (
    check_topic_config,
    min_insync_replicas,
    topic_value,
    topics_with_unclean_election,
    unclean_election_enabled,
)
from controller.metadata.describe_configs import describe_configs, list_config_resources
from controller.metadata.image import MetadataImage
from tests.controller.clusters import (
    CONFIG,
    OTHER_TOPIC,
    TOPIC,
    cluster,
    config,
    partition,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    LegacyConfig,
    LegacyResource,
    ListConfigResourcesRequest,
)

TOPICS, BROKERS = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
BASE = with_topic(cluster(1, 2), partition(0, (1, 2)))


# --- which value holds ----------------------------------------------------------------------------


def test_topic_over_broker_over_default_of_brokers_over_file_over_default() -> None:
    image, static = BASE, {"log.retention.ms": "2"}

    def value(broker_id: int | None = 1) -> str:
        return topic_value(image, "t", "retention.ms", broker_id=broker_id, static=static)

    assert topic_value(image, "t", "retention.ms") == "604800000"
    assert value() == "2"
    image = step(image, config("log.retention.ms", "3", resource_type=BROKERS, resource=""))
    assert value() == "3"
    image = step(image, config("log.retention.ms", "4", resource_type=BROKERS, resource="1"))
    assert (value(), value(2), value(None)) == ("4", "3", "3")
    image = step(image, config("retention.ms", "5"))
    assert (value(), value(2)) == ("5", "5")


def test_stronger_synonym_wins_and_units_are_turned_into_milliseconds() -> None:
    hours = {"log.retention.hours": "2"}
    assert topic_value(BASE, "t", "retention.ms", static=hours) == "7200000"
    both = {"log.retention.hours": "2", "log.retention.minutes": "1"}
    assert topic_value(BASE, "t", "retention.ms", static=both) == "60000"
    never = {"log.retention.hours": "-1"}
    assert topic_value(BASE, "t", "retention.ms", static=never) == "-1"


def test_every_key_of_a_topic_has_a_value_that_may_be_set() -> None:
    values = {key: topic_value(BASE, "t", key) for key in TOPIC_KEYS}
    assert set(values) == set(TOPIC_KEYS)
    for name, value in values.items():
        assert problem(TOPIC_KEYS[name], value) is None
    assert check_topic_config(dict(values)) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("preallocate", "boolean; cluster-wide"),
        ("min.insync.replicas", "int, at least 1; cluster-wide"),
        ("min.cleanable.dirty.ratio", "double, at least 0, at most 1; cluster-wide"),
        ("cleanup.policy", "list, of compact, delete; cluster-wide"),
    ],
)
def test_description_of_a_key_names_the_bounds_that_it_has(name: str, words: str) -> None:
    assert description(TOPIC_KEYS[name]) == words


def test_every_default_of_a_broker_may_be_set() -> None:
    for key in BROKER_KEYS.values():
        assert key.default is None or problem(key, key.default) is None, key


def test_topics_with_unclean_election() -> None:
    image = with_topic(BASE, partition(0, (1, 2)), name="u", topic_id=OTHER_TOPIC)
    assert topics_with_unclean_election(image) == frozenset()
    image = step(image, config("unclean.leader.election.enable", "true", resource="u"))
    assert topics_with_unclean_election(image) == {OTHER_TOPIC}
    static = {"unclean.leader.election.enable": "true"}
    image = step(image, config("unclean.leader.election.enable", "false", resource="u"))
    assert topics_with_unclean_election(image, static) == {TOPIC}
    assert unclean_election_enabled(image, "t", static)
    assert min_insync_replicas(image, "t") == 1


# --- what may be set ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "is_fine"),
    [
        ("cleanup.policy", "compact,delete", True),
        ("cleanup.policy", "compact, shred", False),
        ("retention.ms", "-1", True),
        ("retention.ms", "-2", False),
        ("retention.ms", "soon", False),
        ("retention.ms", str(2**63), False),
        ("segment.bytes", str(2**31), False),
        ("segment.bytes", "1048576", True),
        ("segment.bytes", "1048575", False),
        ("min.insync.replicas", "0", False),
        ("min.insync.replicas", "1_0", False),
        ("min.insync.replicas", " +2 ", True),
        ("min.cleanable.dirty.ratio", "1.5", False),
        ("min.cleanable.dirty.ratio", "nan", False),
        ("min.cleanable.dirty.ratio", "0.25", True),
        ("preallocate", "TRUE", True),
        ("preallocate", "yes", False),
        ("compression.type", "zstd", True),
        ("compression.type", "rar", False),
        ("message.timestamp.type", "LogAppendTime", True),
        ("message.timestamp.type", "logappendtime", False),
        ("leader.replication.throttled.replicas", "*", True),
        ("leader.replication.throttled.replicas", "0:1, 12:3", True),
        ("leader.replication.throttled.replicas", "0-1", False),
        ("remote.storage.enable", "false", True),
        ("remote.storage.enable", "true", False),
    ],
)
def test_value_of_a_topic(name: str, value: str, is_fine: bool) -> None:
    refusal = check_topic_config({name: value})
    assert (refusal is None) == is_fine
    if refusal is not None:
        assert refusal.error_code is ErrorCode.INVALID_CONFIG
        assert f"{value} for configuration {name}" in (refusal.message or "") or "shred" in value


def test_values_that_contradict_each_other() -> None:
    refusal = check_topic_config({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"})
    assert refusal is not None
    assert "min.compaction.lag.ms (9) is larger" in (refusal.message or "")


# --- incremental --------------------------------------------------------------------------------


def entry(name: str, value: str | None, operation: int = SET) -> AlterableConfig:
    return AlterableConfig(name=name, config_operation=operation, value=value)


def alter(
    image: MetadataImage,
    *entries: AlterableConfig,
    kind: int = TOPICS,
    name: str = "t",
    times: int = 1,
    config: ControllerConfig = CONFIG,
) -> tuple[ErrorCode, MetadataImage, int]:
    """The error, the image after, and how many records there were."""
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
    request = IncrementalAlterConfigsRequest(resources=(resource,) * times, validate_only=False)
    decision = decide_incremental_alter_configs(image, request, config)
    after = step(image, *decision.changes) if decision.changes else image
    return decision.response.responses[0].error_code, after, len(decision.changes)


@pytest.mark.parametrize(
    ("entries", "kind", "name", "expected"),
    [
        ((entry("retention.ms", "soon"),), TOPICS, "unknown", "UNKNOWN_TOPIC_OR_PARTITION"),
        ((entry("retention.ms", "1"),), TOPICS, "", "INVALID_REQUEST"),
        ((entry("retention.ms", "1"),), 1, "t", "INVALID_REQUEST"),
        ((entry("retention.ms", "soon"), entry("retention.ms", "9")), TOPICS, "t", "NONE"),
        ((entry("retention.ms", None),), TOPICS, "t", "INVALID_REQUEST"),
        ((entry("retention.ms", "1", 9),), TOPICS, "t", "INVALID_REQUEST"),
        ((entry("retention.ms", "1", APPEND),), TOPICS, "t", "INVALID_CONFIG"),
        ((entry("no.such", "1"),), TOPICS, "t", "INVALID_CONFIG"),
        ((entry("retention.ms", "soon"),), TOPICS, "t", "INVALID_CONFIG"),
        ((entry("log.retention.ms", "1"),), BROKERS, "7", "BROKER_ID_NOT_REGISTERED"),
        ((entry("log.retention.ms", "1"),), BROKERS, "seven", "INVALID_REQUEST"),
        ((entry("log.retention.ms", "1"),), BROKERS, "7" * 5000, "INVALID_REQUEST"),
        ((entry("process.roles", "broker"),), BROKERS, "1", "INVALID_REQUEST"),
        ((entry("listeners", "X://:1"),), BROKERS, "", "INVALID_REQUEST"),
        ((entry("log.retention.ms", "soon"),), BROKERS, "", "INVALID_REQUEST"),
        ((entry("plugin.key", "anything"),), BROKERS, "1", "NONE"),
        ((entry("log.retention.ms", "9"),), BROKERS, "", "NONE"),
        ((entry("retention.ms", "9"),), TOPICS, "t", "NONE"),
    ],
)
def test_change_of_a_config(
    entries: tuple[AlterableConfig, ...], kind: int, name: str, expected: str
) -> None:
    error, _, records = alter(BASE, *entries, kind=kind, name=name)
    assert error is ErrorCode[expected]
    assert bool(records) == (expected == "NONE")


def test_request_that_no_frame_could_replicate_is_refused() -> None:
    large = tuple(entry(f"plugin.{n}", "x" * (1 << 20)) for n in range(5))
    error, _, records = alter(BASE, *large, kind=BROKERS, name="")
    assert (error, records) == (ErrorCode.POLICY_VIOLATION, 0)
    many = tuple(entry(f"plugin.{n}", "x") for n in range(10_001))
    error, _, records = alter(BASE, *many, kind=BROKERS, name="")
    assert (error, records) == (ErrorCode.POLICY_VIOLATION, 0)


def test_values_are_set_and_deleted() -> None:
    _, image, _ = alter(BASE, entry("retention.ms", "9"), entry("segment.ms", "8"))
    assert image.config(TOPICS, "t") == {"retention.ms": "9", "segment.ms": "8"}
    _, image, _ = alter(image, entry("retention.ms", None, DELETE))
    assert image.config(TOPICS, "t") == {"segment.ms": "8"}


def test_lists_are_appended_to_and_subtracted_from() -> None:
    _, image, _ = alter(BASE, entry("cleanup.policy", "compact", APPEND))
    assert image.config(TOPICS, "t") == {"cleanup.policy": "delete,compact"}
    _, same, records = alter(image, entry("cleanup.policy", "compact", APPEND))
    assert (same, records) == (image, 0)
    _, image, _ = alter(image, entry("cleanup.policy", "delete", SUBTRACT))
    assert image.config(TOPICS, "t") == {"cleanup.policy": "compact"}


@pytest.mark.parametrize("name", ["retention.ms", "no.such.key"])
def test_what_is_no_list_is_not_appended_to(name: str) -> None:
    resource = AlterConfigsResource(
        resource_type=TOPICS, resource_name="t", configs=(entry(name, "9", APPEND),)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    (response,) = decide_incremental_alter_configs(BASE, request, CONFIG).response.responses
    assert response.error_code is ErrorCode.INVALID_CONFIG
    assert response.error_message == (
        f"Cannot append to or from {name}: its type is not LIST. Set it instead."
    )


def test_same_value_is_recorded_for_brokers_only() -> None:
    _, image, _ = alter(BASE, entry("retention.ms", "9"))
    assert alter(image, entry("retention.ms", "9"))[2] == 0
    _, image, _ = alter(BASE, entry("log.retention.ms", "9"), kind=BROKERS, name="1")
    assert alter(image, entry("log.retention.ms", "9"), kind=BROKERS, name="1")[2] == 1


def test_resource_named_twice_is_changed_by_neither() -> None:
    error, _, records = alter(BASE, entry("retention.ms", "9"), times=2)
    assert (error, records) == (ErrorCode.INVALID_REQUEST, 0)


def test_resource_beside_one_that_is_named_twice_is_changed() -> None:
    twice, once = (
        AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=(entry("retention.ms", "9"),)
        )
        for kind, name in ((BROKERS, "1"), (TOPICS, "t"))
    )
    request = IncrementalAlterConfigsRequest(resources=(twice, once, twice))
    decision = decide_incremental_alter_configs(BASE, request, CONFIG)
    errors = [each.error_code for each in decision.response.responses]
    assert errors == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert len(decision.changes) == 1


def test_validate_only_changes_nothing() -> None:
    resource = AlterConfigsResource(
        resource_type=TOPICS, resource_name="t", configs=(entry("retention.ms", "9"),)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)
    assert decide_incremental_alter_configs(BASE, request, CONFIG).changes == ()


# --- legacy ---------------------------------------------------------------------------------------


def replace_all(image: MetadataImage, **values: str | None) -> tuple[ErrorCode, MetadataImage]:
    resource = LegacyResource(
        resource_type=TOPICS,
        resource_name="t",
        configs=tuple(
            LegacyConfig(name=name.replace("_", "."), value=value) for name, value in values.items()
        ),
    )
    request = AlterConfigsRequest(resources=(resource,), validate_only=False)
    decision = decide_alter_configs(image, request)
    after = step(image, *decision.changes) if decision.changes else image
    return decision.response.responses[0].error_code, after


def test_legacy_change_replaces_everything() -> None:
    _, image = replace_all(BASE, retention_ms="9", segment_ms="8")
    _, image = replace_all(image, segment_ms="7")
    assert image.config(TOPICS, "t") == {"segment.ms": "7"}


def test_legacy_change_is_checked() -> None:
    assert replace_all(BASE, retention_ms="soon")[0] is ErrorCode.INVALID_CONFIG
    assert replace_all(BASE, retention_ms=None)[0] is ErrorCode.INVALID_REQUEST


# --- describe -------------------------------------------------------------------------------------


def describe(
    image: MetadataImage,
    kind: int,
    name: str,
    *keys: str,
    static: dict[str, str] | None = None,
    synonyms: bool = True,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    request = DescribeConfigsRequest(
        resources=(resource,), include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = describe_configs(image, request, node_id=1, static=static or {}).results
    return result


def test_topic_is_described_with_its_sources() -> None:
    image = step(
        BASE,
        config("retention.ms", "5"),
        config("log.retention.ms", "6", resource_type=BROKERS, resource=""),
        config("log.retention.ms", "7", resource_type=BROKERS, resource="1"),
    )
    (item,) = describe(
        image, TOPICS, "t", "retention.ms", static={"log.retention.hours": "1"}
    ).configs
    assert (item.value, item.config_source, item.config_type) == ("5", 1, 5)
    assert [(s.name, s.value, s.source) for s in item.synonyms] == [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "7", 2),
        ("log.retention.ms", "6", 3),
        ("log.retention.hours", "1", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert len(describe(image, TOPICS, "t").configs) == len(TOPIC_KEYS)


def test_list_is_shown_without_what_it_names_again() -> None:
    image = step(BASE, config("cleanup.policy", "delete, compact,delete"))
    (item,) = describe(image, TOPICS, "t", "cleanup.policy").configs
    assert (item.value, item.synonyms[0].value) == ("delete,compact", "delete,compact")


def test_value_in_another_unit_is_shown_without_its_synonyms() -> None:
    """As Kafka does: the list begins with the synonym in milliseconds, or is empty."""
    static = {"log.retention.hours": "1"}
    (item,) = describe(BASE, TOPICS, "t", "retention.ms", static=static).configs
    assert (item.value, item.config_source, item.synonyms) == ("3600000", 5, ())


def test_keys_are_explained_only_if_asked_for() -> None:
    (item,) = describe(BASE, TOPICS, "t", "retention.ms").configs
    assert item.documentation is None
    (item,) = describe(BASE, TOPICS, "t", "retention.ms", documentation=True).configs
    assert item.documentation == "long, at least -1; cluster-wide"


@pytest.mark.parametrize(
    ("kind", "key", "value", "wrong", "source", "default"),
    [
        (16, "interval.ms", "1000", "5", 7, "300000"),
        (16, "match", "client_id=x", "colour=red", 7, ""),
        (32, "consumer.session.timeout.ms", "50000", "1", 8, "45000"),
    ],
)
def test_client_metrics_and_groups_have_configs(
    kind: int, key: str, value: str, wrong: str, source: int, default: str
) -> None:
    invalid = ErrorCode.INVALID_REQUEST if kind == 16 else ErrorCode.INVALID_CONFIG
    (item,) = describe(BASE, kind, "name", key).configs
    assert (item.value, item.config_source) == (default, 5)
    assert alter(BASE, entry(key, wrong), kind=kind, name="name")[0] is invalid
    assert alter(BASE, entry("x", "1"), kind=kind, name="name")[0] is invalid
    assert alter(BASE, entry(key, value), kind=kind, name="")[0] is ErrorCode.INVALID_REQUEST
    error, image, _ = alter(BASE, entry(key, value), kind=kind, name="name")
    assert error is ErrorCode.NONE
    (item,) = describe(image, kind, "name", key).configs
    assert (item.value, item.config_source) == (value, source)


def test_resources_with_configs_are_listed() -> None:
    _, image, _ = alter(BASE, entry("interval.ms", "1000"), kind=16, name="cm")
    _, image, _ = alter(image, entry("consumer.session.timeout.ms", "50000"), kind=32, name="g")

    def listed(*kinds: int) -> list[tuple[int, str]]:
        answer = list_config_resources(image, ListConfigResourcesRequest(resource_types=kinds))
        assert answer.error_code is ErrorCode.NONE
        return [(item.resource_type, item.resource_name) for item in answer.config_resources]

    assert listed() == [(2, "t"), (4, "1"), (4, "2"), (16, "cm"), (32, "g")]
    assert listed(16) == [(16, "cm")]
    unknown = list_config_resources(image, ListConfigResourcesRequest(resource_types=(7,)))
    assert unknown.error_code is ErrorCode.UNSUPPORTED_VERSION


# --- as Kafka describes them ----------------------------------------------------------------

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "configs.json").read_text())
KAFKAS: dict[str, dict[str, dict[str, Any]]] = {
    kind: {config["name"]: config for config in configs}
    for kind, configs in GOLDEN["resources"].items()
}
OURS = {
    "topic": TOPIC_KEYS,
    "broker": BROKER_KEYS,
    "client-metrics": CLIENT_METRICS_KEYS,
    "group": GROUP_KEYS,
}
# A listener's protocols: we have but one.
NOT_OURS = {"listener.security.protocol.map"}


@pytest.mark.parametrize("kind", OURS)
def test_keys_are_kafkas(kind: str) -> None:
    for name, key in OURS[kind].items():
        if not key.is_listed:
            continue
        theirs = KAFKAS[kind][name]
        assert key.type == theirs["type"], name
        assert (key.update is Update.READ_ONLY) == theirs.get("read_only", False), name
        assert (key.type is ConfigType.PASSWORD) == theirs.get("sensitive", False), name
        if "default" in theirs and name not in NOT_OURS:
            assert key.default == theirs["default"], name


def test_topics_have_all_of_kafkas_keys_with_its_synonyms() -> None:
    described = {item.name: item for item in describe(BASE, TOPICS, "t").configs}
    assert described.keys() == KAFKAS["topic"].keys()
    for name, theirs in KAFKAS["topic"].items():
        if "synonyms" in theirs:
            ours = [[synonym.name, synonym.value] for synonym in described[name].synonyms]
            assert ours == theirs["synonyms"], name


def test_broker_shows_the_synonyms_that_kafkas_does() -> None:
    for item in describe(BASE, BROKERS, "1").configs:
        theirs = KAFKAS["broker"][item.name]
        if "synonyms" in theirs and item.name not in NOT_OURS:
            ours = [[synonym.name, synonym.value] for synonym in item.synonyms]
            assert ours == theirs["synonyms"], item.name


def test_synonyms_are_told_only_if_asked_for() -> None:
    (item,) = describe(BASE, TOPICS, "t", "retention.ms", synonyms=False).configs
    assert item.synonyms == ()


def test_broker_is_described_by_itself_only() -> None:
    static = {"node.id": "1", "plugin.secret": "x"}
    described = {item.name: item for item in describe(BASE, BROKERS, "1", static=static).configs}
    assert (described["node.id"].value, described["node.id"].read_only) == ("1", True)
    assert (described["plugin.secret"].value, described["plugin.secret"].is_sensitive) == (
        None,
        True,
    )
    assert describe(BASE, BROKERS, "2").error_code is ErrorCode.INVALID_REQUEST


def test_stores_of_one_listener_change_and_those_of_all_do_not() -> None:
    def set_to(name: str, value: str, broker: str = "1") -> tuple[ErrorCode, MetadataImage]:
        error, image, _ = alter(BASE, entry(name, value), kind=BROKERS, name=broker)
        return error, image

    refused = ErrorCode.INVALID_REQUEST
    assert set_to("ssl.keystore.location", "/a")[0] is refused
    assert set_to("ssl.client.auth", "required", "")[0] is refused  # for each by its id
    assert set_to("listener.name.out.max.connections", "-1")[0] is refused
    error, image = set_to("listener.name.out.ssl.keystore.location", "/a")
    assert error is ErrorCode.NONE
    shown = {item.name: item for item in describe(image, BROKERS, "1").configs}
    assert shown["listener.name.out.ssl.keystore.location"].value == "/a"
    error, image = set_to("listener.name.out.ssl.keystore.password", "secret")
    shown = {item.name: item for item in describe(image, BROKERS, "1").configs}
    hidden = shown["listener.name.out.ssl.keystore.password"]
    assert (hidden.value, hidden.is_sensitive) == (None, True)


def test_default_of_brokers_is_what_was_set() -> None:
    assert describe(BASE, BROKERS, "").configs == ()
    image = step(BASE, config("log.retention.ms", "3", resource_type=BROKERS, resource=""))
    (item,) = describe(image, BROKERS, "").configs
    assert (item.name, item.value, item.config_source) == ("log.retention.ms", "3", 3)
    assert [(s.name, s.value, s.source) for s in item.synonyms] == [("log.retention.ms", "3", 3)]


def test_unknown_resources_are_not_described() -> None:
    assert describe(BASE, TOPICS, "x").error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(BASE, TOPICS, "").error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert describe(BASE, 8, "1").error_code is ErrorCode.INVALID_REQUEST
    assert describe(BASE, 16, "").error_code is ErrorCode.INVALID_REQUEST


def test_configs_of_the_file_are_the_controllers_own() -> None:
    static = replace(CONFIG, static_configs={"log.cleanup.policy": "compact"})
    _, image, _ = alter(BASE, entry("cleanup.policy", "delete", APPEND), config=static)
    assert image.config(TOPICS, "t") == {"cleanup.policy": "compact,delete"}
