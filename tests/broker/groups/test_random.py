"""Random members and coordinators: whoever comes, goes or dies, no partition has two owners in one
generation, and an offset that was committed is never forgotten.
"""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from broker.config import GroupConfig
from broker.groups.offsets_topic import OFFSETS_TOPIC
from tests.broker.brokers import Brokers
from tests.broker.groups.consumer.modern_members import ModernConsumer
from tests.broker.groups.members import PARTITIONS, TOPIC, Consumer, Promises
from tests.examples import dear

REPLICAS = (1, 2, 3)
CONSUMERS_MAX = 4


class Run:
    config = GroupConfig(initial_rebalance_delay_ms=0)

    def __init__(self) -> None:
        self.brokers = Brokers(
            3,
            replica_lag_time_max_ms=400,
            replica_fetch_backoff_ms=50,
            groups=self.config,
        )
        self.brokers.start()
        self.brokers.create_topic(TOPIC, *[REPLICAS] * PARTITIONS)
        self.brokers.create_topic(OFFSETS_TOPIC, REPLICAS, min_insync_replicas="2")
        self.promises = Promises()
        self.consumers: list[Consumer | ModernConsumer] = []
        self.down: set[int] = set()
        self.count = 0

    @property
    def state(self) -> tuple[int, tuple[int, ...]]:
        state = self.brokers.states[(self.brokers.topics[OFFSETS_TOPIC], 0)]
        return state.leader, state.isr

    # --- what may happen; `choice` is any number

    def come(self, choice: int) -> None:
        """A dynamic member, or a static one that may have been here before."""
        taken = {consumer.instance_id for consumer in self.consumers}
        instance_id = (None, "i1", "i2")[choice % 3]
        if len(self.consumers) < CONSUMERS_MAX:
            self.count += 1
            name = f"c{self.count}"
            given = None if instance_id in taken else instance_id
            self.consumers.append(Consumer(self.brokers, self.promises, name, given))

    def go(self, choice: int) -> None:
        if self.consumers:
            self.consumers.pop(choice % len(self.consumers)).leave()

    def crash(self, choice: int) -> None:
        if self.consumers:
            del self.consumers[choice % len(self.consumers)]

    def step(self, choice: int) -> None:
        """Everybody does a few things."""
        for _ in range(1 + choice % 4):
            for consumer in self.consumers:
                consumer.step()
            self.brokers.run(20)

    def wait(self, choice: int) -> None:
        self.brokers.run((20, 600, 7000)[choice % 3])

    def cut(self, choice: int) -> None:
        """Followers may not reach their leader: what it writes is not committed."""
        leader = self.state[0]
        self.brokers.cut |= {(replica, leader) for replica in REPLICAS if replica != leader}
        if choice % 2:
            self.brokers.cut.pop()

    def heal(self, _choice: int) -> None:
        self.brokers.cut.clear()
        self.brokers.deaf.clear()
        self.brokers.settle()

    def deafen(self, _choice: int) -> None:
        """The leader hears nothing of the next election."""
        self.brokers.deaf.add(self.state[0])

    def elect(self, choice: int) -> None:
        alive = [replica for replica in self.state[1] if replica in self.brokers.brokers]
        if alive:
            self.brokers.change(OFFSETS_TOPIC, 0, leader=alive[choice % len(alive)])

    def kill(self, choice: int) -> None:
        leader, members = self.state
        victim = leader if choice % 2 else members[choice % len(members)]
        if len(self.brokers.brokers) < 3 or victim not in self.brokers.brokers:
            return
        left = tuple(replica for replica in members if replica != victim)
        if not left:
            return
        self.brokers.kill(victim)
        for consumer in self.consumers:
            consumer.disconnected(victim)
        self.down.add(victim)
        self.brokers.fence(victim)
        self.brokers.change(OFFSETS_TOPIC, 0, isr=left, leader=left[0] if leader == victim else -2)

    def restart(self, choice: int) -> None:
        self.heal(choice)
        for node_id in sorted(self.down):
            self.brokers.start(node_id)
        self.down.clear()

    # --- the end

    def finish(self) -> None:
        """Without faults, the group finds to itself, and tells what was committed."""
        self.restart(0)
        self.come(0)
        for _ in range(100):
            self.step(1)
            self.brokers.run(200)
        owned = sorted(index for consumer in self.consumers for index in consumer.assignment)
        assert owned == list(range(PARTITIONS))
        generations = {consumer.generation for consumer in self.consumers}
        assert len(generations) == 1, generations
        assert sorted(self.promises.committed) == list(range(PARTITIONS))


ACTIONS: tuple[Callable[[Run, int], None], ...] = (
    Run.step,
    Run.step,
    Run.step,
    Run.come,
    Run.go,
    Run.crash,
    Run.wait,
    Run.cut,
    Run.heal,
    Run.deafen,
    Run.elect,
    Run.kill,
    Run.restart,
)


@dear(4)
@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7)),
        min_size=10,
        max_size=50,
    )
)
def test_no_partition_has_two_owners_and_no_commit_is_forgotten(
    steps: list[tuple[Callable[[Run, int], None], int]],
) -> None:
    run = Run()
    run.come(0)
    run.come(1)
    for act, choice in steps:
        act(run, choice)
    run.finish()
