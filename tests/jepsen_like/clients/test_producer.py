"""A producer: what it repeats, and when it says that nothing was appended."""

from collections.abc import Sequence
from random import Random

import pytest

from jepsen_like.clients.producer import Producer
from jepsen_like.clients.steps import Ask, Leaders
from jepsen_like.histories.history import Kind
from tests.jepsen_like.clients.played import Played, led, produced
from wire.batch import read_header
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataResponse
from wire.messages.producing import ProduceRequest


class Script:
    """Brokers that answer produce requests in this order; the last answer again and again."""

    def __init__(self, *answers: object, idempotent: bool = True, **metadata: object) -> None:
        self.left = list(answers)
        self.played = Played(self.answer, **metadata)  # type: ignore[arg-type]
        leaders = Leaders((1, 2), Random(1), timeout_ms=100, backoff_ms=10)
        self.producer = Producer(
            leaders=leaders,
            clock=self.played.clock,
            is_idempotent=idempotent,
            timeout_ms=1_000,
            request_timeout_ms=300,
        )

    def answer(self, _asked: Ask) -> object:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def send(self, value: bytes = b"7") -> tuple[Kind, object, str | None]:
        done = self.played.play(self.producer.send("a-0", value))
        return done.kind, done.value, done.error

    def sequences(self) -> Sequence[int]:
        found = []
        for asked in self.played.asked:
            assert isinstance(asked.body, ProduceRequest), asked
            records = asked.body.topic_data[0].partition_data[0].records
            assert records is not None
            found.append(read_header(records).base_sequence)
        return found


def test_acknowledged_record_has_its_offset_and_the_next_one_the_next_sequence() -> None:
    script = Script(produced(offset=5), produced(offset=6))
    assert script.send() == (Kind.OK, 5, None)
    assert script.send() == (Kind.OK, 6, None)
    assert script.sequences() == [0, 1]


def test_idempotent_producer_repeats_under_the_same_sequence_until_it_is_acknowledged() -> None:
    lost = produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    script = Script(None, lost, produced(offset=5))
    assert script.send() == (Kind.OK, 5, None)
    assert script.sequences() == [0, 0, 0]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, Kind.INFO),
        (produced(ErrorCode.NOT_LEADER_OR_FOLLOWER), Kind.INFO),
        (produced(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), Kind.INFO),
        # The replica was moved away while it waited for the others.
        (produced(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), Kind.INFO),
        (produced(ErrorCode.NOT_ENOUGH_REPLICAS), Kind.FAIL),
    ],
)
@pytest.mark.parametrize("idempotent", [False, True])
def test_only_what_was_refused_before_it_was_appended_is_a_failure(
    answer: object, kind: Kind, *, idempotent: bool
) -> None:
    assert Script(answer, idempotent=idempotent).send()[0] is kind


def test_doubt_stays_whatever_is_said_later() -> None:
    script = Script(None, produced(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert script.send() == (Kind.INFO, None, "no answer")


def test_producer_that_is_not_idempotent_sends_once() -> None:
    script = Script(None, produced(offset=5), idempotent=False)
    assert script.send()[0] is Kind.INFO
    assert script.sequences() == [-1]


def test_lost_sequence_is_not_repeated() -> None:
    script = Script(produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    assert script.send()[0] is Kind.INFO
    assert script.sequences() == [0]


def test_without_a_leader_nothing_is_sent() -> None:
    script = Script(produced(offset=5), metadata=lambda: led(-1, 1))
    assert script.send() == (Kind.FAIL, None, "no leader is known")
    assert script.sequences() == []


def test_old_news_of_a_leader_is_not_believed() -> None:
    news: list[MetadataResponse] = [led(1, 5), led(2, 4), led(2, 6)]
    script = Script(
        produced(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        produced(offset=5),
        metadata=lambda: news.pop(0) if len(news) > 1 else news[0],
    )
    assert script.send() == (Kind.OK, 5, None)
    assert [asked.node for asked in script.played.asked] == [1, 2]
