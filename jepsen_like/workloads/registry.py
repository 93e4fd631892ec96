"""The workloads by name."""

from collections.abc import Callable, Mapping
from functools import partial

from jepsen_like.workload import Workload
from jepsen_like.workloads.admin import Admin
from jepsen_like.workloads.cas_register import CasRegister
from jepsen_like.workloads.kafka import Kafka
from jepsen_like.workloads.log import Log
from jepsen_like.workloads.options import WorkloadOptions
from jepsen_like.workloads.partition_epoch import PartitionEpoch
from jepsen_like.workloads.register import Register
from jepsen_like.workloads.topic_set import TopicSet

__all__ = ["WORKLOADS"]

WORKLOADS: Mapping[str, Callable[[WorkloadOptions], Workload]] = {
    "admin": Admin,
    "cas-register": CasRegister,
    "kafka": Kafka,
    "log": Log,
    # Judged by what nodes tell of their partitions; the records only give them something to tell.
    "observe": partial(Log, name="observe"),
    "partition-epoch": PartitionEpoch,
    "register": Register,
    "set": TopicSet,
}
