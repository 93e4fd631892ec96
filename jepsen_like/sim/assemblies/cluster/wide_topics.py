"""Topics of so many partitions that a controller decides over columns, while brokers fail.

One at a time: created with one broker or two among the replicas of all its partitions, so that
the failure of one concerns them all, and deleted later. Nobody writes to them. Controllers alone
are asked, and a name is used once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.decisions.failover import COLUMNS_FROM
from jepsen_like.sim.assemblies.cluster.client import WIDE
from jepsen_like.sim.assemblies.cluster.one_at_a_time import UNCLEAR, Operator
from wire.errors import ErrorCode
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

__all__ = ["WideTopics"]

_PAIR_SHARE = 0.7  # else the second replicas are spread
_DELETED_SHARE = 0.1  # else it stays, until the next time at least
_PARTITIONS_MAX = COLUMNS_FROM * 3 // 2


@dataclass(slots=True, kw_only=True)
class WideTopics(Operator):
    controllers: tuple[int, ...]
    brokers: tuple[int, ...]
    next_serial: Callable[[], int]
    fired: Callable[[str], None]
    expected: dict[str, int] = field(default_factory=dict)  # partitions by name: see `end`
    _present: str = ""

    def _operate(self) -> None:
        if not self._present:
            self._create(f"{WIDE}-{self.next_serial()}")
        elif self.random.random() < _DELETED_SHARE:
            self._delete(self._present)

    def _create(self, name: str) -> None:
        count = self.random.randint(COLUMNS_FROM, _PARTITIONS_MAX)
        topic = CreatableTopic(name=name, assignments=self._assignments(count))
        body = CreateTopicsRequest(topics=(topic,), timeout_ms=self.timeout_ms)

        def created(answer: object) -> None:
            known = (
                answer.topics[0].error_code if isinstance(answer, CreateTopicsResponse) else None
            )
            if known is ErrorCode.NONE:
                self.fired("wide_created")
                self.expected[name] = count
            elif known is not None and known not in UNCLEAR:
                self.expected[name] = 0
            self._present = name if self.expected.get(name, count) else ""

        self._ask(self.random.choice(self.controllers), body, created)

    def _assignments(self, count: int) -> tuple[CreatableReplicaAssignment, ...]:
        everywhere = self.random.choice(self.brokers)
        others = [broker for broker in self.brokers if broker != everywhere]
        if self.random.random() < _PAIR_SHARE:
            others = [self.random.choice(others)]
        assigned: list[CreatableReplicaAssignment] = []
        for index in range(count):
            pair = [everywhere, self.random.choice(others)]
            self.random.shuffle(pair)
            each = CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(pair))
            assigned.append(each)
        return tuple(assigned)

    def _delete(self, name: str) -> None:
        body = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=name),), timeout_ms=self.timeout_ms
        )
        before = self.expected.pop(name, None)

        def deleted(answer: object) -> None:
            told = answer.responses[0] if isinstance(answer, DeleteTopicsResponse) else None
            known = None if told is None else told.error_code
            if known is ErrorCode.NONE or known is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if known is ErrorCode.NONE:
                    self.fired("wide_deleted")
                    self.expected[name] = 0
                self._present = ""
            elif known is not None and known not in UNCLEAR and before is not None:
                self.expected[name] = before

        self._ask(self.random.choice(self.controllers), body, deleted)
