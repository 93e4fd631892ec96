"""The newest batches in memory: the same answers as from the disk, or none."""

from itertools import pairwise
from random import Random

import pytest

from quorum.log import tail as module
from quorum.log.tail import Tail
from wire.batch import assign, data_batch, headers


def batch(start_offset: int, count: int = 1) -> bytes:
    return assign(
        data_batch([b"v%d" % start_offset] * count, timestamp_ms=0),
        base_offset=start_offset,
        leader_epoch=1,
    )


def read(
    tail: Tail, start: int, end: int, bytes_max: int = 1 << 20
) -> list[tuple[int, int]] | None:
    found = tail.read(start_offset=start, end_offset=end, bytes_max=bytes_max)
    if found is None:
        return None
    return [(header.base_offset, header.next_offset) for _, header in headers(found)]


@pytest.fixture
def tail() -> Tail:
    """Runs of one, two and one batches: [10, 12), [12, 13) [13, 15), [15, 16)."""
    made = Tail()
    made.append(10, 12, batch(10, 2))
    made.append(12, 15, batch(12) + batch(13, 2))
    made.append(15, 16, batch(15))
    return made


def test_runs_are_joined(tail: Tail) -> None:
    assert read(tail, 10, 16) == [(10, 12), (12, 13), (13, 15), (15, 16)]


def test_what_came_before_is_not_here(tail: Tail) -> None:
    assert read(tail, 9, 16) is None


def test_read_begins_with_the_batch_that_holds_the_offset(tail: Tail) -> None:
    assert read(tail, 11, 12) == [(10, 12)]
    assert read(tail, 14, 15) == [(13, 15)]


def test_nothing_beyond_the_end_is_shown(tail: Tail) -> None:
    assert read(tail, 10, 13) == [(10, 12), (12, 13)]
    assert read(tail, 10, 14) == [(10, 12), (12, 13)], "14 is within a batch"


def test_at_least_one_batch_and_no_more_than_the_limit(tail: Tail) -> None:
    assert read(tail, 10, 16, bytes_max=1) == [(10, 12)]
    two = len(batch(10, 2) + batch(12))
    assert read(tail, 10, 16, bytes_max=two) == [(10, 12), (12, 13)]
    assert read(tail, 10, 16, bytes_max=two - 1) == [(10, 12)]


def test_last_whole_batch_below_an_offset(tail: Tail) -> None:
    ends = {offset: tail.whole_batches(offset) for offset in range(10, 17)}
    assert ends == {10: 10, 11: 10, 12: 12, 13: 13, 14: 13, 15: 15, 16: 16}
    assert tail.whole_batches(9) == 9, "its batch is not here"


def test_truncation_drops_everything(tail: Tail) -> None:
    tail.clear()
    assert read(tail, 15, 16) is None
    tail.append(15, 16, batch(15))
    assert read(tail, 15, 16) == [(15, 16)]


def test_those_who_ask_for_the_same_get_the_same_bytes(tail: Tail) -> None:
    asked = {"start_offset": 10, "end_offset": 16, "bytes_max": 1 << 20}
    found = tail.read(**asked)
    assert tail.read(**asked) is found
    assert read(tail, 10, 15) == [(10, 12), (12, 13), (13, 15)]
    assert tail.read(**asked) == found


def test_what_was_joined_is_not_shown_after_a_truncation(tail: Tail) -> None:
    asked = {"start_offset": 10, "end_offset": 16, "bytes_max": 1 << 20}
    assert tail.read(**asked) is not None
    tail.clear()
    assert tail.read(**asked) is None
    assert read(tail, 10, 16) is None
    tail.append(10, 12, batch(10, 2))
    tail.append(12, 16, batch(12, 4))
    assert read(tail, 10, 16) == [(10, 12), (12, 16)]


def test_eight_mebibytes_are_kept_at_most() -> None:
    content = data_batch([bytes(1 << 20)], timestamp_ms=0)
    tail, sizes = Tail(), []
    for end in range(1, 40):
        run = assign(content, base_offset=end - 1, leader_epoch=1)
        tail.append(end - 1, end, run)
        kept = [at for at in range(end) if tail.read(start_offset=at, end_offset=end, bytes_max=1)]
        assert kept[-1] == end - 1
        sizes.append(len(kept) * len(run))
    assert max(sizes) <= 8 << 20
    assert min(sizes[10:]) > 4 << 20, "it is seldom that so much is forgotten at once"
    grown = sum(before < after for before, after in pairwise(sizes[10:]))
    assert grown > len(sizes[10:]) / 2, "it is not done with every append"


def test_oldest_runs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAIL_BYTES_MAX", 10 * len(batch(0)))
    tail = Tail()
    for offset in range(1000):
        tail.append(offset, offset + 1, batch(offset))
        held = [at for at in range(offset + 1) if read(tail, at, offset + 1)]
        assert held == list(range(held[0], offset + 1))
        assert len(held) <= 10


def test_truncation_makes_room_for_as_much_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAIL_BYTES_MAX", 10 * len(batch(0)))
    tail = Tail()
    for _ in range(2):
        tail.clear()
        for offset in range(10):
            tail.append(offset, offset + 1, batch(offset))
        assert read(tail, 0, 10) == [(offset, offset + 1) for offset in range(10)]


@pytest.mark.parametrize("seed", range(20))
def test_reading_on_and_on_gives_every_batch_once(seed: int) -> None:
    random = Random(seed)
    tail, every, end = Tail(), [], 0
    for _ in range(30):
        start, run = end, b""
        for _ in range(random.randrange(1, 4)):
            count = random.randrange(1, 4)
            run += batch(end, count)
            every.append((end, end + count))
            end += count
        tail.append(start, end, run)
    found: list[tuple[int, int]] = []
    while not found or found[-1][1] < end:
        at = found[-1][1] if found else 0
        piece = read(tail, at, end, bytes_max=random.randrange(400))
        assert piece, f"nothing at {at} of {end}, seed {seed}"
        found += piece
    assert found == every
