"""An administrator of the simulated cluster: topics, settings, leaders, replicas.

Each operation is asked of a broker, which forwards it, or of a controller. It remembers what must
be true of its topics (M-LOST): an operation that was acknowledged stays, one that was refused has
left no trace. What got no clear answer may yet happen: that topic is given up. A name is used
again only if no broker was ever asked about it: a broker repeats what it forwards, and one of its
requests may arrive when all is over.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from jepsen_like.clients.admin_client import creation, deletion, reassignment, setting
from jepsen_like.sim.assemblies.cluster.clients.operators import (
    UNCLEAR,
    Operation,
    Operator,
    error_in,
)
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC
from jepsen_like.sim.world.client_releases import NEWEST
from jepsen_like.sim.world.world import World
from jepsen_like.workloads.workload import NewTopic
from wire.errors import ErrorCode
from wire.messages.partitions import ElectLeadersRequest
from wire.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic

__all__ = ["SETTING", "Admin", "Expected"]

SETTING = "retention.ms"  # one that changes nothing in a run
_TOPICS_MAX = 2
_DIRECT = "direct"  # topics that only controllers are asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must be true of a topic; no partitions: it does not exist."""

    partitions: int
    setting: str | None = None


class Admin(Operator):
    stream = "admin"

    def __init__(self, world: World, options: ClusterOptions) -> None:
        super().__init__(world, options, options.admin_interval_ms)
        self.expected: dict[str, Expected] = {}
        # Old versions of Produce and Fetch know but names.
        is_newest = options.operations.client_release is NEWEST
        self._reuses_names = is_newest and not options.quorum.codecs

    def _ask_somebody(self, body: object, name: str = "") -> Operation[ErrorCode | None]:
        """The one error of the answer; None if the outcome is not clear. `name`: of the topic."""
        options = self._options
        is_direct = name.startswith(_DIRECT) or self._random.random() < 0.5
        node = self._random.choice(options.controllers if is_direct else options.brokers)
        error = error_in((yield from self._ask(node, body)))
        # A broker repeats what it forwards, and may be refused what it has achieved before.
        is_clear = error is ErrorCode.NONE or (is_direct and error not in UNCLEAR)
        return error if is_clear else None

    def _change(self, name: str, body: object, wanted: Expected) -> Operation[None]:
        error = yield from self._ask_somebody(body, name)
        if error is None:
            del self.expected[name]
        elif error is ErrorCode.NONE:
            self.expected[name] = wanted

    # --- operations ---------------------------------------------------------------------

    def _operate(self) -> Operation[None]:
        mine = sorted(name for name, known in self.expected.items() if known.partitions)
        operations: list[Callable[[], Operation[object]]] = [self._elect] * 3 + [self._reassign] * 2
        if len(mine) < _TOPICS_MAX:
            operations += [self._create] * 2
        if mine:
            name = self._random.choice(mine)
            delete = partial(self._delete, name)
            operations += [delete, delete, partial(self._extend, name)]
            operations += [partial(self._configure, name)]
        yield from self._random.choice(operations)()

    def _create(self) -> Operation[None]:
        name, count = self._name(), self._random.randint(1, 2)
        topic = NewTopic(
            name=name, partitions=count, replication_factor=self._options.replication_factor
        )
        self.expected[name] = Expected(partitions=0)
        return self._change(name, creation(topic, self.timeout_ms), Expected(partitions=count))

    def _name(self) -> str:
        """A new one, or that of a topic that is gone for good."""
        free = [
            name
            for name, known in self.expected.items()
            if name.startswith(_DIRECT) and not known.partitions
        ]
        if free and self._reuses_names:
            return self._random.choice(free)
        kind = _DIRECT if self._random.random() < 0.5 else "extra"
        return f"{kind}-{self._next_serial()}"

    def _delete(self, name: str) -> Operation[None]:
        return self._change(name, deletion(name, self.timeout_ms), Expected(partitions=0))

    def _extend(self, name: str) -> Operation[None]:
        known = self.expected[name]
        count = known.partitions + 1
        topic = CreatePartitionsTopic(name=name, count=count)
        body = CreatePartitionsRequest(topics=(topic,), timeout_ms=self.timeout_ms)
        return self._change(name, body, replace(known, partitions=count))

    def _configure(self, name: str) -> Operation[None]:
        value = str(self._next_serial())
        known = replace(self.expected[name], setting=value)
        return self._change(name, setting(name, SETTING, value), known)

    # What these move is seen by the invariants, whatever is answered.

    def _elect(self) -> Operation[object]:
        """Let the preferred replicas lead, wherever they can."""
        return self._ask_somebody(ElectLeadersRequest(timeout_ms=self.timeout_ms))

    def _reassign(self) -> Operation[object]:
        """Other replicas for a partition of the client's topic, or the same in another order."""
        options = self._options
        replicas = tuple(self._random.sample(options.brokers, options.replication_factor))
        index = self._random.randrange(options.partitions)
        wanted = None if self._random.random() < 0.1 else replicas
        return self._ask_somebody(reassignment(f"{TOPIC}-{index}", wanted, self.timeout_ms))
