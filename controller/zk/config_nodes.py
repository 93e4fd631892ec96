"""The configs of topics and brokers as nodes: which a request may change, and what a change writes.

Source: seed 001, as Apache Kafka has it: `/config/ENTITY/NAME`, and a note under `/config/changes`.
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.znode_reading import read_configs
from quorum.zookeeper.zk_procedures import Procedure
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.metadata_records import ConfigRecord
from wire.zk import paths
from wire.zk.designs import Design
from wire.zk.session import Create, Operation, SetData
from wire.zk.znodes import ConfigChange, EntityConfig

__all__ = ["config_operations", "configs_for"]

_ENTITIES = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}
_DEFAULT = "<default>"  # the entity that stands for all of its kind


def configs_for(
    design: Design, body: object
) -> Procedure[dict[tuple[int, str], Mapping[str, str]]]:
    """The configurations that the request may change, as they are."""
    found: dict[tuple[int, str], Mapping[str, str]] = {}
    for kind, name in _resources(body):
        entity = yield from read_configs(design, _ENTITIES[kind], [name or _DEFAULT])
        found[(kind, name)] = entity.get(name or _DEFAULT, {})
    return found


def _resources(body: object) -> list[tuple[ResourceType, str]]:
    if not isinstance(body, IncrementalAlterConfigsRequest | AlterConfigsRequest):
        return []
    return [
        (ResourceType(each.resource_type), each.resource_name)
        for each in body.resources
        if each.resource_type in _ENTITIES
    ]


def config_operations(then: MetadataImage, changes: Sequence[Change]) -> Iterator[Operation]:
    """The whole of each entity that changed, and a note for those who watch for changes."""
    touched = dict.fromkeys(
        (change.resource_type, change.resource_name)
        for change in changes
        if isinstance(change, ConfigRecord)
    )
    for kind, name in touched:
        entity = _ENTITIES[ResourceType(kind)]
        path = paths.config(entity, name or _DEFAULT)
        data = EntityConfig(config=then.config(kind, name)).encode()
        yield Create(path=path)  # it may be there
        yield SetData(path=path, data=data)
        note = ConfigChange(entity_path=f"{entity}/{name or _DEFAULT}").encode()
        yield Create(path=paths.config_changes_prefix(), data=note, is_sequential=True)
