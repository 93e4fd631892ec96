"""Administrators, crashes and lost sessions in any order; when all is healed, all has been done.

No node has stopped by itself, no move and no deletion is left, every replica that is assigned is in
sync, and none that is not is on a disk. Only where writes are guarded, controllers are deposed that
live on: elsewhere what they still write is not seen by the next one.
"""

from collections.abc import Callable
from random import Random

import pytest

from controller.zk.zk_metadata import state_path
from tests.sim.zookeeper import Administrator, begin, of
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, Design
from wire.zk.session import Create, Delete, SetData
from wire.zk.znodes import PartitionState, Reassignments, TopicAssignment

BROKERS = (1, 2, 3, 4)
TOPICS = "ab"
WAITS_MS = (1, 3, 10, 30, 100, 300, 1000, 2500)
REPLAY = "pytest tests/sim/test_zk_interleavings.py -k '{} and {}'"
# 27 and 38: a state that was written while another was read was taken for read.
SEEDS = (27, 38, 0, 1)


class Interleaving:
    def __init__(self, design: Design, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = begin(design, seed=seed, brokers=BROKERS, turns_us=(0, 0, 100, 1000))
        self.admin = Administrator(self.cluster)
        self.cut: set[int] = set()
        self.actions: tuple[Callable[[], None], ...] = (
            *(self.create, self.create, self.delete, *[self.reassign] * 3),
            *(self.crash, self.stop, self.restart, self.restart),
            *(self.cut_session, self.heal_session, self.hang_up, self.expire),
            *[self.depose] * design.guards_writes,
        )

    # --- administrators -----------------------------------------------------------------------

    def replicas(self) -> tuple[int, ...]:
        return tuple(self.random.sample(BROKERS, self.random.randint(1, 3)))

    def create(self) -> None:
        assigned = {number: self.replicas() for number in range(self.random.randint(1, 3))}
        path = paths.topic(self.random.choice(TOPICS))
        self.admin.begin(Create(path=path, data=TopicAssignment(partitions=assigned).encode()))

    def delete(self) -> None:
        self.admin.begin(Create(path=f"{paths.DELETE_TOPICS}/{self.random.choice(TOPICS)}"))

    def reassign(self) -> None:
        """Beside what is asked for already, or instead of it."""
        before = self.cluster.ensemble.data(paths.REASSIGN_PARTITIONS)
        keeps = before is not None and self.random.random() < 0.7
        wanted = dict(Reassignments.decode(before).replicas) if before and keeps else {}
        topic = self.random.choice(TOPICS)
        wanted |= {(topic, n): self.replicas() for n in range(self.random.randint(1, 3))}
        data = Reassignments(replicas=wanted).encode()
        self.admin.begin(Create(path=paths.REASSIGN_PARTITIONS, data=data))
        if before is not None:
            self.admin.begin(SetData(path=paths.REASSIGN_PARTITIONS, data=data))

    def depose(self) -> None:
        if self.random.random() < 0.5:
            self.admin.begin(SetData(path=paths.CONTROLLER, data=b"77"))
        else:
            self.admin.begin(Delete(path=paths.CONTROLLER))

    # --- faults -------------------------------------------------------------------------------

    def up(self) -> list[int]:
        return [each for each in BROKERS if self.cluster.hosts[each].is_up]

    def crash(self) -> None:
        if len(up := self.up()) > 1:
            self.cluster.crash(self.random.choice(up))

    def stop(self) -> None:
        if len(up := self.up()) > 1:
            self.cluster.shut_down(self.random.choice(up))

    def restart(self) -> None:
        if down := sorted({*BROKERS} - {*self.up()}):
            self.cluster.restart(self.random.choice(down))

    def cut_session(self) -> None:
        if able := sorted({*self.up()} - self.cut):
            self.cut.add(node := self.random.choice(able))
            self.cluster.cut_session(node)

    def heal_session(self) -> None:
        if self.cut:
            self.cluster.heal_session(self.cut.pop())

    def hang_up(self) -> None:
        if up := self.up():
            self.cluster.ensemble.hang_up(self.session_of(self.random.choice(up)))

    def expire(self) -> None:
        if able := sorted({*self.up()} - self.cut):
            self.cluster.ensemble.expire(self.session_of(self.random.choice(able)))

    def session_of(self, node: int) -> int:
        return self.cluster.nodes[node].member.session.id

    # --- the end ------------------------------------------------------------------------------

    def run(self) -> None:
        for _ in range(self.random.randint(8, 25)):
            self.random.choice(self.actions)()
            self.cluster.run(self.random.choice(WAITS_MS))
        while self.cut:
            self.heal_session()
        self.cluster.run_until(self.is_done, ms_max=90_000)

    def is_done(self) -> bool:
        while len(self.up()) < len(BROKERS):  # an orderly stop may come late
            self.restart()
        return self.left() == []

    def left(self) -> list[str]:
        """What is still to be done."""
        cluster, data = self.cluster, self.cluster.ensemble.data
        left = [] if cluster.active_controller is not None else ["nobody is the controller"]
        if data(paths.REASSIGN_PARTITIONS) is not None:
            left.append("partitions move")
        left += [f"{topic} is being deleted" for topic in self.admin.children(paths.DELETE_TOPICS)]
        assigned = dict(self.assigned())
        left += [
            f"{of} is not as it is assigned"
            for of, replicas in assigned.items()
            if not self.is_led_and_in_sync(of, replicas)
        ]
        for node in BROKERS:
            on_disk = {name for name in cluster.hosts[node].disk.logs if name[0] in TOPICS}
            wanted = {f"{of.topic}-{of.partition}" for of in assigned if node in assigned[of]}
            left += [f"{node} has not deleted {name}" for name in on_disk - wanted]
        return left

    def assigned(self) -> list[tuple[TopicPartition, tuple[int, ...]]]:
        topics = self.admin.children(paths.TOPICS)
        found = {topic: self.cluster.ensemble.data(paths.topic(topic)) for topic in topics}
        return [
            (of(topic, number), replicas)
            for topic, data in found.items()
            if data is not None
            for number, replicas in TopicAssignment.decode(data).partitions.items()
        ]

    def is_led_and_in_sync(self, of: TopicPartition, replicas: tuple[int, ...]) -> bool:
        data = self.cluster.ensemble.data(state_path(self.cluster.options.design, of))
        if data is None:
            return False
        state = PartitionState.decode(data)
        return set(state.isr) == set(replicas) and self.cluster.leaders(of) == [state.leader]


@pytest.mark.parametrize("design", [ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name)
@pytest.mark.parametrize("seed", SEEDS)
def test_all_is_done_when_all_is_healed(design: Design, seed: int) -> None:
    run = Interleaving(design, seed)
    try:
        run.run()
    except AssertionError as error:
        error.add_note(f"{run.left()}: {REPLAY.format(seed, design.name)}")
        raise


@pytest.mark.long
@pytest.mark.parametrize("design", [ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name)
def test_all_is_done_in_many_more(design: Design) -> None:
    for seed in range(10_000, 11_000):
        test_all_is_done_when_all_is_healed(design, seed)
