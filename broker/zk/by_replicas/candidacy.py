"""May a replica stand for leader, and when?

    - it must be assigned: in AR;
    - while there are in-sync replicas, they alone stand. If none of them has won within
      LeaderElectionWaitTime, any assigned replica may;
    - whoever stands before us in AR, lives and may stand gets a head start, so that the preferred
      replica tends to win, and that not all of them rush at once.

Pure. Reconstructed (see docs/zookeeper-mode.md): seed 002 shows the waiting time and no more.
"""

from collections.abc import Collection
from dataclasses import dataclass

from broker.zk.by_replicas.held import ReplicaSettings

__all__ = ["Candidacy", "Never", "Stand", "Wait", "candidacy"]


@dataclass(frozen=True, slots=True)
class Stand:
    """Try to create the leader's node. `is_clean`: as an in-sync replica."""

    is_clean: bool


@dataclass(frozen=True, slots=True)
class Wait:
    ms: int  # then look again


@dataclass(frozen=True, slots=True)
class Never:
    pass


Candidacy = Stand | Wait | Never


def candidacy(
    settings: ReplicaSettings,
    *,
    node_id: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    live: Collection[int],
    waited_ms: int,
) -> Candidacy:
    """`isr` is empty if nobody has led yet; `waited_ms`: since the leader was missed."""
    if node_id not in replicas:
        return Never()
    if isr and node_id not in isr:
        if not settings.is_unclean_allowed:
            return Never()
        left_ms = settings.election_wait_ms - waited_ms
        return Stand(is_clean=False) if left_ms <= 0 else Wait(left_ms)
    before_us = replicas[: replicas.index(node_id)]
    expected = [each for each in before_us if each in live and (not isr or each in isr)]
    left_ms = settings.head_start_ms * len(expected) - waited_ms
    return Wait(left_ms) if left_ms > 0 else Stand(is_clean=True)
