"""Which workloads make sense in the designs with ZooKeeper, and why the others do not.

A sentence for whoever asked. Pure.
"""

from wire.zk.designs import Design, Layout

__all__ = ["why_no_workload"]

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
