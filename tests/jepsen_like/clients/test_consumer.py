"""A consumer: what it reads, where it goes on, and when it has seen all."""

from random import Random

from jepsen_like.clients.consumer import Consumer
from jepsen_like.clients.steps import Ask, Leaders
from jepsen_like.histories.history import Kind
from jepsen_like.workloads.workload import Done
from tests.jepsen_like.clients.played import Played, fetched
from wire.errors import ErrorCode
from wire.messages.fetching import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class Script:
    def __init__(self, *answers: object, end: int = 0) -> None:
        self.left = list(answers)
        self.end = end
        self.played = Played(self.answer)
        leaders = Leaders((1,), Random(1), timeout_ms=100, backoff_ms=10)
        self.consumer = Consumer(leaders=leaders, request_timeout_ms=300, wait_ms=50)

    def answer(self, asked: Ask) -> object:
        if isinstance(asked.body, ListOffsetsRequest):
            told = ListOffsetsPartitionResponse(partition_index=0, offset=self.end)
            return ListOffsetsResponse(
                topics=(ListOffsetsTopicResponse(name="a", partitions=(told,)),)
            )
        return self.left.pop(0)

    def poll(self, *, to_the_end: bool = False) -> Done:
        return self.played.play(self.consumer.poll(until_caught_up=to_the_end))

    @property
    def last(self) -> FetchPartition:
        body = self.played.asked[-1].body
        assert isinstance(body, FetchRequest), body
        return body.topics[0].partitions[0]


def test_reads_on_where_it_was() -> None:
    script = Script(fetched((b"5", b"6")), fetched((b"7",), base_offset=2))
    script.consumer.assign(["a-0"], {"a-0": 0})
    assert script.poll().value == [["poll", {"a-0": [[0, 5], [1, 6]]}]]
    assert script.poll().value == [["poll", {"a-0": [[2, 7]]}]]
    assert (script.last.fetch_offset, script.last.current_leader_epoch) == (2, 1)


def test_batch_comes_whole_and_what_is_read_is_not_read_again() -> None:
    script = Script(fetched((b"5", b"6")), fetched((b"5", b"6", b"7")))
    script.consumer.assign(["a-0"], {"a-0": 0})
    script.poll()
    assert script.poll().value == [["poll", {"a-0": [[2, 7]]}]]


def test_new_key_begins_where_the_log_ends_and_a_kept_one_goes_on() -> None:
    script = Script(fetched((b"7",), base_offset=9), fetched(), end=9)
    script.consumer.assign(["a-0"])
    assert script.poll().value == [["poll", {"a-0": [[9, 7]]}]]
    script.consumer.assign(["a-0"])
    script.poll()
    assert script.last.fetch_offset == 10


def test_leader_is_told_the_epoch_of_the_last_record() -> None:
    script = Script(fetched((b"5",), epoch=3), fetched(), fetched())
    script.consumer.assign(["a-0"], {"a-0": 0})
    script.poll()
    script.poll()
    assert script.last.last_fetched_epoch == 3
    script.consumer.assign(["a-0"], {"a-0": 0})
    script.poll()
    assert script.last.last_fetched_epoch == -1


def test_log_that_has_parted_from_what_was_read_is_an_error() -> None:
    parted = fetched(diverging_epoch=EpochEndOffset(epoch=2, end_offset=1))
    script = Script(fetched((b"5", b"6")), parted)
    script.consumer.assign(["a-0"], {"a-0": 0})
    script.poll()
    done = script.poll()
    assert (done.kind, done.error) == (Kind.FAIL, "a-0: the log parted at 1")


def test_silence_and_refusals_fail_the_poll() -> None:
    script = Script(None, fetched(error=ErrorCode.FENCED_LEADER_EPOCH), fetched((b"5",)))
    script.consumer.assign(["a-0"], {"a-0": 0})
    assert script.poll().error == "a-0: no answer"
    assert script.poll().error == "a-0: FENCED_LEADER_EPOCH"
    assert script.poll().kind is Kind.OK


def test_caught_up_is_who_has_read_all_that_the_leader_exposes() -> None:
    script = Script(fetched(high_watermark=1), fetched((b"5",)), fetched(high_watermark=1))
    script.consumer.assign(["a-0"], {"a-0": 0})
    assert script.poll(to_the_end=True).extra == {"caught_up": False}
    assert script.poll(to_the_end=True).extra == {}, "more may come"
    assert script.poll(to_the_end=True).extra == {"caught_up": True}
