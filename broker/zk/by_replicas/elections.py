"""Replicas listen for changes of a partition's leader, and elect one.

on_leader_change(), for one partition after the other:

    1. read the leader's node, and watch it;
    2. if there is a leader that we have not heard of, follow it;
    3. if there is none: read AR and ISR;
    4. campaign, wait, or neither (`candidacy`);
    5. a candidate writes epoch, ISR and leader; the first one wins. The others are notified by
       their watches, and begin anew.

May a replica be a candidate, and when?

    - It must be assigned: in AR.
    - While there are in-sync replicas, only they are candidates. If none of them has won within
      LeaderElectionWaitTime, any assigned replica may be one.
    - Each replica that comes before us in AR, lives and may be a candidate gets a head start, so
      that the preferred replica tends to win, and that not all of them rush at once.

This listener has a queue of its own: a change of leader does not wait behind other notifications.

`counts` has what seed 004 holds against the simplest scheme: "notified" and "stood" (herd effect),
"deposed" (split brain: another led while we did); the load is with ZooKeeper.

Source: docs/zookeeper-mode.md; the steps are reconstructed. Of candidacies seed 002 shows the
waiting time and no more.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, assert_never

from broker.zk.by_replicas.election_milestones import ElectionMilestones
from broker.zk.by_replicas.held import Held, ReplicaContext, ReplicaSettings
from broker.zk.by_replicas.partition_nodes import FoundIsr, FoundLeader, PartitionNodes
from controller.zk.zk_metadata import children
from quorum.core.effects import earliest
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition

__all__ = ["Candidacy", "Elections", "Never", "Roles", "Stand", "Wait", "candidacy"]


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

    def missing(self, held: Held, now_ms: int) -> None:
        """The partition is not there, or not assigned to us any more."""
        ...

    def leads(self, of: TopicPartition) -> bool:
        """Does our replica take itself for the leader?"""
        ...


class Elections:
    def __init__(
        self,
        context: ReplicaContext,
        *,
        procedures: Procedures,
        roles: Roles,
        elected: Callable[[TopicPartition], None],
    ) -> None:
        """`elected` hears of each election that we have won."""
        self._design = context.design
        self._settings = context.settings
        self._node_id = context.node_id
        self._session = context.session
        self._held = context.held
        self._procedures = procedures
        self._roles = roles
        self._elected = elected
        self._milestones = ElectionMilestones(context.node_id, context.outbox)
        self._nodes = PartitionNodes(context.design)
        self._due: dict[TopicPartition, None] = {}
        self._waiting: dict[TopicPartition, int] = {}  # until when
        self._now_ms = 0
        self.counts: Counter[str] = Counter()

    @property
    def now_ms(self) -> int:
        return max(self._now_ms, self._procedures.now_ms)

    def look_soon(self, of: TopicPartition, now_ms: int) -> None:
        """The leader's node may have changed."""
        self._now_ms = max(self._now_ms, now_ms)
        self._waiting.pop(of, None)
        self._milestones.watch_fired()
        self._due[of] = None
        self._procedures.submit("leader changes", self._on_leader_changes)

    def look_again(self, of: TopicPartition, now_ms: int) -> None:
        """Another may lead than we thought, or we no longer: read the node of the leader again."""
        held = self._held.get(of)
        if held is not None:
            held.leader_zxid = 0
            self.look_soon(of, now_ms)

    def notified(self, of: TopicPartition, now_ms: int) -> None:
        """A watch of the leader's node has fired."""
        self.counts["notified"] += 1
        self.look_soon(of, now_ms)

    def forget(self, of: TopicPartition) -> None:
        self._due.pop(of, None)
        self._waiting.pop(of, None)

    def tick(self, now_ms: int) -> None:
        for of in [of for of, until_ms in self._waiting.items() if until_ms <= now_ms]:
            self.look_soon(of, now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(*self._waiting.values())

    # --- procedures ---------------------------------------------------------------------------

    def _on_leader_changes(self) -> Procedure[None]:
        while self._due:
            of = next(iter(self._due))
            del self._due[of]
            held = self._held.get(of)
            if held is not None:
                yield from self._on_leader_change(held)
        self._milestones.run_ended()

    def _on_leader_change(self, held: Held) -> Procedure[None]:
        for _ in range(_ROUNDS_MAX):
            found = yield from self._nodes.leader(held.of)  # 1
            if found is not None:
                yield from self._found(held, found)  # 2
                break
            if held.leaderless_since_ms is None:
                held.leaderless_since_ms = self.now_ms
                self._milestones.misses_leader(held)
            if not (yield from self._elect(held)):
                break
        else:
            self._waiting[held.of] = self.now_ms + _RETRY_MS
        if not self._design.has_state_queues and held.of in self._held:
            yield from self._check_assignment(held)

    def _check_assignment(self, held: Held) -> Procedure[None]:
        """In `zk-v1` nobody tells a replica to close: it watches all nodes of its partition."""
        found = yield from self._nodes.isr(held.of, watch=True)
        if self._roles.leads(held.of):
            held.isr, held.isr_version = found.isr, found.version
        replicas, target = yield from self._nodes.watch_all(held.of)
        if self._node_id not in (*replicas, *target):
            self._roles.missing(held, self.now_ms)

    def _found(self, held: Held, found: FoundLeader) -> Procedure[None]:
        held.leaderless_since_ms = None
        is_ours = found.leader == self._node_id
        if is_ours and found.session_id != self._session.id:
            return  # of an earlier life of ours: it goes with its session
        if found.zxid == held.leader_zxid:
            return
        state = yield from self._nodes.isr(held.of)
        if self._design.has_leader_epochs and state.leader_epoch > found.leader_epoch:
            # Another was elected between the two reads, maybe two sessions. With the version of the
            # ISR that is now there, who was found could write as its leader.
            self._waiting[held.of] = self.now_ms + _RETRY_MS
            return
        self._milestones.finds_leader(held)
        held.isr, held.isr_version = state.isr, state.version
        held.leader, held.leader_epoch = found.leader, found.leader_epoch
        held.leader_zxid = found.zxid
        if is_ours:
            held.replicas = yield from self._nodes.replicas(held.of)
            if not held.replicas:  # removed, since the leader's node was read
                self._roles.missing(held, self.now_ms)
                return
            self._roles.lead(held, self.now_ms)
            self._elected(held.of)
            return
        self.counts["deposed"] += self._roles.leads(held.of)
        self._roles.follow(held, self.now_ms)

    def _elect(self, held: Held) -> Procedure[bool]:
        """Should the leader's node be read again at once?"""
        of = held.of
        held.replicas = yield from self._nodes.replicas(of)  # 3
        state = yield from self._nodes.isr(of)
        if self._node_id not in held.replicas:
            self._roles.missing(held, self.now_ms)
            return False
        assert held.leaderless_since_ms is not None
        live = yield from self._live(held, state)
        may = candidacy(
            self._settings,
            node_id=self._node_id,
            replicas=held.replicas,
            isr=state.isr,
            live=live,
            waited_ms=self.now_ms - held.leaderless_since_ms,
        )
        match may:  # 4
            case Never():
                return False
            case Wait(ms=ms):
                self._waiting[of] = self.now_ms + ms
                return False
            case Stand(is_clean=is_clean):
                self.counts["stood"] += 1
                self._milestones.stands(held)
                isr = self._first_isr(held, state, live) if is_clean else (self._node_id,)
                won = yield from self._nodes.elect(held, self._node_id, isr, state)  # 5
                self.counts["won" if won else "lost"] += 1
                if won:
                    self._milestones.wins(held)
                return True
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
