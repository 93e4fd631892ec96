"""ApiVersions (API key 18), as Kafka's message of version 4 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ApiVersion",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "FinalizedFeatureKey",
    "SupportedFeatureKey",
]


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
