"""What compaction leaves of batches, held against a dictionary."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.core.producers import AbortedTransaction
from quorum.log.cleaned_batches import Cleaner, KeyMap, spans_in
from quorum.log.cleaned_transactions import AbortedTransactions
from tests.quorum.keyed_batches import Keyed, keyed_batch, read_records, values_of
from tests.quorum.transactional import ending
from wire.batch import (
    HEADER_BYTES,
    Compression,
    CorruptBatch,
    read_header,
    records_of,
    verify,
)

HOUR_MS = 3_600_000
KEYS = st.sampled_from([b"", b"a", b"b", b"c" * 70, None])
VALUES = st.sampled_from([None, b"", b"1", b"2" * 200])
RECORDS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)
CODECS = st.sampled_from(list(Compression))


def laid_out(written: list[tuple[list[Keyed], Compression, int]]) -> list[bytes]:
    """Batches one behind the other, some of them behind a gap."""
    batches, offset = [], 0
    for records, codec, gap in written:
        batches.append(keyed_batch(offset + gap, records, codec=codec))
        offset = read_header(batches[-1]).next_offset
    return batches


def cleaner(
    batches: list[bytes],
    *,
    dirty: int = 0,
    now_ms: int = 0,
    aborted: tuple[AbortedTransaction, ...] = (),
) -> Cleaner:
    keys = KeyMap(dirty, 1 << 30, AbortedTransactions(aborted))
    for batch in batches:
        if read_header(batch).last_offset >= dirty:
            keys.add(batch, read_header(batch))
    end_offset = read_header(batches[-1]).next_offset
    return Cleaner(
        keys=keys,
        now_ms=now_ms,
        delete_retention_ms=HOUR_MS,
        end_offset=end_offset,
        last_batches=frozenset(),
    )


def cleaned(batches: list[bytes], by: Cleaner) -> list[bytes]:
    left = [bytes(by.clean(batch, read_header(batch))) for batch in batches]
    return [batch for batch in left if batch]


WRITTEN = st.lists(st.tuples(RECORDS, CODECS, st.integers(0, 3)), min_size=1, max_size=8)


@given(WRITTEN)
def test_of_each_key_the_last_record_is_left_as_it_was(
    written: list[tuple[list[Keyed], Compression, int]],
) -> None:
    batches = laid_out(written)
    before = read_records(b"".join(batches))
    last = {record.key: record for record in before if record.key is not None}
    left = cleaned(batches, cleaner(batches))
    assert read_records(b"".join(left)) == sorted(last.values(), key=lambda each: each.offset)
    verify(b"".join(left))
    assert read_header(left[-1]).next_offset == read_header(batches[-1]).next_offset
    by_offset = {read_header(batch).base_offset: read_header(batch) for batch in batches}
    for batch in left:
        header = read_header(batch)
        original = by_offset[header.base_offset]
        assert header.last_offset == original.last_offset
        assert header.compression in (original.compression, Compression.NONE)
        records = list(records_of(batch))
        if records:
            assert header.max_timestamp_ms == max(record.timestamp_ms for record in records)
            assert header.compression == original.compression


@given(WRITTEN, st.integers(0, 20))
def test_what_is_clean_stays_unless_something_dirty_hides_it(
    written: list[tuple[list[Keyed], Compression, int]], dirty: int
) -> None:
    batches = laid_out(written)
    last = {
        record.key: record.offset
        for record in read_records(b"".join(batches))
        if record.key is not None and record.offset >= dirty
    }
    expected = [
        record
        for record in read_records(b"".join(batches))
        if record.key is not None and record.offset >= last.get(record.key, 0)
    ]
    if dirty < read_header(batches[-1]).next_offset:
        assert read_records(b"".join(cleaned(batches, cleaner(batches, dirty=dirty)))) == expected


@given(WRITTEN)
def test_tombstones_go_when_their_time_has_come_and_not_before(
    written: list[tuple[list[Keyed], Compression, int]],
) -> None:
    batches = laid_out(written)
    keyed = [each for each in read_records(b"".join(batches)) if each.key is not None]
    first = cleaned(batches, cleaner(batches, now_ms=10 * HOUR_MS))
    for hours, are_there in ((11, True), (12, False)):
        before = cleaned(first, cleaner(first, now_ms=hours * HOUR_MS - are_there))
        records = read_records(b"".join(before))
        assert values_of(records) == values_of(keyed)
        deleted = {each.key for each in keyed} - values_of(keyed).keys()
        left = {each.key for each in records if each.value is None}
        assert left == (deleted if are_there else set())
        again = cleaned(before, cleaner(before, now_ms=hours * HOUR_MS - are_there))
        assert again == before, "a second pass at the same time finds nothing to do"


def test_the_horizon_is_in_the_header_as_kafka_has_it() -> None:
    batch = keyed_batch(5, [(b"a", b"1"), (b"b", None)])
    (left,) = cleaned([batch], cleaner([batch], now_ms=HOUR_MS))
    header = read_header(left)
    assert header.attributes == 0b100_0000
    assert header.base_timestamp_ms == header.delete_horizon_ms == 2 * HOUR_MS
    assert [each.timestamp_ms for each in records_of(left)] == [1000, 1001]
    assert header.max_timestamp_ms == 1001


def test_sequences_outlive_the_records_of_a_producer() -> None:
    hidden = keyed_batch(0, [(b"a", b"1"), (b"b", b"1")], producer=(7, 0, 40))
    other = keyed_batch(2, [(b"a", b"1")], producer=(8, 0, 3))
    later = keyed_batch(3, [(b"a", b"2"), (b"b", b"2")])
    by = replace(cleaner([hidden, other, later]), last_batches=frozenset({(7, 1), (8, 1)}))
    left = cleaned([hidden, other, later], by)
    assert left[1:] == [later], "another batch of 8 is its last one"
    header = read_header(left[0])
    assert (header.record_count, header.size_bytes) == (0, HEADER_BYTES)
    assert (header.base_sequence, header.last_sequence, header.last_offset) == (40, 41, 1)
    assert cleaned(left, by) == left, "it stays as long as it is needed"
    assert cleaned(left, replace(by, last_batches=frozenset())) == [later]


@pytest.mark.parametrize("commits", [False, True])
def test_records_of_a_transaction_hide_others_if_it_was_committed(commits: bool) -> None:
    plain = keyed_batch(0, [(b"a", b"1"), (b"b", b"1")])
    own = keyed_batch(2, [(b"a", b"2"), (b"b", None)], is_transactional=True, producer=(7, 0, 0))
    marker = ending(4, 7, commits=commits)
    aborted = () if commits else (AbortedTransaction(7, 2, 4, 5),)
    batches = [plain, own, marker]
    left = cleaned(batches, cleaner(batches, aborted=aborted, now_ms=HOUR_MS))
    if commits:
        assert [each.offset for each in read_records(b"".join(left))] == [2, 3, 4]
        assert read_header(left[0]).delete_horizon_ms == 2 * HOUR_MS
    else:
        assert left == [plain, marker]


def test_transaction_of_the_same_producer_is_told_from_the_one_before() -> None:
    batches = [
        keyed_batch(0, [(b"a", b"1")], is_transactional=True, producer=(7, 0, 0)),
        ending(1, 7),
        keyed_batch(2, [(b"b", b"2")], is_transactional=True, producer=(7, 0, 1)),
        ending(3, 7, commits=True),
        keyed_batch(4, [(b"c", b"3")], is_transactional=True, producer=(7, 0, 2)),
        ending(5, 7),
    ]
    aborted = (AbortedTransaction(7, 0, 1, 2), AbortedTransaction(7, 4, 5, 6))
    left = cleaned(batches, cleaner(batches, aborted=aborted))
    assert left == [batches[1], *batches[2:4], batches[5]]


def test_a_full_map_ends_with_a_whole_batch() -> None:
    batches = [keyed_batch(n, [(b"%d" % n, b"x")]) for n in range(5)]
    keys = KeyMap(0, 500)
    for batch in batches:
        if keys.is_full:
            break
        keys.add(batch, read_header(batch))
    assert keys.end_offset == 4
    newer = keyed_batch(5, [(b"0", b"y")])
    by = replace(cleaner([newer]), keys=keys)
    assert cleaned([*batches, newer], by) == [*batches, newer], "nobody knows of the newer one"


@pytest.mark.parametrize("place", [21, HEADER_BYTES, -1])
def test_a_damaged_batch_is_refused(place: int) -> None:
    batch = bytearray(keyed_batch(0, [(b"a", b"1")]))
    batch[place] ^= 1
    header = read_header(batch)
    with pytest.raises(CorruptBatch):
        KeyMap(0, 1000).add(batch, header)
    with pytest.raises(CorruptBatch):
        cleaner([keyed_batch(0, [(b"a", b"1")])]).clean(batch, header)


@given(st.binary(max_size=40), st.integers(0, 4))
def test_any_bytes_are_records_or_refused(body: bytes, count: int) -> None:
    header = read_header(keyed_batch(0, [(b"a", b"1")]))._replace(record_count=count)
    try:
        spans = spans_in(body, header)
    except CorruptBatch:
        return
    assert len(spans) == count
