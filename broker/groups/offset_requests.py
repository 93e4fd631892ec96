"""Offsets of groups are committed, fetched and deleted by requests.

Who may do so is for the protocol of the group to say (offsets.py, transactional_offsets.py, and
consumer/consumer_offsets.py). What is committed counts once the log has it.

Source: Kafka's OffsetMetadataManager.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.config import GroupConfig
from broker.coordination.writing import Writing, coordinator_error
from broker.groups import offsets, removal, transactional_offsets
from broker.groups.consumer import consumer_offsets
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.contents import Offsets
from broker.groups.group import Group
from broker.groups.offsets import GroupOffsets, TopicIdOf, TopicWith
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.groups.pending import Pending
from broker.groups.records import Change
from broker.partition.transactional import Guard
from broker.verifying import Place, Producer, TransactionAsked, Verifier
from wire.capabilities import Capability, Lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from wire.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from wire.transaction_markers import Marker

__all__ = ["OffsetRequests", "Written"]

Written = Change | Pending | Marker


@dataclass(slots=True, kw_only=True, eq=False)
class OffsetRequests:
    """Those to one coordinator. The groups are its own."""

    index: int  # of its partition
    config: GroupConfig
    topic_id_of: TopicIdOf
    topic_with: TopicWith
    verifier: Verifier
    writing: Writing[Written]
    groups: Mapping[str, Group]
    consumers: Mapping[str, ConsumerGroup]  # of KIP-848
    keep: Callable[[str, int], None]  # whoever commits is a group
    touched: Callable[[Group], None]  # a member has shown a sign of life
    error: Callable[[], ErrorCode]  # NONE: it serves
    reply: Callable[[int, object], None]
    offsets: Offsets

    def places(self, group_id: str) -> set[Place]:
        """Where the group has an offset that counts, or that may count."""
        return {*self.known(group_id), *self.offsets.pending.places(group_id)}

    def known(self, group_id: str) -> GroupOffsets:
        return self.offsets.committed.get(group_id, {})

    def commit(
        self, token: int, request: OffsetCommitRequest, lacking: Lacking, now_ms: int
    ) -> None:
        group = self.groups.get(request.group_id)
        topic_with, by_id = self.topic_with, Capability.NAMES_TOPICS_BY_ID not in lacking
        consumers = self.consumers.get(request.group_id)
        if consumers is None:
            error = offsets.check_commit(group, request, lacking)
        else:
            error = consumer_offsets.check_commit(consumers, request, lacking)
        if error is not ErrorCode.NONE:
            self.reply(token, offsets.refused_commit(request, error, topic_with, by_id=by_id))
            return
        member = None if group is None else group.members.get(request.member_id)
        if group is not None and member is not None and member.join_token is None:
            group.touch(member, now_ms)
            self.touched(group)
        stale = consumer_offsets.stale_places(
            consumers,
            request.member_id,
            request.generation_id_or_member_epoch,
            request.topics,
            topic_with,
        )
        changes, response = offsets.commit(
            request, self.config, topic_with, now_ms, stale, by_id=by_id
        )
        if offsets.reaches_group(response):
            self.keep(request.group_id, now_ms)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            refused = offsets.refused_commit(request, error, topic_with, by_id=by_id)
            self.reply(token, response if is_done else refused)

        self.writing.write(changes, concluded, now_ms)

    def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        *,
        adds: bool,
        answer: Callable[[TxnOffsetCommitResponse | ErrorCode], None],
        now_ms: int,
    ) -> None:
        """The transaction's coordinator is asked before the first write in it (KIP-890)."""
        producer = Producer(request.producer_id, request.producer_epoch)
        guard = self.writing.start_guard(producer)
        if guard is None:
            self._write_in_transaction(request, guard, answer, now_ms)
            return
        place = (OFFSETS_TOPIC, self.index)

        def verified(errors: Mapping[Place, ErrorCode], now_ms: int) -> None:
            if self.error() is not ErrorCode.NONE:
                answer(self.error())  # led elsewhere meanwhile
            elif errors[place] is not ErrorCode.NONE:
                answer(coordinator_error(errors[place]))
            else:
                self._write_in_transaction(request, guard, answer, now_ms)

        asked = TransactionAsked(
            transactional_id=request.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            places=(place,),
            adds=adds,
        )
        self.verifier.verify(asked, verified, now_ms)

    def _write_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        guard: Guard | None,
        answer: Callable[[TxnOffsetCommitResponse | ErrorCode], None],
        now_ms: int,
    ) -> None:
        consumers = self.consumers.get(request.group_id)
        if consumers is None:
            error = transactional_offsets.check_commit(self.groups.get(request.group_id), request)
        else:
            error = consumer_offsets.check_transactional_commit(consumers, request)
        if error is not ErrorCode.NONE:
            answer(error)
            return
        topic_with = self.topic_with
        stale = consumer_offsets.stale_places(
            consumers, request.member_id, request.generation_id, request.topics, topic_with
        )
        changes, response = transactional_offsets.commit(
            request, self.config, topic_with, now_ms, stale
        )
        if offsets.reaches_group(response):
            self.keep(request.group_id, now_ms)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            answer(response if error is ErrorCode.NONE else error)

        producer = Producer(request.producer_id, request.producer_epoch)
        if producer.id < 0:  # and nothing is verified: Kafka takes it for an ordinary commit
            self.writing.write(changes, concluded, now_ms)
        elif producer.epoch < 0:
            answer(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            written = [Pending(producer.id, change) for change in changes]
            self.writing.write(written, concluded, now_ms, producer=producer, guard=guard)

    def fetch(
        self,
        asked: OffsetFetchRequestGroup,
        *,
        lacking: Lacking,
        require_stable: bool,
        answer: Callable[[OffsetFetchResponseGroup], None],
        now_ms: int,
    ) -> None:
        """With `require_stable`, what is being written is waited for, and the client is told to
        come again for what waits for the end of a transaction (KIP-447)."""

        consumers = self.consumers.get(asked.group_id)
        refusal = ErrorCode.NONE
        if consumers is not None:
            refusal = consumer_offsets.check_fetch(consumers, asked)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            if error is ErrorCode.NONE:
                known = self.known(asked.group_id)
                unstable = self.offsets.pending.places(asked.group_id) if require_stable else ()
                by_id = Capability.NAMES_TOPICS_BY_ID not in lacking
                answer(offsets.fetch(known, asked, self.topic_id_of, unstable, by_id=by_id))
            else:
                answer(offsets.refused_fetch(asked, error, lacking))

        if refusal is not ErrorCode.NONE:
            concluded(refusal, now_ms)
        elif require_stable:
            self.writing.flush(concluded, now_ms)
        else:
            concluded(ErrorCode.NONE, now_ms)

    def delete_offsets(self, token: int, request: OffsetDeleteRequest, now_ms: int) -> None:
        group_id = request.group_id
        known = self.places(group_id)
        group = self.consumers.get(group_id) or self.groups.get(group_id)
        topic_with = self.topic_with
        changes, response = removal.delete_offsets(group, known, request, topic_with)

        def concluded(error: ErrorCode, _now_ms: int) -> None:
            is_done = error is ErrorCode.NONE
            refused = OffsetDeleteResponse(error_code=error)
            self.reply(token, response if is_done else refused)

        self.writing.write(changes, concluded, now_ms)
