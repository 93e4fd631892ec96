"""Compaction of a log with transactions, held against a consumer that reads committed records."""

from random import Random

import pytest

from jepsen_like.sim.disks.virtual_files import Died
from tests.quorum.keyed_batches import Keyed, values_of
from tests.quorum.storage.transactional_node import TransactionalNode
from tests.quorum.transactional import opened
from wire.batch import BatchHeader, headers

HOUR_MS = 3_600_000
RETENTION = {"delete_retention_ms": HOUR_MS}


def some(random: Random) -> list[Keyed]:
    return [
        (b"key-%d" % random.randrange(8), random.choice([None, b"x%d" % random.randrange(99)]))
        for _ in range(random.randint(1, 3))
    ]


def drawn(node: TransactionalNode, steps: int) -> None:
    random = node.random
    for _ in range(steps):
        producer_id = random.randrange(4)
        kind = random.choices(("write", "end", "plain"), (6, 4, 2))[0]
        if kind == "plain":
            node.write_plain(some(random))
        elif kind == "end" and producer_id in node.pending:
            node.end(producer_id, commits=random.random() < 0.5)
        else:
            node.write(producer_id, some(random))


def check(node: TransactionalNode) -> None:
    if node.last_stable_offset < node.end_offset:
        return  # what is committed is not all readable yet
    committed = [node.committed[offset] for offset in sorted(node.committed)]
    assert values_of(node.read_committed()) == values_of(committed)


def end_all(node: TransactionalNode) -> None:
    for producer_id in list(node.pending):
        node.end(producer_id, commits=node.random.random() < 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_who_reads_committed_records_sees_the_same_values(seed: int) -> None:
    node = TransactionalNode(seed)
    for _ in range(6):
        drawn(node, 30)
        node.clean(**RETENTION)
        copy = node.copy()
        assert opened(copy.state.producers) == opened(node.producers.values())
        end_all(node)
        check(node)
        node.clean(**RETENTION)
        check(node)
        node.crash(power_loss=False)
        assert opened(node.state.producers) == {}
        check(node)
        node.now_ms += node.random.choice((0, HOUR_MS))


def clean_headers(node: TransactionalNode) -> list[BatchHeader]:
    active = int(node.names()[-1][:20])
    return [h for _, h in headers(node.batches()) if h.last_offset < active]


def fill(node: TransactionalNode, times: int = 6) -> None:
    """Nothing but what hides itself, so that all before it is in segments that may be cleaned."""
    for number in range(times):
        node.write_plain([(b"filling", b"%d" % number + b"z" * 100)])


@pytest.mark.parametrize("commits", [False, True])
def test_marker_stays_until_the_data_is_gone_and_then_for_a_while(commits: bool) -> None:
    node = TransactionalNode()
    node.write(7, [(b"a", b"1")])
    node.end(7, commits=commits)
    node.write(8, [(b"a", b"2")])
    node.end(8, commits=True)
    for producer_id in (7, 8):  # which have written something else since
        node.producers.pop(producer_id)
    fill(node)
    seen = []
    for hours in (0, 0, 0.5, 0.6):
        node.now_ms += int(hours * HOUR_MS)
        node.clean(**RETENTION)
        check(node)
        own = [h for h in clean_headers(node) if h.producer_id == 7]
        seen.append([(h.is_control, h.delete_horizon_ms is not None) for h in own])
        fill(node)
    assert seen == [[(True, False)], [(True, True)], [(True, True)], []]
    other = [h.is_control for h in clean_headers(node) if h.producer_id == 8]
    assert other == [False, True], "its data is there"
    assert not node.names(".txnindex")


def test_last_batch_and_last_marker_of_a_producer_stay_without_records() -> None:
    node = TransactionalNode()
    node.write(7, [(b"a", b"1")])
    node.end(7, commits=False)
    node.write(8, [(b"b", b"1")])
    node.end(8, commits=False)
    node.producers[8] = node.producers[8]._replace(batches=())
    fill(node)
    for _ in range(4):
        node.now_ms += HOUR_MS
        node.clean(**RETENTION)
        fill(node)
    left = [(h.producer_id, h.is_control, h.record_count) for h in clean_headers(node)][:3]
    assert left == [(7, False, 0), (7, True, 1), (8, True, 0)]
    assert len(node.names(".txnindex")) == 1, "a marker has ended what the header began"


def test_start_waits_for_no_marker_that_is_gone() -> None:
    """It was noted where a segment begins that the transaction was open."""
    node = TransactionalNode()
    node.write(7, [(b"a", b"1")])
    for number in range(8):
        node.write_plain([(b"stays-%d" % number, b"z" * 100)])
    assert len(node.names(".open")) > 2
    node.end(7, commits=False)
    node.producers.pop(7)
    fill(node)
    for _ in range(3):
        node.now_ms += HOUR_MS
        node.clean(**RETENTION)
        fill(node)
    assert not [h for h in clean_headers(node) if h.producer_id == 7]
    node.crash(power_loss=False)
    assert opened(node.state.producers) == {}
    assert not node.names(".open")


@pytest.mark.parametrize("power_loss", [False, True])
def test_crash_at_any_call_of_it_changes_nothing_that_is_committed(power_loss: bool) -> None:
    origin = TransactionalNode(3)
    drawn(origin, 25)
    end_all(origin)
    fill(origin)
    origin.clean(**RETENTION)
    origin.now_ms += HOUR_MS
    drawn(origin, 10)
    end_all(origin)
    fill(origin, 3)
    assert origin.names(".open")
    assert origin.names(".txnindex")
    origin.stop()
    origin.files.make_durable()
    calls = 0
    while True:
        node = origin.copy()
        node.files.make_durable()
        node.files._random = Random(calls)
        node.files.die_after(calls)
        try:
            node.clean(**RETENTION)
            break
        except Died:
            pass
        node.crash(power_loss=power_loss)
        assert node.end_offset == origin.end_offset
        assert opened(node.state.producers) == {}
        check(node)
        assert not [name for name in node.names("") if name.endswith((".cleaned", ".swap"))]
        calls += 7
    assert calls > 40
