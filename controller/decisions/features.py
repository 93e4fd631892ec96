"""UpdateFeatures: raise, lower and remove finalised features. All of a request, or nothing.

A feature that a node does not support would stop it, so every broker and every controller is asked
first, by what they have registered. metadata.version never goes down across a level that changed a
record's format. kraft.version is finalised by the engine, not by a record.

The checks stand in Kafka's order; error messages are Kafka's where they are known.

Source: KIP-584, KIP-778, KIP-1022 (dependencies); Kafka's FeatureControlManager.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from controller.config import ControllerConfig
from controller.decisions.decision import Decision, refused
from controller.decisions.eligible_leaders import settle_min_isr
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import (
    CONTROLLER_REGISTRATION,
    DEPENDENCIES,
    ELR_VERSION,
    FORMATS_CHANGED,
    KRAFT_VERSION,
    METADATA_VERSION,
)
from wire.errors import ErrorCode
from wire.messages.features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from wire.messages.registration import Feature
from wire.metadata_records import BrokerFeature, FeatureLevelRecord

__all__ = ["Quorum", "UpgradeType", "decide_update_features", "why_not_to_lead"]

_Levels = Mapping[str, int]


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """What the rules have to know of the engine."""

    kraft_version: int
    voter_ids: Collection[int]


def why_not_to_lead(image: MetadataImage, config: ControllerConfig) -> str:
    """What keeps this node from deciding anything on what the log says; empty for nothing.

    It cannot write what it cannot read. Kafka's controller stops; ours leaves the lead to others.
    """
    if image.beyond_us:
        return image.beyond_us
    known = {feature.name: feature for feature in config.features}
    for name, level in sorted(image.features.items()):
        own = known.get(name)
        if own is None:
            return f"{name} {level}: this release does not know the feature"
        if not own.min_supported_version <= level <= own.max_supported_version:
            newest = own.max_supported_version
            return f"{name} {level}: known are {own.min_supported_version} to {newest}"
    return ""


def decide_update_features(
    image: MetadataImage, request: UpdateFeaturesRequest, config: ControllerConfig, quorum: Quorum
) -> Decision[UpdateFeaturesResponse]:
    now = dict(image.features)
    now |= {METADATA_VERSION: image.metadata_version, KRAFT_VERSION: quorum.kraft_version}
    updates = request.feature_updates
    proposed = now | {update.feature: update.max_version_level for update in updates}
    for update in updates:
        wrong = (
            _request_problem(update)
            or _support_problem(image, update, config, quorum)
            or _direction_problem(update, now.get(update.feature, 0))
            or _dependency_problem(update, proposed)
        )
        if wrong is not None:
            error = "since the following feature had an error: " + wrong
            message = f"The update failed for all features {error}"
            return refused(request, Refusal(ErrorCode.INVALID_UPDATE_VERSION, message))
    response = UpdateFeaturesResponse(
        results=tuple(UpdatableFeatureResult(feature=update.feature) for update in updates)
    )
    if request.validate_only:
        return Decision(response=response)
    raised = {name: level for name, level in proposed.items() if level != now.get(name, 0)}
    kraft_version = raised.pop(KRAFT_VERSION, None)
    changes = tuple(_changes(image, raised, config))
    return Decision(response=response, changes=changes, kraft_version=kraft_version)


def _changes(image: MetadataImage, levels: _Levels, config: ControllerConfig) -> Iterator[Change]:
    """metadata.version first: what follows may need it.

    Eligible leader replicas of a feature that is switched off are forgotten partition by partition
    (`controller.metadata.election`): one that has no ISR still needs them.
    """
    for name in sorted(levels, key=lambda name: (name != METADATA_VERSION, name)):
        if name == ELR_VERSION and levels[name] > 0:
            yield from settle_min_isr(image, config)
        yield FeatureLevelRecord(name=name, feature_level=levels[name])


# --- checks ---------------------------------------------------------------------------------


def _invalid(update: FeatureUpdateKey, reason: str) -> str:
    return (
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}"
    )


def _request_problem(update: FeatureUpdateKey) -> str | None:
    if update.upgrade_type not in list(UpgradeType):
        return _invalid(update, "The controller does not support the given upgrade type.")
    if update.max_version_level < 0:
        return _invalid(update, "A feature version cannot be less than 0.")
    return None


def _support_problem(
    image: MetadataImage, update: FeatureUpdateKey, config: ControllerConfig, quorum: Quorum
) -> str | None:
    for node, known in _supported(image, update.feature, config):
        oldest = 0 if known is None else known.min_supported_version
        newest = 0 if known is None else known.max_supported_version
        if not oldest <= update.max_version_level <= newest:
            supports = f"only supports versions {oldest}-{newest}"
            lacks = "does not support this feature."
            return _invalid(update, f"{node} {supports if newest else lacks}")
    if update.feature not in {feature.name for feature in config.features}:
        return _invalid(update, f"Feature {update.feature} not found.")
    if image.metadata_version < CONTROLLER_REGISTRATION:
        return None
    unknown = sorted(set(quorum.voter_ids) - {config.node_id, *image.controllers})
    if unknown:
        missing = ", ".join(map(str, unknown))
        return _invalid(update, f"Controllers that have not registered yet: {missing}.")
    return None


def _supported(
    image: MetadataImage, name: str, config: ControllerConfig
) -> Iterator[tuple[str, Feature | BrokerFeature | None]]:
    """Each node, and what it supports of a feature; None if it does not know it."""
    own = {feature.name: feature for feature in config.features}
    yield f"Local controller {config.node_id}", own.get(name)
    for broker_id, broker in sorted(image.brokers.items()):
        yield f"Broker {broker_id}", broker.features.get(name)
    for controller_id, controller in sorted(image.controllers.items()):
        if controller_id != config.node_id:
            yield f"Controller {controller_id}", controller.features.get(name)


def _direction_problem(update: FeatureUpdateKey, level: int) -> str | None:
    """May the level move this way?"""
    wanted, kind = update.max_version_level, update.upgrade_type
    if wanted > level and kind != UpgradeType.UPGRADE:
        return _invalid(update, "Can't downgrade to a newer version.")
    if wanted >= level:
        return None
    if kind == UpgradeType.UPGRADE:
        return _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade.",
        )
    if update.feature == KRAFT_VERSION:
        return _invalid(update, "Can't downgrade the version of this feature.")
    if update.feature != METADATA_VERSION or FORMATS_CHANGED.isdisjoint(
        range(wanted + 1, level + 1)
    ):
        return None
    reason = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if kind == UpgradeType.SAFE_DOWNGRADE
        else "Unsafe metadata downgrade is not supported in this version."
    )
    return f"Unsupported metadata.version downgrade from {level} to {wanted}. {reason}"


def _dependency_problem(update: FeatureUpdateKey, proposed: _Levels) -> str | None:
    """Features that stay are checked, too: what they need must not go away."""
    for (name, level), needs in DEPENDENCIES.items():
        if proposed.get(name, 0) < level:
            continue
        for needed, least in needs.items():
            if proposed.get(needed, 0) < least:
                reason = f"{name} {level} needs {needed} {least} or later."
                return _invalid(update, reason)
    return None
