"""Transactional producers of a simulated cluster: they write to the client's topic, and end it.

Of three, two share one transactional id, so that each fences the other. A producer initializes,
then makes one transaction after the other: batches in some of the partitions, mostly acknowledged,
now and then the offset of a group, and an end. It repeats what has no answer, as real clients do.
What it gives up, because it was fenced or because it died, its successor or a time-out aborts.

A reader of committed records passes over what was aborted, as clients do. What they are told goes
to their judge (`transaction_invariants`).

Source: KIP-98, KIP-360, KIP-447, KIP-890; Kafka's TransactionManager.
"""

from collections.abc import Mapping

from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from jepsen_like.clients.readable import READ_COMMITTED, readable
from jepsen_like.clients.transactional import (
    COORDINATOR_ELSEWHERE,
    COORDINATOR_RETRIABLE,
    Identity,
    find_coordinator,
)
from jepsen_like.sim.assemblies.cluster.clients.client import Client, fetched_in, produced_in
from jepsen_like.sim.assemblies.cluster.clients.operators import Operation, Operator
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.invariants.transaction_invariants import (
    Made,
    TransactionInvariants,
)
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC, Key
from jepsen_like.sim.world.world import World
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchRequest, FetchTopic
from wire.messages.groups import FindCoordinatorResponse
from wire.messages.producing import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.transactions import (
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

__all__ = ["CommittedReader", "TransactionalProducer"]

_IDS = 2  # transactional ids
_RESTARTS = 4  # time-outs that pass until one that was fenced is back
_TRIES_MAX = 12
_DIES, _IDLES = 0.06, 0.12  # in the midst of a transaction; the first line above a draw from [0, 1)
_ABORTS = 0.3
_OFFSETS = 0.3
_PRODUCE_AGAIN = (
    *COORDINATOR_RETRIABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


class TransactionalProducer(Operator):
    stream = "transactional producers"

    def __init__(
        self,
        world: World,
        options: ClusterOptions,
        client: Client,
        judge: TransactionInvariants,
        number: int,
    ) -> None:
        super().__init__(world, options, options.operations.transaction_interval_ms)
        self._random = world.fork(f"{self.stream}/{number}")
        self.transactional_id = f"tx-{number % _IDS}"
        self.group = f"fed-{number % _IDS}"
        self._client = client
        self._judge = judge
        self._is_created = False
        self._coordinator: int | None = None
        self._identity: Identity | None = None

    @property
    def transaction_timeout_ms(self) -> int:
        return 4 * self.timeout_ms

    def _operate(self) -> Operation[None]:
        if not self._is_created:
            self._is_created = yield from self._creates(TRANSACTIONS_TOPIC)
        elif self._identity is None:
            self._identity = yield from self._initialized()
        elif places := self._places():
            yield from self._transaction(self._identity, places)

    def _places(self) -> Mapping[Key, int]:
        """The partitions to write to, with their leaders."""
        led = self._client.led()
        if not led:
            return {}
        chosen = self._random.sample(sorted(led), self._random.randint(1, len(led)))
        return {key: led[key][0] for key in chosen}

    # --- the coordinator --------------------------------------------------------------------

    def _ask_coordinator(self, body: object) -> Operation[object]:
        """The answer of whoever coordinates; None if nobody is known to, or it is silent."""
        if self._coordinator is None:
            finds = find_coordinator(self.transactional_id)
            answer = yield from self._ask(self._random.choice(self._options.brokers), finds)
            if not isinstance(answer, FindCoordinatorResponse):
                return None
            found = answer.coordinators[0]
            if found.error_code is not ErrorCode.NONE:
                return None
            self._coordinator = found.node_id
        answer = yield from self._ask(self._coordinator, body)
        return answer

    def _turned_away(self, error: ErrorCode) -> bool:
        """Is it worth asking again? Perhaps of another broker."""
        if error in COORDINATOR_ELSEWHERE:
            self._coordinator = None
        return error in COORDINATOR_RETRIABLE

    def _initialized(self) -> Operation[Identity | None]:
        body = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.transaction_timeout_ms,
        )
        answer = yield from self._ask_coordinator(body)
        if not isinstance(answer, InitProducerIdResponse):
            self._coordinator = None
            return None
        if answer.error_code is not ErrorCode.NONE:
            self._turned_away(answer.error_code)
            return None
        self._fired("transactions_initialized")
        return Identity(self.transactional_id, answer.producer_id, answer.producer_epoch)

    # --- a transaction ----------------------------------------------------------------------

    def _transaction(self, identity: Identity, places: Mapping[Key, int]) -> Operation[None]:
        made = self._judge.begins(self.transactional_id, identity.epoch)
        is_whole = True
        for key in places:
            is_whole = is_whole and (yield from self._produced(identity, key, made))
        if is_whole and self._random.random() < _OFFSETS:
            is_whole = yield from self._offset_sent(identity, made)
        draw = self._random.random()
        if draw < _IDLES:
            self._identity = None  # it dies
            if draw >= _DIES:  # and only its time-out ends the transaction
                self._due_ms = (self._due_ms or 0) + 2 * self.transaction_timeout_ms
            return
        is_commit = is_whole and self._random.random() >= _ABORTS
        self._identity = yield from self._ended(identity, made, is_commit=is_commit)

    def _produced(self, identity: Identity, key: Key, made: Made) -> Operation[bool]:
        """Is the batch acknowledged?"""
        values = tuple(b"%d" % self._next_serial() for _ in range(self._random.randint(1, 3)))
        made.sent.update(values)
        for _ in range(_TRIES_MAX):
            leader = self._client.led().get(key)
            if leader is None:
                return False
            body = identity.produce(
                key,
                values,
                (TOPIC, *key),
                now_ms=self._due_ms or 0,
                timeout_ms=self.timeout_ms // 2,
            )
            told, error = produced_in((yield from self._ask(leader[0], body)))
            if told is not None and error is ErrorCode.NONE:
                identity.appended(key, len(values))
                made.acknowledged(key, values, told.base_offset)
                return True
            if error not in _PRODUCE_AGAIN:
                return False
        return False

    def _offset_sent(self, identity: Identity, made: Made) -> Operation[bool]:
        """For the group, whose coordinator may be any broker."""
        offset = self._next_serial()
        place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        body = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(place,)),),
        )
        made.offset = self.group, offset
        brokers = self._options.brokers
        first = self._random.randrange(len(brokers))
        for number in range(2 * len(brokers)):
            answer = yield from self._ask(brokers[(first + number) % len(brokers)], body)
            if isinstance(answer, TxnOffsetCommitResponse):
                error = answer.topics[0].partitions[0].error_code
                if error is ErrorCode.NONE:
                    self._fired("offset_sent_to_transaction")
                    return True
                if error not in COORDINATOR_RETRIABLE:
                    return False
        return False

    def _ended(
        self, identity: Identity, made: Made, *, is_commit: bool
    ) -> Operation[Identity | None]:
        """Who it is in the next transaction; None: it has to initialize."""
        body = identity.end(is_commit=is_commit)
        made.is_commit = is_commit
        for _ in range(_TRIES_MAX):
            answer = yield from self._ask_coordinator(body)
            if not isinstance(answer, EndTxnResponse):
                self._coordinator = None
                continue
            if answer.error_code is ErrorCode.NONE:
                made.is_told = True
                self._fired("transaction_committed" if is_commit else "transaction_aborted")
                return identity.next(answer)
            if not self._turned_away(answer.error_code):
                self._fired("transaction_refused")
                self._due_ms = (self._due_ms or 0) + _RESTARTS * self.timeout_ms
                return None
        return None


_FETCH_BYTES = 2_000


class CommittedReader(Operator):
    """One partition after the other, from the beginning on."""

    stream, share = "committed reader", 2

    def __init__(
        self, world: World, options: ClusterOptions, client: Client, judge: TransactionInvariants
    ) -> None:
        super().__init__(world, options, options.operations.transaction_interval_ms)
        self._client = client
        self._judge = judge
        self._positions: dict[Key, int] = {}

    def _operate(self) -> Operation[None]:
        led = self._client.led()
        if not led:
            return
        key = self._random.choice(sorted(led))
        leader, client_position = led[key]
        position = self._positions.get(key, 0)
        place = FetchPartition(
            partition=key[1], fetch_offset=position, partition_max_bytes=_FETCH_BYTES
        )
        body = FetchRequest(
            max_wait_ms=self.timeout_ms // 4,
            min_bytes=1,
            isolation_level=READ_COMMITTED,
            topics=(FetchTopic(topic=TOPIC, topic_id=key[0], partitions=(place,)),),
        )
        told = fetched_in((yield from self._ask(leader, body)))
        if told is None:
            return
        if told.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[key] = client_position
        elif told.error_code is ErrorCode.NONE:
            end = position
            given: dict[int, bytes] = {}
            for header, records in readable(told):
                end = max(end, header.next_offset)
                given |= {
                    record.offset: record.value or b""
                    for record in records
                    if record.offset >= position
                }
            self._positions[key] = end
            self._judge.has_read(key, position, end, given)
