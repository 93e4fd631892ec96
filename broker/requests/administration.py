"""Any broker describes configs, ACLs, quotas and SCRAM credentials.

All of it comes from the published image, so it may be a little older than what the controller
knows. Changes are forwarded: see `broker.requests.forwarding`.
"""

from broker.cluster import Cluster
from controller.metadata.client_quotas import describe_client_quotas
from controller.metadata.describe_configs import describe_configs, list_config_resources
from controller.metadata.security import AUTHORIZER, describe_acls, describe_scram_credentials
from wire.messages.acls import DescribeAclsRequest
from wire.messages.client_quotas import DescribeClientQuotasRequest
from wire.messages.configs import DescribeConfigsRequest, ListConfigResourcesRequest
from wire.messages.scram_users import DescribeUserScramCredentialsRequest

__all__ = ["DESCRIBED", "describe"]

DESCRIBED = (
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
    ListConfigResourcesRequest,
)


def describe(cluster: Cluster, body: object) -> object:
    """The answer to one of `DESCRIBED`."""
    image = cluster.image
    match body:
        case DescribeAclsRequest():
            return describe_acls(image, body, has_authorizer=AUTHORIZER in cluster.static)
        case DescribeClientQuotasRequest():
            return describe_client_quotas(image, body)
        case DescribeConfigsRequest():
            node_id = cluster.config.node_id
            return describe_configs(image, body, node_id=node_id, static=cluster.static)
        case DescribeUserScramCredentialsRequest():
            return describe_scram_credentials(image, body)
        case ListConfigResourcesRequest():
            return list_config_resources(image, body)
        case other:
            raise AssertionError(f"not a description: {other}")
