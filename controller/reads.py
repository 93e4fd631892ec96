"""The requests that any controller answers at once, from what it knows to be committed.

One row an API.

Source: the read events of Kafka's QuorumController, which see the last stable offset and ask nobody
whether the controller is active.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.config import ControllerConfig
from controller.decisions import cluster
from controller.decisions.reassignments import list_reassignments
from controller.metadata.describe_configs import describe_configs
from controller.metadata.image import MetadataImage
from controller.metadata.security import AUTHORIZER, describe_acls
from quorum.core.application import MetadataLog
from wire.messages.acls import DescribeAclsRequest
from wire.messages.configs import DescribeConfigsRequest
from wire.messages.features import ApiVersionsRequest
from wire.messages.metadata import DescribeClusterRequest
from wire.messages.partitions import ListPartitionReassignmentsRequest

__all__ = ["READS", "Known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What an answer may rest on."""

    image: MetadataImage  # committed
    config: ControllerConfig
    log: MetadataLog


READS: Mapping[type, Callable[[Known, Any], object]] = {
    ApiVersionsRequest: lambda known, _: cluster.describe_versions(
        known.image, known.config, kraft_version=known.log.kraft_version
    ),
    DescribeAclsRequest: lambda known, body: describe_acls(
        known.image, body, has_authorizer=AUTHORIZER in known.config.static_configs
    ),
    DescribeClusterRequest: lambda known, body: cluster.describe_controllers(
        known.image, body, known.config, leader_id=known.log.leader.leader_id
    ),
    DescribeConfigsRequest: lambda known, body: describe_configs(
        known.image, body, node_id=known.config.node_id, static=known.config.static_configs
    ),
    ListPartitionReassignmentsRequest: lambda known, body: list_reassignments(known.image, body),
}
