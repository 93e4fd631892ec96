"""UpdateFeatures (API key 57), as Kafka's message of version 2 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "FeatureUpdateKey",
    "UpdatableFeatureResult",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
]


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
    results: tuple[UpdatableFeatureResult, ...] = ()  # until version 1
