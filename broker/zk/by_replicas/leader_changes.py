"""The replicas whose leader's node may have changed and has to be read, now or later.

They have a queue of their own, so that a change of leader does not wait behind the other
notifications of ZooKeeper. Changes that arrive while the queue is worked off join the same run.
"""

from broker.zk.by_replicas.election_milestones import ElectionMilestones
from broker.zk.by_replicas.held import Held, ReplicaContext
from quorum.core.effects import earliest
from quorum.zookeeper.zk_procedures import Procedures, Start
from wire.zk.control_rpc import TopicPartition

__all__ = ["LeaderChanges"]


class LeaderChanges:
    def __init__(self, context: ReplicaContext, *, procedures: Procedures, run: Start) -> None:
        """`run` takes all that is due, one after another, with `next`; then it has `ended`."""
        self._held = context.held
        self._procedures = procedures
        self._run = run
        self._due: dict[TopicPartition, None] = {}
        self._waiting: dict[TopicPartition, int] = {}  # until when
        self._now_ms = 0
        self.milestones = ElectionMilestones(context.node_id, context.outbox)

    @property
    def now_ms(self) -> int:
        return max(self._now_ms, self._procedures.now_ms)

    def look_soon(self, of: TopicPartition, now_ms: int) -> None:
        """The leader's node may have changed."""
        self._now_ms = max(self._now_ms, now_ms)
        self._waiting.pop(of, None)
        self.milestones.watch_fired()
        self._due[of] = None
        self._procedures.submit("leader changes", self._run)

    def look_again(self, of: TopicPartition, now_ms: int) -> None:
        """Another may lead than we thought, or we no longer: read the node of the leader again."""
        held = self._held.get(of)
        if held is not None:
            held.leader_zxid = 0
            self.look_soon(of, now_ms)

    def look_later(self, of: TopicPartition, delay_ms: int) -> None:
        """Read the leader's node when `delay_ms` have passed."""
        self._waiting[of] = self.now_ms + delay_ms

    def forget(self, of: TopicPartition) -> None:
        self._due.pop(of, None)
        self._waiting.pop(of, None)

    def next(self) -> Held | None:
        """The next replica to look at; None if nothing more is due."""
        while self._due:
            of = next(iter(self._due))
            del self._due[of]
            if of in self._held:
                return self._held[of]
        return None

    def ended(self) -> None:
        """All that was due has been looked at."""
        self.milestones.run_ended()

    def tick(self, now_ms: int) -> None:
        for of in [of for of, until_ms in self._waiting.items() if until_ms <= now_ms]:
            self.look_soon(of, now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(*self._waiting.values())
