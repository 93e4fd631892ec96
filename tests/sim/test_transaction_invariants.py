"""What the judge of transactions says of logs, of readers and of what producers were told."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.partition.isr import Committed
from broker.partition.partition import LeaderOf
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from jepsen_like.sim.assemblies.cluster.invariants.metadata_invariants import MetadataInvariants
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.transaction_invariants import (
    Made,
    TransactionInvariants,
    _ReadLog,
    outcomes,
)
from jepsen_like.sim.assemblies.cluster.invariants.watched import Key, Watched
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry, LogTree
from jepsen_like.sim.violation import Violation
from wire.batch import Record, assign, build_batch
from wire.transaction_markers import Marker, build_marker

KEY: Key = (UUID(int=1), 0)
PRODUCER = 7


def sent(*values: bytes, epoch: int = 0, producer: int = PRODUCER) -> bytes:
    return build_batch(
        [Record(value=value) for value in values],
        timestamp_ms=0,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )


def ended(*, commits: bool, epoch: int = 1, producer: int = PRODUCER) -> bytes:
    return build_marker(Marker(producer, epoch, commits, coordinator_epoch=0), timestamp_ms=0)


def log_of(*batches: bytes) -> list[Entry]:
    return LogTree().extend(None, assign(b"".join(batches), base_offset=0, leader_epoch=1))


def judge(*batches: bytes) -> tuple[TransactionInvariants, Watched]:
    """One that has seen these batches exposed, in the partition of `KEY`."""
    metadata = MetadataInvariants(lambda: 0)
    partitions = PartitionInvariants(
        moment=lambda: 0, hosts={}, broker_of=lambda _node: None, metadata=metadata
    )
    state = cast(Any, SimpleNamespace())
    watched = Watched("orders-0", state, exposed=log_of(*batches))
    partitions.watched[KEY] = watched
    return TransactionInvariants(partitions, lambda _kind: None, version=2), watched


# --- logs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batches", "rule"),
    [
        ((sent(b"a"), ended(commits=True), sent(b"b", epoch=1)), ""),
        ((sent(b"a"), ended(commits=True), ended(commits=True)), ""),
        ((sent(b"a"), ended(commits=True), sent(b"b")), "T-FEN"),
        ((sent(b"a", epoch=1), ended(commits=True)), "T-ONCE"),
        ((sent(b"a"), ended(commits=True, epoch=3), ended(commits=True, epoch=2)), "T-ONCE"),
    ],
    ids=["next", "repeated", "fenced", "of the next", "late"],
)
def test_epochs_of_a_producer_never_fall_and_markers_end_the_epoch_before(
    batches: tuple[bytes, ...], rule: str
) -> None:
    read, last = _ReadLog(version=2), log_of(*batches)[-1]
    if not rule:
        assert read.after(last).epochs == {PRODUCER: 1}
        return
    with pytest.raises(Violation, match=rule):
        read.after(last)


def test_before_epochs_are_raised_markers_have_that_of_what_they_end() -> None:
    read = _ReadLog(version=1)
    ended_in_time = log_of(sent(b"a"), ended(commits=True, epoch=0), sent(b"b"))
    assert read.after(ended_in_time[-1]).open == {PRODUCER: 2}
    with pytest.raises(Violation, match="T-ONCE"):
        read.after(log_of(sent(b"a", epoch=1), ended(commits=True, epoch=0))[-1])


def test_who_was_fenced_is_not_given_the_id_by_naming_an_epoch() -> None:
    invariants, _ = judge()
    invariants.gives("tx-0", "p", owner=None, is_anew=True)
    invariants.gives("tx-0", "p", owner=invariants.owner("tx-0"), is_anew=False)
    invariants.gives("tx-0", "q", owner="p", is_anew=True)
    with pytest.raises(Violation, match=r"T-FEN.*given to p, which q has fenced"):
        invariants.gives("tx-0", "p", owner=invariants.owner("tx-0"), is_anew=False)


def test_nobody_fences_the_one_that_has_the_id() -> None:
    invariants, _ = judge()
    invariants.gives("tx-0", "p", owner=None, is_anew=True)
    invariants.fences("tx-0", "q")
    with pytest.raises(Violation, match=r"T-FEN.*p is fenced"):
        invariants.fences("tx-0", "p")


@pytest.mark.parametrize("known", [{}, {PRODUCER: 1}, {8: 0}])
def test_replica_knows_which_transactions_are_open(known: dict[int, int]) -> None:
    """Whoever cuts off a marker may lead before it is there again."""
    invariants, _ = judge()

    def looks(start_offset: int, since: dict[int, int]) -> None:
        entries = (SimpleNamespace(producer_id=each, open_since=at) for each, at in since.items())
        producers = SimpleNamespace(entries=lambda: tuple(entries))
        log = SimpleNamespace(start_offset=start_offset, producers=producers)
        partition = SimpleNamespace(name="orders-0", open_log=log)
        host = SimpleNamespace(node_id=1)
        invariants._knows_open(cast(Any, host), cast(Any, partition), {PRODUCER: 0})

    looks(0, {PRODUCER: 0, 8: -1})
    looks(2, known)
    with pytest.raises(Violation, match=r"T-LSO.*has a transaction since"):
        looks(0, known)


def test_each_batch_ends_as_the_next_marker_of_its_producer_says() -> None:
    entries = log_of(
        sent(b"a"),
        sent(b"b", producer=8),
        ended(commits=True),
        ended(commits=False, producer=8),
        sent(b"c", epoch=1),
    )
    assert [ending for _, ending in outcomes(entries)] == [True, False, None]


@pytest.mark.parametrize(
    ("reached", "stable", "is_right"),
    [(2, 2, False), (2, 0, True), (3, 2, True), (3, 0, True), (3, 1, False)],
)
def test_marker_that_was_below_a_high_watermark_is_certain(
    reached: int, stable: int, is_right: bool
) -> None:
    """Seed 45128: a follower was told of a lower high watermark than it knew, and then led."""
    entries = log_of(sent(b"a"), sent(b"b"), ended(commits=True))
    invariants, _ = judge()
    disk = SimpleNamespace(log=lambda _name: SimpleNamespace(failed=False))
    host = cast(Any, SimpleNamespace(node_id=1, disk=disk))
    leads = LeaderOf(
        leader_epoch=1,
        epoch_start_offset=0,
        partition_epoch=0,
        replicas=(1, 2),
        isr=Committed(members=(1, 2)),
        leader_recovery_state=0,
    )

    def looks(role: object, high_watermark: int, last_stable_offset: int) -> None:
        log = SimpleNamespace(
            start_offset=0,
            end_offset=3,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            producers=SimpleNamespace(entries=lambda: ()),
        )
        partition = SimpleNamespace(
            name="orders-0", topic_id=KEY[0], index=KEY[1], role=role, open_log=log
        )
        invariants._look(host, cast(Any, partition), Content(entries))

    looks(None, reached, reached)
    if is_right:
        looks(leads, 2, stable)
        return
    with pytest.raises(Violation, match="T-LSO"):
        looks(leads, 2, stable)


# --- readers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "given", "told"),
    [
        (4, {0: b"a"}, ""),
        (4, {}, "0.* are committed"),
        (4, {0: b"a", 2: b"b"}, "were given"),
        (5, {0: b"a"}, "is open"),
    ],
    ids=["the committed", "one is missed", "an aborted one", "beyond the stable"],
)
def test_reader_is_given_what_has_committed_and_nothing_else(
    end: int, given: dict[int, bytes], told: str
) -> None:
    invariants, _ = judge(
        sent(b"a"),
        ended(commits=True),
        sent(b"b", epoch=1),
        ended(commits=False, epoch=2),
        sent(b"c", epoch=2),
    )
    if not told:
        invariants.has_read(KEY, 0, end, given)
        return
    with pytest.raises(Violation, match=f"T-READ.*{told}"):
        invariants.has_read(KEY, 0, end, given)


# --- the end --------------------------------------------------------------------------------------


def finishes(
    invariants: TransactionInvariants, watched: Watched, offset: int | None = None
) -> None:
    written = cast(Any, SimpleNamespace(entries=watched.exposed))
    invariants.check_end(lambda _watched: written, lambda _group: offset)


def made(invariants: TransactionInvariants, *values: bytes, commits: bool | None) -> Made:
    """None: it never asks for an end."""
    transaction = invariants.begins("tx-0", 0)
    transaction.sent.update(values)
    if commits is not None:
        transaction.is_commit = commits
    return transaction


def test_transaction_is_whole_and_as_its_producer_was_told() -> None:
    invariants, watched = judge(sent(b"a"), ended(commits=True))
    transaction = made(invariants, b"a", commits=True)
    transaction.acknowledged(KEY, [b"a"], 0)
    transaction.is_told = True
    finishes(invariants, watched)


@pytest.mark.parametrize("commits", [None, False])
def test_what_nobody_asked_to_be_committed_is_not(commits: bool | None) -> None:
    invariants, watched = judge(sent(b"a"), ended(commits=True))
    made(invariants, b"a", commits=commits)
    with pytest.raises(Violation, match=r"T-ALL.*nobody asked"):
        finishes(invariants, watched)


def test_open_transaction_is_judged_unless_retention_has_let_go_of_it() -> None:
    invariants, watched = judge(sent(b"a"))
    with pytest.raises(Violation, match=r"T-ALL.*open for ever"):
        finishes(invariants, watched)
    watched.deletable.retained(1)
    finishes(invariants, watched)


def test_commit_that_was_told_is_no_abort() -> None:
    invariants, watched = judge(sent(b"a"), ended(commits=False))
    made(invariants, b"a", commits=True).is_told = True
    with pytest.raises(Violation, match=r"T-ALL.*ended otherwise"):
        finishes(invariants, watched)


def test_transaction_is_not_committed_in_part() -> None:
    batches = sent(b"a"), ended(commits=True), sent(b"b", epoch=1), ended(commits=False, epoch=2)
    invariants, watched = judge(*batches)
    made(invariants, b"a", b"b", commits=True)
    with pytest.raises(Violation, match=r"T-ALL.*some is not"):
        finishes(invariants, watched)


def test_no_transaction_stays_open() -> None:
    invariants, watched = judge(sent(b"a"))
    with pytest.raises(Violation, match=r"T-ALL.*for ever"):
        finishes(invariants, watched)


@pytest.mark.parametrize(
    ("commits", "is_told", "at", "is_right"),
    [
        (True, True, 5, True),
        (True, True, None, False),
        (True, False, None, True),
        (True, False, 5, True),
        (False, True, None, True),
        (False, True, 5, False),
    ],
)
def test_offset_of_a_group_counts_if_its_transaction_has_committed(
    commits: bool, is_told: bool, at: int | None, is_right: bool
) -> None:
    """Here the group has no other transaction."""
    invariants, watched = judge()
    transaction = made(invariants, commits=commits)
    transaction.offset = "fed-0", 5
    transaction.is_told = is_told
    if is_right:
        finishes(invariants, watched, at)
        return
    with pytest.raises(Violation, match="T-OFF"):
        finishes(invariants, watched, at)


# --- lost decisions -------------------------------------------------------------------------------


def test_nothing_is_promised_once_the_decisions_of_coordinators_are_lost() -> None:
    invariants, watched = judge(sent(b"a"))
    decisions = Watched(f"{TRANSACTIONS_TOPIC}-0", cast(Any, SimpleNamespace()))
    invariants._partitions.watched[UUID(int=2), 0] = decisions
    with pytest.raises(Violation, match="T-ALL"):
        finishes(invariants, watched)
    decisions.excused = "is elected after it lost records"
    finishes(invariants, watched)
