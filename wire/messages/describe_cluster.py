"""DescribeCluster (API key 60), as Kafka's message of version 2 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "DescribeClusterBroker",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
]


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # 1 brokers, 2 controllers (KIP-919)
    include_fenced_brokers: bool = False


class DescribeClusterBroker(Message):
    broker_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: int = -2147483648
