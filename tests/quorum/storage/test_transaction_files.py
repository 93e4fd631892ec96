"""What a log on disk knows of transactions, held against what its batches say."""

import struct
from pathlib import Path
from random import Random

import pytest

from quorum.core.effects import (
    Append,
    Read,
    ReadDone,
    SaveProducers,
    Truncate,
)
from quorum.core.producers import AbortedTransaction, ProducerEntry, ProducerTransaction
from quorum.log.files import recovery
from quorum.log.files.disk import Disk
from quorum.log.files.producer_snapshot import format_producers, producers_path
from quorum.log.files.recovery import Recovered, open_log
from quorum.log.files.segments import SegmentedLog
from tests.quorum.log_files import SMALL, quick_disk
from tests.quorum.storage.transactional_node import TransactionalNode
from tests.quorum.storages import LOG, Storage
from tests.quorum.transactional import Transactions, extent, opened, overlapping
from wire.batch import headers


def recovered(path: Path, *, recovery_point: int = 0, was_closed: bool = False) -> Recovered:
    return open_log(
        quick_disk(), str(path), SMALL, recovery_point=recovery_point, was_closed=was_closed
    )


def append(log: SegmentedLog, written: Transactions, batch: bytes) -> None:
    log.append(batch, written.aborted_by(batch))


def drawn(log: SegmentedLog, random: Random, written: Transactions, steps: int = 40) -> None:
    for _ in range(steps):
        kind = random.choices(("write", "end", "cut"), (10, 4, 1))[0]
        if kind == "write":
            append(log, written, written.write(random.randrange(4), size=random.choice((10, 300))))
        elif kind == "end":
            batch = written.end(random.randrange(4), commits=random.random() < 0.4)
            append(log, written, batch)
        else:
            end_offset = random.randint(max(0, log.end_offset - 8), log.end_offset)
            log.truncate(end_offset)
            written.truncate(end_offset)


def check(log: SegmentedLog, written: Transactions) -> None:
    """Any read is told what it should be."""
    _, aborted = written.read_back()
    end_offset = log.end_offset
    assert end_offset == written.end_offset
    for start in range(0, end_offset, 3):
        for end in range(start + 1, min(end_offset, start + 9) + 1, 2):
            assert set(log.aborted_in(start, end)) == overlapping(aborted, start, end)


@pytest.mark.parametrize("seed", range(4))
def test_reads_are_told_of_what_was_aborted_whatever_happened_to_the_log(
    tmp_path: Path, seed: int
) -> None:
    random, written = Random(seed), Transactions()
    log = recovered(tmp_path).log
    for _ in range(3):
        drawn(log, random, written)
        check(log, written)
        synced = random.choice((0, log.active_offset, log.end_offset))
        found = recovered(tmp_path, recovery_point=synced)
        log = found.log
        check(log, written)
        assert opened(found.producers) == opened(written.read_back()[0].values())


def long_transaction(path: Path) -> Transactions:
    """Producer 7 has a transaction that began four segments ago; 8 has ended some meanwhile."""
    log, written = recovered(path).log, Transactions()
    append(log, written, written.write(7))
    for _ in range(5):
        append(log, written, written.write(8, size=700))
        append(log, written, written.end(8, commits=False))
    log.finish()
    assert len(list(path.glob("*.log"))) == 5
    return written


def test_transaction_that_began_before_what_is_read_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_PRODUCERS_BYTES", 0)
    written = long_transaction(tmp_path)
    found = recovered(tmp_path, recovery_point=written.end_offset)
    assert opened(found.producers)[7] == 0
    append(found.log, written, written.end(7))
    assert found.log.aborted_in(0, 1)[-1:] == (AbortedTransaction(7, 0, 11, 12),)


def test_entry_is_as_kafka_has_it(tmp_path: Path) -> None:
    log, written = recovered(tmp_path).log, Transactions()
    for batch in (written.write(7), written.write(8), written.end(7)):
        append(log, written, batch)
    content = (tmp_path / f"{0:020d}.txnindex").read_bytes()
    assert content == struct.pack(">hqqqq", 0, 7, 0, 2, 1)


@pytest.mark.parametrize(
    ("suffix", "harm"),
    [
        (".txnindex", "cut"),
        (".txnindex", "of another version"),
        (".open", "cut"),
        (".open", "of another version"),
        (".index", "gone with the other indexes"),
    ],
)
@pytest.mark.parametrize("was_closed", [False, True])
def test_damaged_files_of_a_trusted_segment_are_made_anew(
    tmp_path: Path, suffix: str, harm: str, was_closed: bool
) -> None:
    written = long_transaction(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path in tmp_path.glob(f"*{suffix}"):
        content = bytearray(path.read_bytes())
        if suffix == ".index":
            path.unlink()
            path.with_suffix(".txnindex").unlink()
        elif harm == "cut":
            path.write_bytes(content[:-1])
        else:
            content[1] ^= 2
            path.write_bytes(content)
    found = recovered(tmp_path, recovery_point=written.end_offset, was_closed=was_closed)
    check(found.log, written)
    assert opened(found.producers) == opened(written.read_back()[0].values())
    found.log.finish()
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    names = [name for name in before if name.endswith((".txnindex", ".open"))]
    assert len(names) == 9
    assert {name: after[name] for name in names} == {name: before[name] for name in names}


def test_kafkas_snapshots_say_what_is_open_where_a_segment_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_PRODUCERS_BYTES", 0)
    written = long_transaction(tmp_path)
    for path in tmp_path.glob("*.open"):
        path.unlink()
    entries = [
        ProducerEntry(7, 0, (), transactions=(ProducerTransaction(0),)),
        ProducerEntry(9, 3, (), coordinator_epoch=4),
    ]
    for path in tmp_path.glob("*.log"):
        if int(path.stem):
            snapshot = Path(producers_path(str(tmp_path), int(path.stem)))
            snapshot.write_bytes(format_producers(entries))
    found = recovered(tmp_path, recovery_point=written.end_offset)
    assert opened(found.producers)[7] == 0
    assert not list(tmp_path.glob("*.snapshot"))
    again = recovered(tmp_path, recovery_point=written.end_offset)
    assert opened(again.producers)[7] == 0


def test_recovery_writes_again_what_may_not_be_on_the_medium(tmp_path: Path) -> None:
    """An earlier sync may have failed: what is read back of the file may be in memory alone."""
    written = long_transaction(tmp_path)
    calls: list[tuple[str, str]] = []

    class Watched(Disk):
        def put(self, path: str, content: bytes) -> None:
            calls.append(("put", path.rpartition("/")[2]))
            super().put(path, content)

        def sync(self, path: str) -> None:
            calls.append(("sync", path.rpartition("/")[2]))

    open_log(Watched(), str(tmp_path), SMALL, recovery_point=written.end_offset - 3)
    base = max(int(path.stem) for path in tmp_path.glob("*.log"))
    for suffix in (".txnindex", ".open"):
        name = f"{base:020d}{suffix}"
        assert [call for call, file in calls if file == name] == ["put", "sync"]


def test_files_go_with_their_segment(tmp_path: Path) -> None:
    written = long_transaction(tmp_path)
    log = recovered(tmp_path, recovery_point=written.end_offset).log
    for segment in log.trim(log.active_offset):
        segment.remove()
    stems = {path.stem for path in tmp_path.glob("*.open")}
    assert stems == {path.stem for path in tmp_path.glob("*.log")}
    assert len(stems) == 1
    log.truncate(0)
    assert not list(tmp_path.glob("*.open"))
    assert not list(tmp_path.glob("*.txnindex"))


# --- whole storages -------------------------------------------------------------------------


def read(storage: Storage, *, wants_aborted: bool = True) -> ReadDone:
    effect = Read(
        log=LOG,
        token=storage.token(),
        start_offset=0,
        end_offset=10**9,
        bytes_max=1 << 20,
        wants_aborted=wants_aborted,
    )
    (done,) = storage.do(effect)
    assert isinstance(done, ReadDone)
    return done


def test_only_who_asks_is_told(tmp_path: Path) -> None:
    storage, written = Storage(tmp_path), Transactions()
    storage.open()
    for batch in (written.write(7), written.write(8), written.end(7), written.end(8, commits=True)):
        aborted = written.aborted_by(batch)
        storage.do(Append(log=LOG, token=storage.token(), records=batch, aborted=aborted))
    done = read(storage)
    assert set(done.aborted) == overlapping(written.read_back()[1], *extent(done.records))
    assert len(done.aborted) == 1
    assert read(storage, wants_aborted=False).aborted == ()
    storage.do(Truncate(log=LOG, token=storage.token(), end_offset=2))
    assert read(storage).aborted == ()
    storage.close()


@pytest.mark.parametrize("is_settled", [False, True])
def test_orderly_stop_notes_open_transactions_unless_a_marker_may_be_cut_off(
    tmp_path: Path, is_settled: bool
) -> None:
    storage, written = Storage(tmp_path), Transactions()
    storage.open()
    for batch in (written.write(7), written.write(8), written.end(7)):
        aborted = written.aborted_by(batch)
        storage.do(Append(log=LOG, token=storage.token(), records=batch, aborted=aborted))
    producers, _ = written.read_back()
    if is_settled:
        producers[7] = producers[7]._replace(transactions=(), earlier=())
    entries = tuple(producers.values())
    storage.do(SaveProducers(log=LOG, token=storage.token(), end_offset=3, producers=entries))
    storage.close()
    assert (tmp_path / LOG / f"{3:020d}.snapshot").exists() == is_settled
    state = Storage(tmp_path).open().state
    assert {each.producer_id: each for each in state.producers} == producers


@pytest.mark.parametrize("seed", range(8))
def test_power_failure_leaves_what_the_batches_say(seed: int) -> None:
    """The log is synced up to some batch, and its files are synced one by one."""
    node, random = TransactionalNode(seed), Random(seed)
    for _ in range(4):
        for _ in range(random.randrange(40)):
            if random.random() < 0.3:
                node.end(random.randrange(4), commits=random.random() < 0.3)
            else:
                node.write(random.randrange(4), [(b"k", b"x" * random.choice((1, 200)))])
            if random.random() < 0.2:
                node.settle()  # rolled segments are synced
            if random.random() < 0.05:
                end_offset = random.randint(0, node.end_offset)
                node.do(Truncate(log=node.log, token=node.token(), end_offset=end_offset))
                node.end_offset = end_offset
                node.producers = producers_of(node)[0]
        node.crash(power_loss=random.random() < 0.8)
        node.producers, aborted = producers_of(node)
        assert opened(node.state.producers) == opened(node.producers.values())
        for start_offset in range(0, node.end_offset, 3):
            effect = Read(
                log=node.log,
                token=node.token(),
                start_offset=start_offset,
                end_offset=node.end_offset,
                bytes_max=300,
                wants_aborted=True,
            )
            (done,) = [each for each in node.do(effect) if isinstance(each, ReadDone)]
            assert set(done.aborted) == overlapping(aborted, *extent(done.records))


def producers_of(
    node: TransactionalNode,
) -> tuple[dict[int, ProducerEntry], list[AbortedTransaction]]:
    batches = node.batches()
    written = Transactions()
    written.batches = [batches[at : at + header.size_bytes] for at, header in headers(batches)]
    return written.read_back()
