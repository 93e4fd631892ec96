"""Versions and features: those that a node supports, and those that a cluster has finalized."""

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, ThrottledExplanation, ThrottledOutcome


class ApiVersionsRequest(Message):
    client_software_name: str = ""
    client_software_version: str = ""


class ApiVersion(Message):
    api_key: int
    min_version: int
    max_version: int


class SupportedFeatureKey(Message):
    name: str
    min_version: int
    max_version: int


class FinalizedFeatureKey(Message):
    name: str
    max_version_level: int
    min_version_level: int


class ApiVersionsResponse(ThrottledOutcome):
    api_keys: tuple[ApiVersion, ...] = ()
    supported_features: tuple[SupportedFeatureKey, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()
    zk_migration_ready: bool = False


class FeatureUpdateKey(Message):
    feature: str
    max_version_level: int  # 0 removes the feature
    upgrade_type: int = 1  # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade


class UpdateFeaturesRequest(Message):
    timeout_ms: int = 60_000
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: bool = False


class UpdatableFeatureResult(ExplainedOutcome):
    feature: str


class UpdateFeaturesResponse(ThrottledExplanation):
    results: tuple[UpdatableFeatureResult, ...] = ()  # in versions 0 and 1
