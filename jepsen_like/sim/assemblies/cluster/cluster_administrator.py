"""An administrator of the simulated cluster, as a core: topics, settings, leaders, replicas.

One operation is under way at a time, asked of a broker, which forwards it, or of a controller. It
remembers what must be true of its topics (M-LOST): an operation that was acknowledged stays, one
that was refused has left no trace. What got no clear answer may yet happen: that topic is given up.
A name is used again only if no broker was ever asked about it: a broker repeats what it forwards,
and one of its requests may arrive when all is over.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from controller.metadata.image import ResourceType
from jepsen_like.sim.assemblies.cluster.client import TOPIC
from jepsen_like.sim.assemblies.cluster.one_at_a_time import UNCLEAR, Operator
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

__all__ = ["SETTING", "Admin", "AdminSettings", "Expected"]

SETTING = "retention.ms"  # one that changes nothing in a run
_TOPICS_MAX = 2
_DIRECT = "direct"  # topics that only controllers are asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    controllers: tuple[int, ...]
    brokers: tuple[int, ...]
    partitions: int  # of the topic that it moves about
    replication_factor: int
    reuses_names: bool  # of deleted topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must be true of a topic; no partitions: it does not exist."""

    partitions: int
    setting: str | None = None


@dataclass(slots=True, kw_only=True)
class Admin(Operator):
    settings: AdminSettings
    next_serial: Callable[[], int]
    expected: dict[str, Expected] = field(default_factory=dict)

    def _ask_somebody(
        self, body: object, concludes: Callable[[ErrorCode | None], None], name: str = ""
    ) -> None:
        """`concludes` is told the one error of the answer; None if the outcome is not clear.

        `name` is that of the topic.
        """
        settings = self.settings
        is_direct = name.startswith(_DIRECT) or self.random.random() < 0.5
        node = self.random.choice(settings.controllers if is_direct else settings.brokers)

        def answered(answer: object) -> None:
            error = _error_of(answer)
            # A broker repeats what it forwards, and may be refused what it has achieved before.
            is_clear = error is ErrorCode.NONE or (is_direct and error not in UNCLEAR)
            concludes(error if is_clear else None)

        self._ask(node, body, answered)

    # --- operations ---------------------------------------------------------------------

    def _operate(self) -> None:
        mine = sorted(name for name, known in self.expected.items() if known.partitions)
        operations: list[Callable[[], None]] = [self._elect] * 3 + [self._reassign] * 2
        if len(mine) < _TOPICS_MAX:
            operations += [self._create] * 2
        if mine:
            name = self.random.choice(mine)
            operations += [
                partial(self._delete, name),
                partial(self._delete, name),
                partial(self._extend, name),
                partial(self._configure, name),
            ]
        self.random.choice(operations)()

    def _create(self) -> None:
        name, count = self._name(), self.random.randint(1, 2)
        topic = CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=self.settings.replication_factor,
        )
        body = CreateTopicsRequest(topics=(topic,), timeout_ms=self.timeout_ms)
        self.expected[name] = Expected(partitions=0)
        self._ask_somebody(body, partial(self._concludes, name, Expected(partitions=count)), name)

    def _name(self) -> str:
        """A new one, or that of a topic that is gone for good."""
        free = [
            name
            for name, known in self.expected.items()
            if name.startswith(_DIRECT) and not known.partitions
        ]
        if free and self.settings.reuses_names:
            return self.random.choice(free)
        kind = _DIRECT if self.random.random() < 0.5 else "extra"
        return f"{kind}-{self.next_serial()}"

    def _delete(self, name: str) -> None:
        body = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=name),), timeout_ms=self.timeout_ms
        )
        self._ask_somebody(body, partial(self._concludes, name, Expected(partitions=0)), name)

    def _extend(self, name: str) -> None:
        known = self.expected[name]
        count = known.partitions + 1
        topic = CreatePartitionsTopic(name=name, count=count)
        body = CreatePartitionsRequest(topics=(topic,), timeout_ms=self.timeout_ms)
        self._ask_somebody(
            body, partial(self._concludes, name, replace(known, partitions=count)), name
        )

    def _configure(self, name: str) -> None:
        value = str(self.next_serial())
        resource = AlterConfigsResource(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            configs=(AlterableConfig(name=SETTING, config_operation=0, value=value),),
        )
        known = replace(self.expected[name], setting=value)
        body = IncrementalAlterConfigsRequest(resources=(resource,))
        self._ask_somebody(body, partial(self._concludes, name, known), name)

    def _concludes(self, name: str, wanted: Expected, error: ErrorCode | None) -> None:
        if error is None:
            del self.expected[name]
        elif error is ErrorCode.NONE:
            self.expected[name] = wanted

    def _elect(self) -> None:
        """Let the preferred replicas lead, wherever they can."""
        self._ask_somebody(ElectLeadersRequest(timeout_ms=self.timeout_ms), _ignore)

    def _reassign(self) -> None:
        """Other replicas for a partition of the client's topic, or the same in another order."""
        settings = self.settings
        replicas = tuple(self.random.sample(settings.brokers, settings.replication_factor))
        index = self.random.randrange(settings.partitions)
        partition = ReassignablePartition(
            partition_index=index, replicas=None if self.random.random() < 0.1 else replicas
        )
        body = AlterPartitionReassignmentsRequest(
            timeout_ms=self.timeout_ms,
            topics=(ReassignableTopic(name=TOPIC, partitions=(partition,)),),
        )
        self._ask_somebody(body, _ignore)


def _error_of(body: object) -> ErrorCode:
    match body:
        case CreateTopicsResponse(topics=(topic, *_)):
            return topic.error_code
        case DeleteTopicsResponse(responses=(deleted, *_)):
            return deleted.error_code
        case CreatePartitionsResponse(results=(extended, *_)):
            return extended.error_code
        case IncrementalAlterConfigsResponse(responses=(altered, *_)):
            return altered.error_code
        case _:
            return ErrorCode.REQUEST_TIMED_OUT


def _ignore(_error: ErrorCode | None) -> None:
    """It may have moved a leader or replicas: the invariants see to that."""
