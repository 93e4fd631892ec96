"""Settings of the client's topic are changed while a cluster runs: those that change something.

How long records are kept and how many, how many replicas must be in sync, how large a batch may be,
and whether a partition may be led from outside the ISR. What that allows and forbids is judged in
`jepsen_like.sim.assemblies.cluster.setting_invariants` and where partitions are.
"""

from collections.abc import Callable
from dataclasses import dataclass

from controller.metadata.image import ResourceType
from jepsen_like.sim.assemblies.cluster.client import TOPIC
from jepsen_like.sim.assemblies.cluster.one_at_a_time import Operator
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["SettingChanges"]

_SMALL_BATCH = 80  # bytes: one record of the client fits, three do not
_LARGE_BATCH = 1_048_588


@dataclass(slots=True, kw_only=True)
class SettingChanges(Operator):
    controllers: tuple[int, ...]
    unit_ms: int
    asks_min_isr: Callable[[int], None]  # is told which min.insync.replicas may come to hold
    fired: Callable[[str], None]

    def _operate(self) -> None:
        name, value = self._drawn()
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=TOPIC, configs=(config,)
        )
        body = IncrementalAlterConfigsRequest(resources=(resource,))

        def answered(answer: object) -> None:
            responses = (
                answer.responses if isinstance(answer, IncrementalAlterConfigsResponse) else ()
            )
            if any(each.error_code is ErrorCode.NONE for each in responses):
                self.fired("setting_changed")

        self._ask(self.random.choice(self.controllers), body, answered)

    def _drawn(self) -> tuple[str, str]:
        draw = self.random.choice
        name = draw(("bytes", "bytes", "age", "age", "min-isr", "size", "size", "unclean"))
        match name:
            case "bytes":
                return "retention.bytes", str(draw((4_000, 10_000, -1)))
            case "age":
                return "retention.ms", str(draw((10 * self.unit_ms, 40 * self.unit_ms, -1)))
            case "min-isr":
                value = draw((1, 2))
                self.asks_min_isr(value)
                return "min.insync.replicas", str(value)
            case "size":
                return "max.message.bytes", str(draw((_SMALL_BATCH, _LARGE_BATCH)))
            case _:
                is_allowed = self.random.random() < 0.2
                return "unclean.leader.election.enable", "true" if is_allowed else "false"
