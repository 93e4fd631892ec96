"""The first records of a cluster, as the tool that formatted the directory left them.

The first active controller writes them into an empty log: feature levels, and whatever else the
tool was told (credentials). A directory without bootstrap.checkpoint leaves them to the defaults.

Source: KIP-778, KIP-900; Kafka's BootstrapMetadata.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.config import KRAFT_VERSION, SUPPORTED_FEATURES
from controller.metadata.image import METADATA_VERSION
from quorum.storage.bootstrap import BOOTSTRAP
from quorum.storage.contract import StorageError
from quorum.storage.directories import DataDirectory
from wire.metadata_records import (
    DEFAULT_METADATA_VERSION,
    FeatureLevelRecord,
    MetadataRecord,
    decode_record,
)
from wire.varint import Malformed

__all__ = ["DEFAULT_RECORDS", "FirstRecords", "first_records"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRecords:
    levels: Mapping[str, int]  # of features, metadata.version among them
    others: tuple[MetadataRecord, ...] = ()


DEFAULT_RECORDS = FirstRecords(
    levels=MappingProxyType({METADATA_VERSION: DEFAULT_METADATA_VERSION})
)


def first_records(directory: DataDirectory) -> FirstRecords:
    """Raises StorageError for a file that this release cannot follow."""
    values = directory.bootstrap()
    if values is None:
        return DEFAULT_RECORDS
    path = f"{directory.path}/{BOOTSTRAP}"
    try:
        records = [decode_record(value) for value in values]
    except Malformed as error:
        raise StorageError(f"{path} cannot be read: {error}. Format the node anew") from error
    found = [each for each in records if isinstance(each, FeatureLevelRecord)]
    levels = {each.name: each.feature_level for each in found}
    levels.pop(KRAFT_VERSION, None)  # the engine's own, which no metadata record says
    _check(levels, path)
    others = tuple(each for each in records if not isinstance(each, FeatureLevelRecord))
    return FirstRecords(levels=levels, others=others)


def _check(levels: Mapping[str, int], path: str) -> None:
    if METADATA_VERSION not in levels:
        raise StorageError(f"{path} names no {METADATA_VERSION}: format the node anew")
    supported = {feature.name: feature for feature in SUPPORTED_FEATURES}
    for name, level in sorted(levels.items()):
        known = supported.get(name)
        if known is None:
            raise StorageError(f"{path} asks for {name}, which this release does not know")
        oldest, newest = known.min_supported_version, known.max_supported_version
        if not oldest <= level <= newest:
            raise StorageError(
                f"{path} asks for {name} {level}: this release supports {oldest} to {newest}"
            )
