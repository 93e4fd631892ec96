"""Random faults: whatever is cut, killed or elected, nothing acknowledged by all is lost.

Invariants of the data plane, checked after every step: D-ACK (an acknowledged record is in every
later leader's log at its offset), D-THW (no high watermark passes the end of an in-sync replica),
D-MAX (a leader counts on everyone whom the controller has in the ISR), D-DIV (logs are equal below
both high watermarks), D-ONE (what a consumer has read at an offset never changes), D-EPC (epochs of
the cache are those of the log). At the end all high watermarks are saved.
"""

from random import Random

import pytest

from broker.partition import isr
from broker.partition.partition import LeaderOf
from jepsen_like.planted.every_bug import planted
from tests.broker.brokers import Brokers, batch_of, fetch_request
from wire.batch import headers, records_of
from wire.errors import ErrorCode

STEPS = 60


class Run:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.brokers = Brokers(3, replica_lag_time_max_ms=400, replica_fetch_backoff_ms=50)
        self.brokers.start()
        self.brokers.create_topic("t", (1, 2, 3), min_insync_replicas="2")
        self.brokers.latency_ms = lambda: self.random.choice([1, 5, 40])
        self.waiting: dict[int, tuple[int, bytes]] = {}  # by token: asked whom, for what
        self.acknowledged: dict[int, bytes] = {}
        self.read: dict[int, bytes] = {}
        self.count = 0
        self.down: set[int] = set()

    @property
    def state(self) -> tuple[int, tuple[int, ...]]:
        state = self.brokers.states[(self.brokers.topics["t"], 0)]
        return state.leader, state.isr

    def step(self) -> None:
        actions = [self.produce] * 6 + [self.consume] * 2 + [self.wait] * 6
        actions += [self.cut] * 2 + [self.heal, self.kill, self.restart, self.elect]
        actions += [
            self.hold,
            self.release,
            self.release,
            self.deafen,
            self.hear,
            self.hear,
            self.lose,
        ]
        self.random.choice(actions)()
        self.collect()
        self.check()

    def produce(self) -> None:
        leader = self.state[0]
        if leader not in self.brokers.brokers:
            return
        self.count += 1
        value = b"%d" % self.count
        token = self.brokers.produce(leader, "t", 0, batch_of(value))
        self.waiting[token] = (leader, value)

    def collect(self) -> None:
        for token, (_, value) in tuple(self.waiting.items()):
            if token in self.brokers.answers:
                del self.waiting[token]
                result = self.brokers.produced(token)
                if result.error_code is ErrorCode.NONE:
                    self.acknowledged[result.base_offset] = value

    def consume(self) -> None:
        leader = self.state[0]
        if leader not in self.brokers.brokers or not self.brokers.brokers[leader].serves_clients:
            return
        body = self.brokers.call(leader, fetch_request("t", 0, 0))
        data = body.responses[0].partitions[0]
        for position, header in headers(data.records or b""):
            for record in records_of(data.records[position : position + header.size_bytes]):
                assert record.value is not None
                assert self.read.setdefault(record.offset, record.value) == record.value

    def wait(self) -> None:
        self.brokers.run(self.random.choice([1, 20, 100, 700]))

    def cut(self) -> None:
        pair = self.random.sample([1, 2, 3], 2)
        self.brokers.cut.add((pair[0], pair[1]))

    def heal(self) -> None:
        self.brokers.cut.clear()

    def hold(self) -> None:
        """The controller is slow."""
        self.brokers.holds_controller = True

    def release(self) -> None:
        self.brokers.loses_answers = False
        self.brokers.release_controller()

    def lose(self) -> None:
        """The controller hears and acts, and its answers are lost."""
        self.brokers.loses_answers = True

    def deafen(self) -> None:
        """A broker follows the metadata log late."""
        self.brokers.deaf.add(self.random.choice([1, 2, 3]))

    def hear(self) -> None:
        self.brokers.deaf.clear()
        self.brokers.settle()

    def kill(self) -> None:
        """A broker dies, and the controller takes its leadership and membership away."""
        alive = sorted(self.brokers.brokers)
        if len(alive) < 3:
            return
        victim = self.random.choice(alive)
        self.brokers.kill(victim)
        self.down.add(victim)
        self.waiting = {t: asked for t, asked in self.waiting.items() if asked[0] != victim}
        leader, members = self.state
        left = tuple(replica for replica in members if replica != victim)
        self.brokers.fence(victim)
        if left:
            elected = left[0] if leader == victim else -2
            self.brokers.change("t", 0, isr=left, leader=elected)
        else:
            self.brokers.change("t", 0, leader=-1)  # the last member waits to come back

    def restart(self) -> None:
        self.hear()
        self.release()
        for node_id in sorted(self.down):
            self.down.discard(node_id)
            self.brokers.start(node_id)
            leader, members = self.state
            if leader == -1 and node_id in members:
                self.brokers.change("t", 0, leader=node_id)

    def elect(self) -> None:
        _, members = self.state
        alive = [replica for replica in members if replica in self.brokers.brokers]
        if alive:
            self.brokers.change("t", 0, leader=self.random.choice(alive))

    # --- invariants

    def check(self) -> None:
        brokers = self.brokers
        self.check_leader()
        ends = brokers.ends("t", 0)
        for first in ends:
            for second in ends:
                common = min(ends[first][1], ends[second][1])
                mine = brokers.values(first, "t", 0)[:common]
                assert mine == brokers.values(second, "t", 0)[:common]
        for node_id in ends:
            log = brokers.partition(node_id, "t", 0).open_log
            on_disk = brokers.disks[node_id].logs["t-0"]
            assert log.end_offset == on_disk.end_offset
            for header in on_disk.headers():
                assert log.epochs.epoch_at(header.base_offset) == header.leader_epoch

    def check_leader(self) -> None:
        """What holds of the leader of the controller's choice, once it knows that it is."""
        leader, members = self.state
        if leader not in self.brokers.brokers:
            return
        role = self.brokers.partition(leader, "t", 0).role
        epoch = self.brokers.states[(self.brokers.topics["t"], 0)].leader_epoch
        if not isinstance(role, LeaderOf) or role.leader_epoch != epoch:
            return
        assert set(isr.maximal_isr(role.isr)) >= set(members), (role.isr, members)
        ends = self.brokers.ends("t", 0)
        high_watermark = ends[leader][1]
        for member in members:
            if member in ends:
                assert high_watermark <= ends[member][0], (high_watermark, member, ends)
        values = self.brokers.values(leader, "t", 0)
        for offset, value in self.acknowledged.items():
            assert values[offset : offset + 1] == [value], f"the record at {offset} is gone"


def test_high_watermark_that_is_not_saved_is_found() -> None:
    with planted("saves_no_high_watermark"):
        run = Run(0)
        run.produce()
        run.brokers.run(3000)
        with pytest.raises(AssertionError):
            check_saved(run.brokers)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.heal()
    run.restart()
    run.brokers.run(3000)
    run.produce()
    run.brokers.run(3000)
    run.collect()
    run.check()
    assert set(run.state[1]) == {1, 2, 3}, "after the faults, every replica is in sync again"
    assert not run.waiting
    assert run.acknowledged, "nothing was acknowledged: the run shows nothing"
    values = {tuple(run.brokers.values(node_id, "t", 0)) for node_id in (1, 2, 3)}
    assert len(values) == 1
    check_saved(run.brokers)


def check_saved(brokers: Brokers) -> None:
    brokers.run(brokers.brokers[1].config.high_watermark_checkpoint_interval_ms)
    for node_id, (_, high_watermark) in brokers.ends("t", 0).items():
        assert brokers.disks[node_id].checkpoint == {("t", 0): high_watermark}
