"""What ApiVersions tells: the ranges of a listener, features, and what else it depends on.

The ranges themselves are in `wire/api_table.py`; which features are finalized at which level, who
answers knows.

Source: KIP-35, KIP-511, KIP-584.
"""

import re
from collections.abc import Mapping

from wire.api_table import API_VERSIONS_KEY, APIS, CONTROL_RPCS, Api, ListenerKind, api_by_key
from wire.errors import ErrorCode
from wire.messages.features import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

__all__ = [
    "SOFTWARE_NAME_SINCE",
    "api_versions_for",
    "api_versions_response",
    "api_versions_unsupported",
    "finalized_features",
    "names_its_software",
]

SOFTWARE_NAME_SINCE = 3  # the version of ApiVersions from which a client names its software
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions_for(listener: ListenerKind) -> tuple[ApiVersion, ...]:
    """The ranges that a listener tells its clients, by API key."""
    return tuple(
        ApiVersion(
            api_key=api.key,
            min_version=served.oldest if api.advertised_oldest is None else api.advertised_oldest,
            max_version=served.newest,
        )
        for api in (*APIS, *CONTROL_RPCS)
        if (served := api.served(listener)) is not None
    )


def api_versions_response(
    listener: ListenerKind,
    *,
    supported: tuple[SupportedFeatureKey, ...] = (),
    finalized: tuple[FinalizedFeatureKey, ...] = (),
    finalized_epoch: int = -1,
    controller: tuple[ApiVersion, ...] | None = None,
) -> ApiVersionsResponse:
    """The answer to ApiVersions. Forwardable APIs are cut to what the `controller` can take.

    Its ranges are None while the controller is not known: then nothing is cut.
    """
    ranges = api_versions_for(listener)
    if controller is not None:
        ranges = _intersect_forwardable(ranges, {api.api_key: api for api in controller})
    return ApiVersionsResponse(
        api_keys=ranges,
        supported_features=supported,
        finalized_features=finalized,
        finalized_features_epoch=finalized_epoch,
    )


def finalized_features(levels: Mapping[str, int]) -> tuple[FinalizedFeatureKey, ...]:
    """As ApiVersions tells them. Level 0 is the same as not having the feature, and is not told."""
    return tuple(
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(levels.items())
        if level > 0
    )


def _intersect_forwardable(
    ranges: tuple[ApiVersion, ...], controller: dict[int, ApiVersion]
) -> tuple[ApiVersion, ...]:
    common = []
    for own in ranges:
        if not _row(own.api_key).forwardable:
            common.append(own)
            continue
        other = controller.get(own.api_key)
        if other is None:
            continue
        oldest = max(own.min_version, other.min_version)
        newest = min(own.max_version, other.max_version)
        if oldest <= newest:
            common.append(ApiVersion(api_key=own.api_key, min_version=oldest, max_version=newest))
    return tuple(common)


def _row(api_key: int) -> Api:
    api = api_by_key(api_key)
    assert api is not None, api_key
    return api


def names_its_software(request: ApiVersionsRequest) -> bool:
    """Do name and version of the client's software look as KIP-511 wants them?"""
    software = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(text) is not None for text in software)


def api_versions_unsupported() -> ApiVersionsResponse:
    """What a client gets that asks in a version we lack: in version 0, so that it can read it."""
    own = _row(API_VERSIONS_KEY).versions
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(
            ApiVersion(api_key=API_VERSIONS_KEY, min_version=own.oldest, max_version=own.newest),
        ),
    )
