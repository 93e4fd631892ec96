"""Old records of the client's topic are deleted (KIP-107): by the leader, up to some offset.

Up to where its log lets go, or up to an offset: of what was read, or a little beyond what may be
asked for. The judge is told before, and what came of it: see `Deletable`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jepsen_like.sim.assemblies.cluster.client import TOPIC, Key
from jepsen_like.sim.assemblies.cluster.deletable import ALL, Deletable
from jepsen_like.sim.assemblies.cluster.one_at_a_time import Operator
from wire.errors import ErrorCode
from wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

__all__ = ["RecordDeletion"]

_BEYOND_MAX = 10
_REFUSED = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@dataclass(slots=True, kw_only=True)
class RecordDeletion(Operator):
    led: Callable[[], dict[Key, tuple[int, int]]]  # leader and position of the reader
    deletable: Callable[[Key], Deletable]
    fired: Callable[[str], None]

    def _operate(self) -> None:
        led = self.led()
        if not led:
            return
        key = self.random.choice(list(led))
        leader, position = led[key]
        offset = self._offset(position)
        deletable = self.deletable(key)
        deletable.asked(offset)
        each = DeleteRecordsPartition(partition_index=key[1], offset=offset)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=(each,))

        def answered(answer: object) -> None:
            if not isinstance(answer, DeleteRecordsResponse):
                return  # it may yet happen
            told = answer.topics[0].partitions[0]
            if told.error_code is ErrorCode.NONE:
                self.fired("records_deleted")
                deletable.acknowledged(offset, told.low_watermark)
            elif told.error_code in _REFUSED:
                deletable.refused(offset)

        body = DeleteRecordsRequest(topics=(topic,), timeout_ms=self.timeout_ms // 2)
        self._ask(leader, body, answered)

    def _offset(self, position: int) -> int:
        return self.random.choice(
            (
                ALL,
                position,
                self.random.randint(0, position),
                self.random.randint(0, position),
                position + self.random.randint(1, _BEYOND_MAX),
            )
        )
