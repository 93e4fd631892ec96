"""The door of a node, from its settings and from the metadata that it knows.

Only nodes with an authorizer, or with principals of nodes, load this module.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from controller.authorization.authorizer import UserRules
from controller.authorization.door import AclDoor, DoorRules
from controller.authorization.identities import Identities
from controller.metadata.image import MetadataImage
from quorum.core.application import MetadataLog
from quorumlab.config import NodeConfig
from quorumlab.listed_principals import node_principals, super_users
from quorumlab.listeners import names_in
from quorumlab.security.audit import LoggedAudit

if TYPE_CHECKING:
    from broker.broker import Broker
    from controller.controller import Controller

__all__ = ["committed_image", "door_of", "published_image"]

Image = Callable[[], MetadataImage | None]


def door_of(config: NodeConfig, image: Image) -> AclDoor:
    users = None
    if config.text("authorizer.class.name"):
        users = UserRules(
            super_users=super_users(config.text("super.users") or ""),
            allows_everyone=config.flag("allow.everyone.if.no.acl.found"),
        )
    early = config.text("early.start.listeners")
    return AclDoor(
        DoorRules(
            users=users,
            identities=Identities(node_principals(config.text("quorumlab.node.principals") or "")),
            early_listeners=frozenset(
                config.controller_listeners if early is None else names_in(early)
            ),
            audit=LoggedAudit(),
            auto_creates=config.flag("auto.create.topics.enable"),
        ),
        image,
    )


def committed_image(controller: "Controller", log: MetadataLog) -> Image:
    """What a controller knows to be committed, once it has read all that was so at its start."""
    is_whole = False

    def image() -> MetadataImage | None:
        nonlocal is_whole
        if not is_whole:
            high_watermark = log.high_watermark
            is_whole = high_watermark is not None and controller.applied_offset >= high_watermark
        return controller.image if is_whole else None

    return image


def published_image(broker: "Broker") -> Image:
    cluster = broker.cluster
    return lambda: cluster.image if cluster.is_published else None
