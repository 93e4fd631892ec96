"""The workloads by name, and why some make no sense in the designs with ZooKeeper. Pure."""

from collections.abc import Callable, Mapping
from functools import partial

from jepsen_like.workloads.admin import Admin
from jepsen_like.workloads.cas_register import CasRegister
from jepsen_like.workloads.kafka import Kafka
from jepsen_like.workloads.log import Log
from jepsen_like.workloads.partition_epoch import PartitionEpoch
from jepsen_like.workloads.register import Register
from jepsen_like.workloads.topic_set import TopicSet
from jepsen_like.workloads.workload import Workload
from jepsen_like.workloads.workload_options import WorkloadOptions
from wire.zk.designs import Design, Layout

__all__ = ["WORKLOADS", "why_no_workload"]

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


_OF_THE_QUORUM = {
    "register": "a majority of controllers confirms what it reads, and here there is one",
    "cas-register": "its registers lie in the log of a metadata quorum, which this design has not",
    "partition-epoch": "its clients speak for leaders by AlterPartition, which nobody asks here",
}


def why_no_workload(design: Design, workload: str) -> str:
    """ "" if the design has what the workload needs."""
    if workload in _OF_THE_QUORUM:
        return _OF_THE_QUORUM[workload]
    if workload == "admin" and design.layout is not Layout.KAFKA:
        return "its document has no way to ask for elections, or to redirect a reassignment"
    if workload == "observe" and not design.has_leader_epochs:
        return "it has no epochs by which what nodes tell could be compared"
    return ""
