"""What waits for a sure leader: answered when that is known, and what was committed is applied."""

from dataclasses import dataclass
from typing import cast

from quorum.core.effects import Request
from quorum.core.parking import PARKED_MAX
from quorum.node.confirmed_reads import ConfirmedReads, ConfirmingLog


@dataclass
class Log:
    high_watermark: int = 10
    questions: int = 0
    confirmed_through: int = 0

    def confirm_leadership(self, now_ms: int) -> int:
        self.questions += 1
        return self.questions


def waiting(count: int = 1) -> tuple[ConfirmedReads, Log, list[Request]]:
    log = Log()
    reads = ConfirmedReads(cast(ConfirmingLog, log))
    requests = [Request(token=number, body=None) for number in range(count)]
    for request in requests:
        assert reads.park(request, now_ms=100, timeout_ms=50)
    return reads, log, requests


def test_read_waits_for_the_answer_to_its_own_question() -> None:
    reads, log, requests = waiting(2)
    assert reads.take_ready(applied_offset=10) == []
    log.confirmed_through = 1
    assert reads.take_ready(applied_offset=10) == requests[:1]
    log.confirmed_through = 2
    assert reads.take_ready(applied_offset=10) == requests[1:]


def test_read_waits_until_what_was_committed_when_it_came_is_applied() -> None:
    reads, log, requests = waiting()
    log.confirmed_through, log.high_watermark = 1, 20
    assert reads.take_ready(applied_offset=9) == []
    assert reads.take_ready(applied_offset=10) == requests


def test_ready_read_is_due_at_once_and_the_others_when_their_time_is_up() -> None:
    reads, log, requests = waiting()
    assert reads.deadline_ms(applied_offset=10) == 150
    log.confirmed_through = 1
    assert reads.deadline_ms(applied_offset=9) == 150
    assert reads.deadline_ms(applied_offset=10) == 0
    assert reads.take_expired(149) == []
    assert reads.take_expired(150) == requests
    assert reads.deadline_ms(applied_offset=10) is None


def test_who_resigns_gives_back_all_that_wait() -> None:
    reads, _, requests = waiting(3)
    assert reads.clear() == requests
    assert reads.clear() == []


def test_as_many_may_wait_as_may_be_parked() -> None:
    reads, _, _ = waiting(PARKED_MAX)
    assert not reads.park(Request(token=-1, body=None), now_ms=0, timeout_ms=1)
