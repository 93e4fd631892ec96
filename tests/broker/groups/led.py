"""A partition of `__consumer_offsets` that broker 1 leads, and its coordinator, without a broker.

Nothing is committed before `commit`, as the other replica in sync is slow. The log is kept, so that
the next coordinator can be begun with it.
"""

from dataclasses import dataclass, field
from uuid import UUID

from broker.config import OWNER, GroupConfig
from broker.coordination.coordinators import KeyTimers
from broker.groups.coordinator import Coordinator, Surroundings
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.partition.local_log import LocalLog
from broker.verifying import Concluded, TransactionAsked
from broker.waiting import Deadlines
from controller.metadata.partitions import PartitionState
from quorum.core.effects import Append, Read, ReadDone, Reply
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from quorum.core.producers import ProducerEntry
from tests.broker.partitions import partition_of
from wire.batch import headers, read_header
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from wire.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from wire.transaction_markers import Marker, build_marker

__all__ = ["PLACE", "TOPIC_ID", "Asking", "Led", "transactional_request"]

NAME = f"{OFFSETS_TOPIC}-0"
PLACE = (OFFSETS_TOPIC, 0)
TOPIC_ID = UUID(int=7)
_STATE = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)


@dataclass
class Asking:
    """A verifier that waits for the test."""

    asked: list[TransactionAsked] = field(default_factory=list)
    _waiting: list[Concluded] = field(default_factory=list)

    def verify(self, asked: TransactionAsked, concluded: Concluded, now_ms: int) -> None:
        self.asked.append(asked)
        self._waiting.append(concluded)

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self._waiting.pop(0)({PLACE: error}, 0)


class NoTopics:
    version = 0
    snapshot = None

    def metadata(self, name: str) -> None:
        return None

    def name_of(self, topic_id: UUID) -> None:
        return None

    def matching(self, pattern: str, now_ms: int) -> tuple[str, ...]:
        return ()


class Led:
    def __init__(
        self,
        log: bytes = b"",
        *,
        producers: tuple[ProducerEntry, ...] = (),
        high_watermark: int | None = None,
    ) -> None:
        self.log = log
        self.answers: list[object] = []  # of the coordinator, and those that are given back
        self.verifier = Asking()
        self._outbox = Outbox(OWNER)
        self._producers = producers
        self.partition = partition_of(OFFSETS_TOPIC, 0, _STATE)
        end = max((header.next_offset for _, header in headers(log)), default=0)
        state = LogState(log=NAME, end_offset=end, producers=producers)
        local = LocalLog(state, self._outbox)
        self.partition.opened(local, 0)
        local.high_watermark = end if high_watermark is None else high_watermark
        shared = Surroundings(
            config=GroupConfig(retention_ms=1000),
            deadlines=Deadlines(100),
            outbox=self._outbox,
            topic_id_of=lambda name: TOPIC_ID if name == "t" else None,
            topic_with=lambda name, index: TOPIC_ID if name == "t" else None,
            topics=NoTopics(),
            settings=lambda _group_id: {},
            verifier=self.verifier,
            timers=KeyTimers(),
        )
        self.coordinator = Coordinator(self.partition, shared)
        self.coordinator.progressed(0)
        if high_watermark is None:
            self.settle()

    def settle(self) -> None:
        """Carry out what was asked of the storage, and collect the answers."""
        for effect in self._outbox.take():
            match effect:
                case Append():
                    self.log += effect.records
                case Reply():
                    self.answers.append(effect.body)
                case Read():
                    done = ReadDone(token=effect.token, log=NAME, records=self._read(effect))
                    self._outbox.deliver(effect.token, done, 0)
                case _:
                    pass

    def _read(self, read: Read) -> bytes:
        wanted = [
            self.log[position : position + header.size_bytes]
            for position, header in headers(self.log)
            if read.start_offset <= header.base_offset < read.end_offset
        ]
        return b"".join(wanted)

    def commit(self) -> None:
        """The other replica has it all."""
        self.partition.open_log.high_watermark = self.partition.open_log.end_offset
        self.coordinator.progressed(0)
        self.settle()

    def next(self) -> "Led":
        """The coordinator that is elected next, here."""
        self.settle()
        return Led(self.log)

    # --- requests ---------------------------------------------------------------------------

    def ask_in_transaction(self, request: TxnOffsetCommitRequest) -> None:
        self.coordinator.offset_requests.commit_in_transaction(
            request, adds=True, answer=self.answers.append, now_ms=0
        )
        self.settle()

    def commit_in_transaction(self, offset: int, *, producer_id: int = 1, epoch: int = 0) -> None:
        """It is verified at once."""
        asked = len(self.verifier.asked)
        self.ask_in_transaction(
            transactional_request(offset, producer_id=producer_id, producer_epoch=epoch)
        )
        if len(self.verifier.asked) > asked:
            self.verifier.answer()
        self.settle()

    def end(self, *, producer_id: int = 1, is_commit: bool = True) -> None:
        marker = Marker(producer_id, 0, is_commit, 0)
        batch = build_marker(marker, timestamp_ms=0)
        self.partition.append(batch, read_header(batch))
        self.coordinator.transaction_ended(marker)
        self.settle()

    def commit_offset(self, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
        request = OffsetCommitRequest(group_id="g", topics=topics)
        self.coordinator.offset_requests.commit(0, request, lacking(OffsetCommitRequest, 9), 0)
        self.settle()

    def fetched(self, *, require_stable: bool = False) -> int | ErrorCode | None:
        """The group's offset; None while it is waited for."""
        answers: list[OffsetFetchResponseGroup] = []
        topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
        self.coordinator.offset_requests.fetch(
            OffsetFetchRequestGroup(group_id="g", topics=topics),
            lacking=frozenset(),
            require_stable=require_stable,
            answer=answers.append,
            now_ms=0,
        )
        if not answers:
            return None
        told = answers[0].topics[0].partitions[0]
        return told.error_code if told.error_code is not ErrorCode.NONE else told.committed_offset

    def told(self) -> ErrorCode:
        """The only answer to the only partition of a commit in a transaction, or of the request."""
        (answer,) = self.answers
        self.answers.clear()
        if isinstance(answer, ErrorCode):
            return answer
        assert isinstance(answer, TxnOffsetCommitResponse), answer
        return answer.topics[0].partitions[0].error_code


def transactional_request(
    offset: int, *, topic: str = "t", group_id: str = "g", producer_id: int = 1, **fields: object
) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    given: dict[str, object] = {
        "transactional_id": "x",
        "group_id": group_id,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "topics": (TxnOffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
    }
    return TxnOffsetCommitRequest(**given | fields)  # type: ignore[arg-type]  # by name
