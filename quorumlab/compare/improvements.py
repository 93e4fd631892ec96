"""The improvements of the ZooKeeper designs: the cells that show what each of them is worth.

An improvement is measured where it acts: an experiment of the design as documented, and the same
with that one switch off (`wire.zk.switches`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from quorumlab.compare.results import CellKey
from quorumlab.compare.subjects import Subject
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN
from wire.zk.switches import SWITCHES

__all__ = ["IMPROVEMENTS", "of_improvements"]

IMPROVEMENTS = "improvements"  # as `--experiments` names them all
_ACTS_IN: Mapping[str, Sequence[str]] = {
    "pipelined-writes": ("broker-crash", "controller-failover"),
    "batched-commands": ("broker-crash", "controlled-shutdown"),
    "prioritised-commands": ("crash-in-a-flood",),
    "generation-check": ("broker-bounce",),
    "immediate-session-events": ("controller-failover",),
    "guarded-writes": ("broker-crash",),
}


def of_improvements(partitions: Iterable[int], designs: Collection[str]) -> list[CellKey]:
    """Returns the cells, each once: `designs` with a switch on, then off, by switch."""
    keys = [
        CellKey(subject=subject.name, experiment=experiment, partitions=size, timeouts="equal")
        for size in sorted(set(partitions))
        for name, experiments in _ACTS_IN.items()
        for experiment in experiments
        for subject in _with_and_without(name)
        if subject.design in designs
    ]
    return list(dict.fromkeys(keys))


def _with_and_without(name: str) -> tuple[Subject, Subject]:
    """The first design that has the switch: seed 001's, or else seed 003's."""
    has_it = getattr(ZK_REDESIGN, SWITCHES[name].field)
    design = ZK_REDESIGN if has_it else ZK_KIP497
    return Subject(design=design.name), Subject(design=design.name, without=name)
