"""UpdateFeatures: who must support a level, which way it may move, and what is recorded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.config import ControllerConfig
from controller.decisions.features import (
    Quorum,
    UpgradeType,
    decide_update_features,
    why_not_to_lead,
)
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import (
    ELR_VERSION,
    FORMATS_CHANGED,
    KRAFT_VERSION,
    LEVEL_NAMES,
    METADATA_VERSION,
    NEWEST,
)
from tests.controller.clusters import CLUSTER_ID, CONFIG, cluster, config, registered, step
from tests.controller.fake_log import Quorum as Controllers
from tests.controller.test_controller import CONTROLLERS, quorum
from wire import metadata_records as records
from wire.errors import ErrorCode
from wire.messages.features import FeatureUpdateKey, UpdateFeaturesRequest
from wire.messages.registration import Feature

UPGRADE, SAFE, UNSAFE = UpgradeType
STATIC = Quorum(kraft_version=0, voter_ids=(CONFIG.node_id,))
GOLDEN = Path(__file__).parent.parent / "golden"
# As the Kafka that was asked has them.
KAFKAS = ControllerConfig(
    node_id=1,
    cluster_id=CLUSTER_ID,
    features=tuple(
        Feature(name=name, min_supported_version=oldest, max_supported_version=newest)
        for name, oldest, newest in (
            (METADATA_VERSION, 7, 30),
            (KRAFT_VERSION, 0, 1),
            ("transaction.version", 0, 2),
            ("group.version", 0, 1),
        )
    ),
)


def supporting(broker_id: int, **ranges: tuple[int, int]) -> records.RegisterBrokerRecord:
    """A broker that knows these features; `metadata_version` stands for metadata.version."""
    known = {"metadata_version": (7, 25)} | ranges
    return registered(
        broker_id,
        features=tuple(
            records.BrokerFeature(
                name=name.replace("_", "."), min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in known.items()
        ),
    )


def controller(node_id: int, newest: int = 25) -> records.RegisterControllerRecord:
    feature = records.ControllerFeature(
        name=METADATA_VERSION, min_supported_version=7, max_supported_version=newest
    )
    return records.RegisterControllerRecord(
        controller_id=node_id,
        incarnation_id=registered(1).incarnation_id,
        zk_migration_ready=False,
        end_points=(),
        features=(feature,),
    )


def request(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=wanted, upgrade_type=kind)
            for name, wanted, kind in updates
        ),
        validate_only=validate_only,
    )


def decide(
    image: MetadataImage, *updates: tuple[str, int, int], quorum: Quorum = STATIC, **others: Any
) -> Any:
    return decide_update_features(image, request(*updates, **others), CONFIG, quorum)


def levels(decision: Any) -> dict[str, int]:
    return {
        change.name: change.feature_level
        for change in decision.changes
        if isinstance(change, records.FeatureLevelRecord)
    }


def test_metadata_version_is_raised() -> None:
    decision = decide(cluster(supporting(1), version=20), (METADATA_VERSION, 25, UPGRADE))
    assert decision.response.error_code is ErrorCode.NONE
    assert levels(decision) == {METADATA_VERSION: 25}
    assert decision.is_atomic
    assert [result.feature for result in decision.response.results] == [METADATA_VERSION]


def test_nothing_is_recorded_when_only_asked_whether() -> None:
    image = cluster(supporting(1), version=20)
    decision = decide(image, (METADATA_VERSION, 25, UPGRADE), validate_only=True)
    assert decision.response.error_code is ErrorCode.NONE
    assert decision.changes == ()


def test_level_that_holds_already_is_no_change() -> None:
    decision = decide(cluster(supporting(1)), (METADATA_VERSION, 25, UPGRADE))
    assert decision.response.error_code is ErrorCode.NONE
    assert decision.changes == ()


def test_feature_that_is_off_may_be_switched_off() -> None:
    image = cluster(supporting(1, eligible_leader_replicas_version=(0, 1)))
    decision = decide(image, (ELR_VERSION, 0, UPGRADE))
    assert decision.response.error_code is ErrorCode.NONE
    assert decision.changes == ()


@pytest.mark.parametrize(
    ("image", "update", "reason"),
    [
        (cluster(supporting(1)), (METADATA_VERSION, 25, 9), "does not support the given upgrade"),
        (cluster(supporting(1)), (METADATA_VERSION, -1, UPGRADE), "cannot be less than 0"),
        (cluster(supporting(1)), ("none.such", 1, UPGRADE), "does not support this feature"),
        (cluster(supporting(1)), ("none.such", 0, UPGRADE), "Feature none.such not found"),
        (cluster(supporting(1)), (METADATA_VERSION, 34, UPGRADE), "only supports versions 7-33"),
        (cluster(supporting(1)), (METADATA_VERSION, 6, SAFE), "only supports versions 7-33"),
        (
            cluster(supporting(1), supporting(2, metadata_version=(7, 22)), version=20),
            (METADATA_VERSION, 25, UPGRADE),
            "Broker 2 only supports versions 7-22",
        ),
        (
            cluster(supporting(1), version=20),
            (ELR_VERSION, 1, UPGRADE),
            "Broker 1 does not support this feature",
        ),
        (
            step(cluster(supporting(1), version=20), controller(3001, newest=24)),
            (METADATA_VERSION, 25, UPGRADE),
            "Controller 3001 only supports versions 7-24",
        ),
        (cluster(supporting(1)), (METADATA_VERSION, 24, UPGRADE), "Can't downgrade the version"),
        (
            cluster(supporting(1), version=20),
            (METADATA_VERSION, 25, SAFE),
            "Can't downgrade to a newer version",
        ),
        (cluster(supporting(1)), (METADATA_VERSION, 22, SAFE), "might delete metadata"),
        (cluster(supporting(1)), (METADATA_VERSION, 22, UNSAFE), "Unsafe metadata downgrade"),
        (
            cluster(
                supporting(1, eligible_leader_replicas_version=(0, 1)),
                version=22,
            ),
            (ELR_VERSION, 1, UPGRADE),
            f"{ELR_VERSION} 1 needs {METADATA_VERSION} 23",
        ),
    ],
)
def test_update_is_refused(image: MetadataImage, update: tuple[str, int, int], reason: str) -> None:
    decision = decide(image, update)
    assert decision.response.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert reason in decision.response.error_message
    assert decision.changes == ()
    assert decision.kraft_version is None


def test_one_wrong_update_refuses_them_all() -> None:
    image = cluster(supporting(1), version=20)
    decision = decide(image, (METADATA_VERSION, 25, UPGRADE), ("none.such", 1, UPGRADE))
    assert decision.response.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert decision.changes == ()


def test_dependencies_are_met_by_what_is_proposed() -> None:
    image = cluster(supporting(1, eligible_leader_replicas_version=(0, 1)), version=20)
    decision = decide(image, (ELR_VERSION, 1, UPGRADE), (METADATA_VERSION, 25, UPGRADE))
    assert levels(decision) == {METADATA_VERSION: 25, ELR_VERSION: 1}
    assert isinstance(decision.changes[0], records.FeatureLevelRecord)
    assert decision.changes[0].name == METADATA_VERSION


def test_downgrade_within_a_format_is_safe() -> None:
    decision = decide(cluster(supporting(1)), (METADATA_VERSION, 23, SAFE))
    assert levels(decision) == {METADATA_VERSION: 23}


def test_what_another_feature_needs_does_not_go_away() -> None:
    image = cluster(supporting(1, metadata_version=(7, 25)), version=21)
    dynamic = replace(STATIC, kraft_version=1)
    decision = decide(image, (METADATA_VERSION, 20, SAFE), quorum=dynamic)
    assert f"{KRAFT_VERSION} 1 needs {METADATA_VERSION} 21" in decision.response.error_message


def test_controller_that_has_not_registered_holds_updates_up() -> None:
    image = cluster(supporting(1), version=20)
    unknown = replace(STATIC, voter_ids=(CONFIG.node_id, 3001))
    decision = decide(image, (METADATA_VERSION, 25, UPGRADE), quorum=unknown)
    assert "have not registered yet: 3001" in decision.response.error_message
    known = step(image, controller(3001))
    assert levels(decide(known, (METADATA_VERSION, 25, UPGRADE), quorum=unknown))


def test_before_controllers_register_they_are_not_asked() -> None:
    image = cluster(supporting(1), version=14)
    unknown = replace(STATIC, voter_ids=(CONFIG.node_id, 3001))
    assert levels(decide(image, (METADATA_VERSION, 25, UPGRADE), quorum=unknown))


# --- features with consequences ----------------------------------------------------------------


def elr_cluster(*others: records.ConfigRecord) -> MetadataImage:
    image = cluster(supporting(1, eligible_leader_replicas_version=(0, 1)))
    return step(image, *others) if others else image


def test_enabling_eligible_leader_replicas_settles_min_insync_replicas() -> None:
    own = config("min.insync.replicas", "2", resource_type=4, resource="1")
    decision = decide(elr_cluster(own), (ELR_VERSION, 1, UPGRADE))
    settled, removed, enabled = decision.changes
    assert (settled.resource_name, settled.name, settled.value) == ("", "min.insync.replicas", "1")
    assert (removed.resource_name, removed.name, removed.value) == ("1", own.name, None)
    assert (enabled.name, enabled.feature_level) == (ELR_VERSION, 1)


def test_disabling_them_leaves_those_that_there_are_to_their_partitions() -> None:
    image = step(elr_cluster(), records.FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    (disabled,) = decide(image, (ELR_VERSION, 0, SAFE)).changes
    assert (disabled.name, disabled.feature_level) == (ELR_VERSION, 0)


def test_kraft_version_is_left_to_the_engine() -> None:
    image = cluster(supporting(1, kraft_version=(0, 1)))
    decision = decide(image, (KRAFT_VERSION, 1, UPGRADE))
    assert decision.kraft_version == 1
    assert decision.changes == ()
    dynamic = replace(STATIC, kraft_version=1)
    lowered = decide(image, (KRAFT_VERSION, 0, SAFE), quorum=dynamic)
    assert "Can't downgrade the version of this feature" in lowered.response.error_message


def active_controllers() -> Controllers:
    made = quorum(incarnation_id=registered(1).incarnation_id)
    for _ in range(3):
        made.pass_time(1000)
        for send in made.sent():
            made.answer(send.body)
        made.effects.clear()
    assert sorted(made.active.image.controllers) == list(CONTROLLERS)
    return made


def test_answer_waits_until_the_engine_has_committed_a_kraft_version() -> None:
    made = active_controllers()
    number = made.ask(request((KRAFT_VERSION, 1, UPGRADE)))
    assert number not in made.replies
    made.commit()
    answer: Any = made.replies[number]
    assert answer.error_code is ErrorCode.NONE, answer.error_message


def test_engine_that_refuses_a_kraft_version_refuses_the_whole_request() -> None:
    made = active_controllers()
    made.cannot_raise = "voters [3001] have not said that they know it"
    answer: Any = made.answer(request((KRAFT_VERSION, 1, UPGRADE)))
    assert answer.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert "3001" in answer.error_message


# --- a real Kafka ----------------------------------------------------------------------------

CASES = [
    case
    for case in json.loads((GOLDEN / "admin_errors.json").read_text())["cases"]
    if case["api"] == "UpdateFeatures" and case["via"] == "controller"
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["request"]))
def test_error_is_kafkas(case: dict[str, Any]) -> None:
    asked = case["request"]
    image = cluster(supporting(1, metadata_version=(7, 30)), version=30)
    update = (asked["feature"], asked["level"], asked["upgrade_type"])
    made = decide_update_features(
        image, request(update), KAFKAS, Quorum(kraft_version=0, voter_ids=(1,))
    )
    told = case["results"][0]
    assert made.response.error_code == told["error_code"]
    assert made.response.error_message == told["error_message"]


def test_levels_that_changed_a_format_are_those_of_the_records() -> None:
    """A record version that begins at a level is a change of format."""
    versions = {since for entry in records._RECORD_TYPES for since in entry.written}
    formats = FORMATS_CHANGED
    without_a_format = {4}  # FeatureLevelRecord itself, which readers of older levels know
    assert versions - without_a_format <= formats


# --- records and levels ------------------------------------------------------------------------


@pytest.mark.parametrize("metadata_version", range(1, 31))
def test_no_record_is_encoded_above_the_level(metadata_version: int) -> None:
    for entry in records._RECORD_TYPES:
        since = [at for at, version in entry.written.items() if version is not None]
        known = min(since) <= metadata_version
        removed = [at for at, version in entry.written.items() if version is None]
        if not known or any(at <= metadata_version for at in removed):
            with pytest.raises(ValueError, match="is not written at"):
                records.record_version(entry.type, metadata_version)
            continue
        written = records.record_version(entry.type, metadata_version)
        newest = max(
            version
            for at, version in entry.written.items()
            if version is not None and at <= metadata_version
        )
        assert written == newest


def test_levels_are_called_as_kafka_calls_them() -> None:
    mapping = json.loads((GOLDEN / "features.json").read_text())["mapping"]
    assert {found[METADATA_VERSION]: name for name, found in mapping.items()} == LEVEL_NAMES
    assert NEWEST == records.DEFAULT_METADATA_VERSION


def test_kafkas_defaults_of_every_level_are_supported() -> None:
    mapping = json.loads((GOLDEN / "features.json").read_text())["mapping"]
    known = {each.name: each for each in ControllerConfig(node_id=1, cluster_id="c").features}
    for found in mapping.values():
        for name, level in found.items():
            assert known[name].min_supported_version <= level <= known[name].max_supported_version


@pytest.mark.parametrize(
    ("name", "level", "problem"),
    [
        ("share.version", 2, ""),
        ("share.version", 3, "share.version 3: known are 0 to 2"),
        ("of.others", 1, "of.others 1: this release does not know the feature"),
        (METADATA_VERSION, NEWEST + 1, f"metadata.version {NEWEST + 1}: known are up to {NEWEST}"),
    ],
)
def test_nobody_leads_with_a_feature_that_he_does_not_know(
    name: str, level: int, problem: str
) -> None:
    image = step(cluster(supporting(1)), records.FeatureLevelRecord(name=name, feature_level=level))
    assert why_not_to_lead(image, CONFIG) == problem
