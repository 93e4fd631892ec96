"""Replicas listen for changes of a partition's leader, and elect one.

on_leader_change(), for one partition after the other:

    1. read the leader's node, and watch it;
    2. if there is a leader that we have not heard of, follow it;
    3. if there is none: read AR and ISR;
    4. campaign, wait, or neither (`candidacy`);
    5. a candidate writes epoch, ISR and leader; the first one wins. The others are notified by
       their watches, and begin anew.

What follows from that beside leading and following is returned (`ElectionOutcome`).

May a replica be a candidate, and when?

    - It must be assigned: in AR.
    - While there are in-sync replicas, only they are candidates. If none of them has won within
      LeaderElectionWaitTime, any assigned replica may be one.
    - Each replica that comes before us in AR, lives and may be a candidate gets a head start, so
      that the preferred replica tends to win, and that not all of them rush at once.

`counts` has what seed 004 holds against the simplest scheme: "notified" and "stood" (herd effect),
"deposed" (split brain: another led while we did); the load is with ZooKeeper.

Source: docs/zookeeper-mode.md; the steps are reconstructed. Of candidacies seed 002 shows the
waiting time and no more.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, assert_never

from broker.zk.by_replicas.held import Held, ReplicaContext, ReplicaSettings
from broker.zk.by_replicas.leader_changes import LeaderChanges
from broker.zk.by_replicas.partition_nodes import FoundIsr, FoundLeader, PartitionNodes
from controller.zk.zk_metadata import children
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition

__all__ = [
    "Candidacy",
    "ElectionOutcome",
    "Elections",
    "Never",
    "Roles",
    "Stand",
    "Wait",
    "candidacy",
]


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


_ROUNDS_MAX = 100  # of an election that others disturb; then it is begun anew, a little later
_RETRY_MS = 50


class Roles(Protocol):
    def lead(self, held: Held, now_ms: int) -> None: ...

    def follow(self, held: Held, now_ms: int) -> None: ...

    def leads(self, of: TopicPartition) -> bool:
        """Does our replica take itself for the leader?"""
        ...


class ElectionOutcome(Enum):
    """What has come of a look at the leader's node."""

    NOTHING = "nothing more follows from it"
    ELECTED = "our replica leads now"
    NOT_ASSIGNED = "the partition is not there, or not assigned to us any more"


class Elections:
    def __init__(self, context: ReplicaContext, *, changes: LeaderChanges, roles: Roles) -> None:
        self._design = context.design
        self._settings = context.settings
        self._node_id = context.node_id
        self._session = context.session
        self._changes = changes
        self._roles = roles
        self._milestones = changes.milestones
        self._nodes = PartitionNodes(context.design)
        self.counts: Counter[str] = Counter()

    def notified(self, of: TopicPartition, now_ms: int) -> None:
        """A watch of the leader's node has fired."""
        self.counts["notified"] += 1
        self._changes.look_soon(of, now_ms)

    # --- procedures ---------------------------------------------------------------------------

    def on_leader_change(self, held: Held) -> Procedure[ElectionOutcome]:
        for _ in range(_ROUNDS_MAX):
            found = yield from self._nodes.leader(held.of)  # 1
            if found is not None:
                return (yield from self._found(held, found))  # 2
            if held.leaderless_since_ms is None:
                held.leaderless_since_ms = self._changes.now_ms
                self._milestones.misses_leader(held)
            outcome = yield from self._elect(held)
            if outcome is not None:
                return outcome
        self._changes.look_later(held.of, _RETRY_MS)
        return ElectionOutcome.NOTHING

    def watch_nodes(self, held: Held) -> Procedure[ElectionOutcome]:
        """Read and watch all nodes of a partition: in `zk-v1` nobody tells a replica that its ISR
        or its assignment has changed."""
        found = yield from self._nodes.isr(held.of, watch=True)
        if self._roles.leads(held.of):
            held.isr, held.isr_version = found.isr, found.version
        replicas, target = yield from self._nodes.watch_all(held.of)
        if self._node_id in (*replicas, *target):
            return ElectionOutcome.NOTHING
        return ElectionOutcome.NOT_ASSIGNED

    def _found(self, held: Held, found: FoundLeader) -> Procedure[ElectionOutcome]:
        held.leaderless_since_ms = None
        is_ours = found.leader == self._node_id
        if is_ours and found.session_id != self._session.id:
            return ElectionOutcome.NOTHING  # of an earlier life of ours: it goes with its session
        if found.zxid == held.leader_zxid:
            return ElectionOutcome.NOTHING
        state = yield from self._nodes.isr(held.of)
        if self._design.has_leader_epochs and state.leader_epoch > found.leader_epoch:
            # Another was elected between the two reads, maybe two sessions. With the version of the
            # ISR that is now there, who was found could write as its leader.
            self._changes.look_later(held.of, _RETRY_MS)
            return ElectionOutcome.NOTHING
        self._milestones.finds_leader(held)
        held.isr, held.isr_version = state.isr, state.version
        held.leader, held.leader_epoch = found.leader, found.leader_epoch
        held.leader_zxid = found.zxid
        if is_ours:
            held.replicas = yield from self._nodes.replicas(held.of)
            if not held.replicas:  # removed, since the leader's node was read
                return ElectionOutcome.NOT_ASSIGNED
            self._roles.lead(held, self._changes.now_ms)
            return ElectionOutcome.ELECTED
        self.counts["deposed"] += self._roles.leads(held.of)
        self._roles.follow(held, self._changes.now_ms)
        return ElectionOutcome.NOTHING

    def _elect(self, held: Held) -> Procedure[ElectionOutcome | None]:
        """None: the leader's node has to be read again at once."""
        of = held.of
        held.replicas = yield from self._nodes.replicas(of)  # 3
        state = yield from self._nodes.isr(of)
        if self._node_id not in held.replicas:
            return ElectionOutcome.NOT_ASSIGNED
        assert held.leaderless_since_ms is not None
        live = yield from self._live(held, state)
        may = candidacy(
            self._settings,
            node_id=self._node_id,
            replicas=held.replicas,
            isr=state.isr,
            live=live,
            waited_ms=self._changes.now_ms - held.leaderless_since_ms,
        )
        match may:  # 4
            case Never():
                return ElectionOutcome.NOTHING
            case Wait(ms=ms):
                self._changes.look_later(of, ms)
                return ElectionOutcome.NOTHING
            case Stand(is_clean=is_clean):
                self.counts["stood"] += 1
                self._milestones.stands(held)
                isr = self._first_isr(held, state, live) if is_clean else (self._node_id,)
                won = yield from self._nodes.elect(held, self._node_id, isr, state)  # 5
                self.counts["won" if won else "lost"] += 1
                if won:
                    self._milestones.wins(held)
                return None
            case _:
                assert_never(may)

    def _live(self, held: Held, state: FoundIsr) -> Procedure[Collection[int]]:
        """Read the live brokers, if they can make a difference."""
        if state.isr and (held.replicas[0] == self._node_id or not self._settings.head_start_ms):
            return ()
        names = yield from children(paths.BROKER_IDS)
        return {int(name) for name in names if name.isdecimal()}

    def _first_isr(self, held: Held, state: FoundIsr, live: Collection[int]) -> tuple[int, ...]:
        """As it was, without those that are assigned no more: the commit thread drops who is gone.
        Of a new partition, whose replicas are all empty: who lives."""
        if state.isr:
            return tuple(each for each in state.isr if each in held.replicas)
        return tuple(each for each in held.replicas if each in live or each == self._node_id)
