"""A log that was cut below its high watermark reads its producers back, piece by piece."""

import pytest

from broker.config import OWNER
from broker.partition.local_log import LocalLog
from quorum.core.effects import LogState, Read, ReadDone, Stored, Token, Truncate
from quorum.core.outbox import Outbox
from wire.batch import Record, assign, build_batch
from wire.transaction_markers import Marker, build_marker

NAME = "t-0"
COMMIT = Marker(7, 0, True, 0)


def data(offset: int) -> bytes:
    return build_batch(
        [Record(value=b"x")],
        timestamp_ms=1,
        base_offset=offset,
        producer_id=7,
        producer_epoch=0,
        base_sequence=offset,
        is_transactional=True,
    )


def marker(offset: int) -> bytes:
    return assign(build_marker(COMMIT, timestamp_ms=1), base_offset=offset, leader_epoch=0)


BATCHES = (data(0), marker(1), data(2), data(3), marker(4))


class Cut:
    """All five were committed, and nothing is remembered of the first transaction."""

    def __init__(self) -> None:
        self.outbox = Outbox(OWNER)
        self.log = LocalLog(LogState(log=NAME, end_offset=5), self.outbox)
        self.log.high_watermark = 5
        self.log.producers.is_whole = False

    def truncate(self, end_offset: int) -> Token:
        self.log.truncate(end_offset)
        (told,) = (each for each in self.outbox.take() if isinstance(each, Truncate))
        return told.token

    def stored(self, token: Token) -> Read:
        self.outbox.deliver(token, Stored(log=NAME, token=token), 0)
        return self.read()

    def read(self) -> Read:
        (read,) = (each for each in self.outbox.take() if isinstance(each, Read))
        return read

    def answer(self, read: Read, *batches: bytes) -> None:
        done = ReadDone(log=NAME, token=read.token, records=b"".join(batches))
        self.outbox.deliver(read.token, done, 0)


@pytest.fixture
def cut() -> Cut:
    return Cut()


@pytest.mark.parametrize(("end_offset", "stable"), [(4, 2), (3, 2), (2, 2), (1, 0)])
def test_a_transaction_is_open_again_where_its_marker_is_gone(
    cut: Cut, end_offset: int, stable: int
) -> None:
    read = cut.stored(cut.truncate(end_offset))
    for batch in BATCHES[:end_offset]:
        assert (cut.log.last_stable_offset, cut.log.is_rewriting) == (0, True)
        cut.answer(read, batch)
        read = cut.read()
    assert (read.start_offset, read.end_offset) == (end_offset, end_offset)
    cut.answer(read)
    assert (cut.log.last_stable_offset, cut.log.is_rewriting) == (stable, False)


def test_a_log_that_is_cut_again_meanwhile_forgets_what_it_read(cut: Cut) -> None:
    read = cut.stored(cut.truncate(4))
    token = cut.truncate(1)
    cut.answer(read, *BATCHES[:4])
    assert cut.outbox.take() == [], "it reads on when the second cut is done"
    assert cut.log.is_rewriting
    read = cut.stored(token)
    assert (read.start_offset, read.end_offset) == (0, 1)
    cut.answer(read, BATCHES[0])
    cut.answer(cut.read())
    assert (cut.log.last_stable_offset, cut.log.is_rewriting) == (0, False)


def test_what_is_deleted_meanwhile_is_not_waited_for(cut: Cut) -> None:
    read = cut.stored(cut.truncate(4))
    cut.log.start_offset = 2
    cut.answer(read)
    read = cut.read()
    assert read.start_offset == 2
    cut.answer(read, *BATCHES[2:4])
    cut.answer(cut.read())
    assert (cut.log.last_stable_offset, cut.log.is_rewriting) == (2, False)
