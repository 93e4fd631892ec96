"""An image as plain values, for people, JSON and comparison.

What is described depends on the log alone, not on how it was applied: two nodes that have applied
the same offset are described alike, whatever rows their partitions have.
"""

from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import RECOVERING, PartitionState
from wire.message import values_of
from wire.primitives import uuid_text

__all__ = ["describe", "describe_broker", "describe_partition"]


def describe(image: MetadataImage) -> dict[str, object]:
    """Everything that an image holds, ordered by name or id."""
    return {
        "offset": image.at.offset,
        "epoch": image.at.epoch,
        "features": dict(sorted(image.features.items())),
        "next_producer_id": image.next_producer_id,
        "brokers": [describe_broker(broker) for _, broker in sorted(image.brokers.items())],
        "controllers": [
            {
                "id": controller.id,
                "incarnation_id": uuid_text(controller.incarnation_id),
                "listeners": [f"{e.name}://{e.host}:{e.port}" for e in controller.end_points],
            }
            for _, controller in sorted(image.controllers.items())
        ],
        "topics": [
            {
                "name": topic.name,
                "id": uuid_text(topic.id),
                "configs": dict(sorted(image.config(2, topic.name).items())),
                "partitions": [
                    describe_partition(index, state)
                    for index, state in image.partitions_of(topic.id)
                ],
            }
            for _, topic in sorted(image.topics.by_name.items())
        ],
        "configs": [
            {"type": kind, "name": name, "values": dict(sorted(values.items()))}
            for (kind, name), values in sorted(image.configs.items())
        ],
        **_describe_security(image),
    }


def _describe_security(image: MetadataImage) -> dict[str, object]:
    """What is kept but not enforced, without the secrets."""
    return {
        "client_quotas": [
            {
                "entity": {item.entity_type: item.entity_name for item in entity},
                "values": dict(sorted(values.items())),
            }
            for entity, values in sorted(
                image.client_quotas.items(),
                key=lambda item: repr(item[0]),  # names may be None
            )
        ],
        "acls": [
            {**values_of(acl), "id": uuid_text(acl_id)}
            for acl_id, acl in sorted(image.acls.items())
        ],
        "scram_credentials": [
            {"user": user, "mechanism": mechanism, "iterations": credential.iterations}
            for (user, mechanism), credential in sorted(image.scram_credentials.items())
        ],
        "delegation_tokens": [
            {"id": token_id, "owner": token.owner}
            for token_id, token in sorted(image.delegation_tokens.items())
        ],
    }


def describe_broker(broker: BrokerImage) -> dict[str, object]:
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnation_id": uuid_text(broker.incarnation_id),
        "rack": broker.rack,
        "listeners": [f"{e.name}://{e.host}:{e.port}" for e in broker.end_points],
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "log_dirs": [uuid_text(directory) for directory in broker.log_dirs],
    }


def describe_partition(index: int, state: PartitionState) -> dict[str, object]:
    described: dict[str, object] = {
        "partition": index,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "directories": [uuid_text(directory) for directory in state.directories],
        "recovering": state.leader_recovery_state == RECOVERING,
    }
    for name in (
        "adding_replicas",
        "removing_replicas",
        "eligible_leader_replicas",
        "last_known_elr",
    ):
        if getattr(state, name):
            described[name] = list(getattr(state, name))
    return described
