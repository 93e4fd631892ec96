"""UpdateFeatures (API key 57), as Kafka's message of version 2 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "FeatureUpdateKey",
    "UpdatableFeatureResult",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdateKey:
    feature: str
    max_version_level: int  # 0 removes the feature
    upgrade_type: int = 1  # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesRequest:
    timeout_ms: int = 60_000
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatableFeatureResult:
    feature: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: tuple[UpdatableFeatureResult, ...] = ()  # until version 1
