"""controller_mutation_rate at a controller: who is refused, who only waits, and until when."""

from typing import Any

from controller.config import ControllerConfig
from quorum.core.effects import Request
from tests.controller.clusters import CLUSTER_ID, heartbeat, registration
from tests.controller.fake_log import Quorum
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterEntryData,
    EntityData,
    OpData,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

NONE, EXCEEDED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
NEWEST: dict[type, int] = {
    CreateTopicsRequest: 6,
    CreatePartitionsRequest: 3,
    DeleteTopicsRequest: 5,
}


class Cluster(Quorum):
    """A controller with a broker, whose clients have quotas."""

    def start(self) -> "Cluster":
        self.add(
            ControllerConfig(
                node_id=3000,
                cluster_id=CLUSTER_ID,
                max_idle_interval_ms=0,
                quota_window_count=10,
            )
        )
        self.elect(3000)
        self.commit()
        answer: Any = self.answer(registration(1))
        self.answer(heartbeat(1, answer.broker_epoch, self.last_offset))
        return self

    def limit(self, client_id: str | None, rate: float | None) -> None:
        entry = AlterEntryData(
            entity=(EntityData(entity_type="client-id", entity_name=client_id),),
            ops=(OpData(key="controller_mutation_rate", value=rate or 0.0, remove=rate is None),),
        )
        answer: Any = self.answer(AlterClientQuotasRequest(entries=(entry,), validate_only=False))
        assert answer.entries[0].error_code is NONE, answer

    def ask_as(self, client_id: str, body: object, *, older: int = 0) -> Any:
        """Ask in the first version that knows the error, or `older` ones."""
        self.requests += 1
        kind = type(body)
        request = Request(
            token=self.requests,
            body=body,
            client_id=client_id,
            lacking=lacking(kind, NEWEST[kind] - older),
        )
        self.active.receive(request, self.now_ms)
        self.collect()
        self.commit()
        return self.replies.pop(self.requests)


def create(*partitions: int, prefix: str = "t") -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(name=f"{prefix}{place}", num_partitions=count, replication_factor=1)
            for place, count in enumerate(partitions)
        ),
        timeout_ms=5000,
    )


def errors(answer: Any) -> list[ErrorCode]:
    rows = getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
    return [row.error_code for row in rows]


def test_strict_request_is_refused_topic_by_topic_once_the_bucket_is_overdrawn() -> None:
    made = Cluster().start()
    made.limit("c", 2.0)  # a bucket of 20
    answer = made.ask_as("c", create(19, 5, 1))
    assert errors(answer) == [NONE, NONE, EXCEEDED]
    assert answer.throttle_time_ms == 2000  # 4 tokens below none
    assert set(made.active.image.topics.by_name) == {"t0", "t1"}
    made.pass_time(1999)
    assert errors(made.ask_as("c", create(1, prefix="u"))) == [EXCEEDED]
    made.pass_time(1)
    assert errors(made.ask_as("c", create(1, prefix="u"))) == [NONE]


def test_older_request_is_carried_out_and_its_client_waits() -> None:
    made = Cluster().start()
    made.limit("c", 2.0)
    assert made.ask_as("c", create(20), older=1).throttle_time_ms == 0
    answer = made.ask_as("c", create(3, prefix="u"), older=1)
    assert errors(answer) == [NONE]
    assert answer.throttle_time_ms == 1500


def test_partitions_and_deletions_take_from_the_same_bucket() -> None:
    made = Cluster().start()
    made.ask_as("other", create(3, 3))
    made.limit("c", 1.0)  # a bucket of 10
    more = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name="t0", count=11, assignments=None),),
        timeout_ms=1000,
        validate_only=False,
    )
    assert errors(made.ask_as("c", more)) == [NONE]  # 8 of 10
    gone = DeleteTopicsRequest(
        topics=(DeleteTopicState(name="t1"), DeleteTopicState(name="t0")), timeout_ms=1000
    )
    answer = made.ask_as("c", gone)
    assert errors(answer) == [NONE, EXCEEDED]  # 3 more; the others would be 11
    assert answer.throttle_time_ms == 1000
    more = replace(more, topics=(replace(more.topics[0], count=12),))
    assert errors(made.ask_as("c", more)) == [EXCEEDED]
    assert made.ask_as("c", more, older=1).throttle_time_ms == 2000


def test_refused_topics_take_nothing_and_others_are_not_held() -> None:
    made = Cluster().start()
    made.limit("c", 1.0)
    bad = replace(create(11).topics[0], replication_factor=9)
    answer = made.ask_as("c", replace(create(11), topics=(bad,)))
    assert errors(answer) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert errors(made.ask_as("c", create(11))) == [NONE]
    assert errors(made.ask_as("c", create(1, prefix="u"))) == [EXCEEDED]
    assert errors(made.ask_as("d", create(30, prefix="v"))) == [NONE]


def test_quota_that_is_changed_or_removed_holds_from_then_on() -> None:
    made = Cluster().start()
    made.limit(None, 1.0)
    made.ask_as("c", create(12))
    answer = made.ask_as("c", create(1, prefix="u"))
    assert (errors(answer), answer.throttle_time_ms) == ([EXCEEDED], 2000)
    made.limit(None, 4.0)
    assert made.ask_as("c", create(1, prefix="u")).throttle_time_ms == 500
    made.limit(None, None)
    assert errors(made.ask_as("c", create(1, prefix="u"))) == [NONE]
