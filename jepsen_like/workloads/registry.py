"""The workloads by name, and why some make no sense in the designs with ZooKeeper. Pure."""

from collections.abc import Callable, Mapping
from functools import partial

from jepsen_like.histories.history import Value
from jepsen_like.workloads.log_workloads import Admin, Kafka, Log
from jepsen_like.workloads.metadata_workloads import (
    cas_register,
    partition_epoch,
    register,
    topic_set,
)
from jepsen_like.workloads.transaction_workloads import Transactions, bank
from jepsen_like.workloads.workload import Workload, WorkloadOptions
from wire.zk.designs import Design, Layout

__all__ = ["PROMISES", "WORKLOADS", "why_no_workload"]

WORKLOADS: Mapping[str, Callable[[WorkloadOptions], Workload]] = {
    "admin": Admin,
    "bank": bank,
    "cas-register": cas_register,
    "kafka": Kafka,
    "log": Log,
    # Judged by what nodes tell of their partitions; the records only give them something to tell.
    "observe": partial(Log, name="observe"),
    "partition-epoch": partition_epoch,
    "register": register,
    "set": topic_set,
    "transactions": Transactions,
}
# Options of a history's header that its checker goes by.
PROMISES: Mapping[str, Mapping[str, Value]] = {
    "bank": {"total-amount": 0, "negative-balances?": True},
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
