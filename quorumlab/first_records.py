"""The first records and voters of a cluster, as the tool that formats a directory leaves them.

The first active controller writes them into an empty log: feature levels, and whatever else the
tool was told (credentials). A directory without bootstrap.checkpoint leaves them to the defaults.

Eligible leader replicas are in use by default, as Apache Kafka has it since 4.1 (KIP-966): without
them the last member of an ISR takes acknowledged records along when its power fails. So is
transaction.version 2, as since 4.0 (KIP-890): an end of a transaction raises the producer's epoch;
and group.version 1, since 4.0 too (KIP-848): coordinators assign partitions to those who ask so.

Source: KIP-778, KIP-853, KIP-900; Kafka's BootstrapMetadata, Feature, DynamicVoters, StorageTool.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from controller.config import SUPPORTED_FEATURES
from controller.metadata.metadata_version import (
    DEPENDENCIES,
    ELR_VERSION,
    GROUP_VERSION,
    GROUP_VERSION_1,
    KRAFT_VERSION,
    LEVEL_NAMES,
    METADATA_VERSION,
    NOT_SERVED,
    TRANSACTION_VERSION,
    TRANSACTION_VERSION_2,
    level_of_release,
)
from quorum.core.storage import StorageError
from quorum.core.types import Endpoint, ReplicaKey
from quorum.node.bootstrap import BOOTSTRAP
from quorum.node.directories import DataDirectory
from quorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Voter, VoterSet
from quorumlab.config import ConfigError, NodeConfig, host_and_port
from wire.control_records import VoterEndpoint
from wire.metadata_records import (
    DEFAULT_METADATA_VERSION,
    FeatureLevelRecord,
    MetadataRecord,
    decode_record,
    record_version,
)
from wire.primitives import ZERO_UUID, parse_uuid
from wire.varint import Malformed

__all__ = [
    "DEFAULT_RECORDS",
    "FirstRecords",
    "first_records",
    "initial_controllers",
    "of_release",
    "standalone",
    "why_not_to_begin",
    "with_levels",
]

_OPTION = "--initial-controllers"
_EPOCH_BUMPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRecords:
    levels: Mapping[str, int]  # of features, metadata.version among them
    others: tuple[MetadataRecord, ...] = ()

    def records(self) -> Iterator[MetadataRecord]:
        """Yields metadata.version first, since it says how to read the others."""
        for name in sorted(self.levels, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.levels[name])
        yield from self.others


DEFAULT_RECORDS = FirstRecords(
    levels=MappingProxyType(
        {
            METADATA_VERSION: DEFAULT_METADATA_VERSION,
            ELR_VERSION: 1,
            GROUP_VERSION: 1,
            TRANSACTION_VERSION: _EPOCH_BUMPS,
        }
    )
)


def with_levels(asked: Mapping[str, int]) -> FirstRecords:
    """The default levels, but for those that are asked for. Raises ValueError for what this release
    cannot follow."""
    levels = dict(DEFAULT_RECORDS.levels)
    if METADATA_VERSION in asked:
        oldest = DEPENDENCIES[ELR_VERSION, 1][METADATA_VERSION]
        levels[ELR_VERSION] = int(asked[METADATA_VERSION] >= oldest)
        levels[GROUP_VERSION] = int(asked[METADATA_VERSION] >= GROUP_VERSION_1)
        begins = asked[METADATA_VERSION] >= TRANSACTION_VERSION_2
        levels[TRANSACTION_VERSION] = _EPOCH_BUMPS if begins else 0
    levels |= asked
    wrong = _not_served(levels) or _problem(levels)
    if wrong:
        raise ValueError(wrong)
    return FirstRecords(levels={name: level for name, level in levels.items() if level})


def of_release(name: str) -> FirstRecords:
    """As a cluster of that release begins: `4.3`, or `4.3-IV0`. Raises ValueError."""
    level = level_of_release(name)
    if level is None:
        oldest, newest = LEVEL_NAMES[min(LEVEL_NAMES)], LEVEL_NAMES[max(LEVEL_NAMES)]
        raise ValueError(f"{name} is no release that is known here: {oldest} to {newest} are")
    return with_levels({METADATA_VERSION: level})


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
    wrong = _problem(levels)
    if wrong:
        raise StorageError(f"{path}: {wrong}")
    others = tuple(each for each in records if not isinstance(each, FeatureLevelRecord))
    return FirstRecords(levels=levels, others=others)


def _not_served(levels: Mapping[str, int]) -> str | None:
    for name in sorted(NOT_SERVED):
        if levels.get(name, 0):
            return f"{name} {levels[name]}: this release serves no {NOT_SERVED[name]}"
    return None


def _problem(levels: Mapping[str, int]) -> str | None:
    if METADATA_VERSION not in levels:
        return f"{METADATA_VERSION} is not named: format the node anew"
    supported = {feature.name: feature for feature in SUPPORTED_FEATURES}
    for name, level in sorted(levels.items()):
        known = supported.get(name)
        if known is None:
            return f"{name} is no feature that this release knows"
        oldest, newest = known.min_supported_version, known.max_supported_version
        if not oldest <= level <= newest:
            return f"{name} {level}: this release supports {oldest} to {newest}"
        for other, needed in DEPENDENCIES.get((name, level), {}).items():
            if levels.get(other, 0) < needed:
                return f"{name} {level} needs {other} {needed} or newer"
    return None


def why_not_to_begin(first: FirstRecords, voters: VoterSet) -> str | None:
    """What keeps the first controller from writing these, or from having `voters` in the log."""
    level = first.levels[METADATA_VERSION]
    try:
        for record in first.others:
            record_version(type(record), level)
    except ValueError as error:
        return str(error)
    return _problem({**first.levels, KRAFT_VERSION: int(bool(voters))})


def standalone(config: NodeConfig, directory_id: UUID) -> VoterSet:
    """This controller alone."""
    (own,) = config.advertised_controllers
    return VoterSet.of([_voter(config, config.node_id, directory_id, own.host, own.port)])


def initial_controllers(text: str, config: NodeConfig) -> VoterSet:
    """`id@host:port:directory-id,…`, on the controllers' listener. Raises ConfigError."""
    found: dict[int, Voter] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        node, _, rest = item.partition("@")
        address, _, directory = rest.rpartition(":")
        if not node.isdigit() or not address:
            raise ConfigError(f"{_OPTION}: {item!r} is not id@host:port:directory-id")
        if int(node) in found:
            raise ConfigError(f"{_OPTION}: node {node} stands there twice")
        try:
            directory_id = parse_uuid(directory)
        except ValueError as error:
            raise ConfigError(f"{_OPTION}: {item!r}: {error}") from error
        if directory_id == ZERO_UUID:
            raise ConfigError(f"{_OPTION}: {item!r}: a directory id must not be zero")
        host, port = host_and_port(address, _OPTION)
        found[int(node)] = _voter(config, int(node), directory_id, host, port)
    if not found:
        raise ConfigError(f"{_OPTION}: names nobody")
    return VoterSet.of(found.values())


def _voter(config: NodeConfig, node_id: int, directory_id: UUID, host: str, port: int) -> Voter:
    listener = VoterEndpoint(name=config.controller_listener, host=host, port=port)
    return Voter(
        ReplicaKey(node_id, directory_id),
        Endpoint(node_id, host, port),
        (listener,),
        SUPPORTED_KRAFT_VERSIONS,
    )
