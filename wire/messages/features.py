"""Versions and features: those that a node supports, and those that a cluster has finalized."""

from wire.errors import ErrorCode
from wire.message import Message


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


class ApiVersionsResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: int = 0
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


class UpdatableFeatureResult(Message):
    feature: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class UpdateFeaturesResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: tuple[UpdatableFeatureResult, ...] = ()  # in versions 0 and 1
