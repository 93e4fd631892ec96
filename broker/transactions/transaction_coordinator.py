"""A coordinator serves the transactional ids of one partition of `__transaction_state` that this
broker leads.

It joins the rules with the log: a rule decides the next value of a transaction, the coordinator
writes it down, and it counts, and is answered, when the high watermark has passed it. Meanwhile
every other request to that id is told to come again: one step at a time. A step that takes too long
is answered as late, but stays in flight until it is committed or leadership is lost, as the log may
have it yet. (Kafka gives up after its time-out, and may then know less than its log.)

When the end of a transaction is decided, markers.py tells its partitions; then it is completed.
Whoever is elected next finds the decision in the log, and tells them again.

Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from broker.cluster import Cluster
from broker.config import TransactionConfig
from broker.coordination.coordinators import Coordinators, KeyTimers
from broker.coordination.loading import Batches, last_of_each_key
from broker.coordination.state_machine import StateMachine
from broker.coordination.writing import Concluded, nobody_waits
from broker.partition.partition import Partition
from broker.transactions import adding, ending, initializing
from broker.transactions.decisions import Decision, NeedsProducerId, Refused, Settled, Step
from broker.transactions.markers import Markers, Unwritten
from broker.transactions.transaction import (
    Transaction,
    TransactionState,
    begun_by,
    completed,
    is_expired,
    is_timed_out,
)
from broker.transactions.transaction_records import TransactionChange, decode_change, encode_change
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from broker.verifying import Place, Producer
from broker.waiting import Deadlines
from controller.metadata.metadata_version import TRANSACTION_VERSION
from quorum.core.outbox import Outbox
from wire.batch import BATCH_BYTES_MAX
from wire.errors import ErrorCode
from wire.messages.transactions import EndTxnRequest

__all__ = ["Answer", "Coordinator", "TakeId", "TransactionCoordinators", "transaction_coordinators"]

_RETRY_BACKOFF_MS = 100

Answer = Callable[[Refused | Settled, int], None]  # (what was decided, now_ms), once
Rule = Callable[[Transaction | None, int | None], Decision]  # (what is known, a new producer id)
TakenId = Callable[[int | None, int], None]
TakeId = Callable[[TakenId, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All coordinators of a broker share these."""

    config: TransactionConfig
    cluster: Cluster
    deadlines: Deadlines
    outbox: Outbox
    markers: Markers
    take_id: TakeId
    timers: KeyTimers  # by transactional id


@dataclass(slots=True)
class Contents:
    transactions: dict[str, Transaction] = field(default_factory=dict)

    def take(self, batches: Batches) -> None:
        """Clients may have had markers written here, which say nothing of what is kept here."""
        ordinary = [each for each in batches if not each[0].is_control]
        for record in last_of_each_key(ordinary):
            change = decode_change(record)
            if change is not None:
                apply(self.transactions, change)


def apply(transactions: dict[str, Transaction], change: TransactionChange) -> None:
    """A transaction that another broker has written as Dead is forgotten like one without value."""
    if change.transaction is None or change.transaction.state is TransactionState.DEAD:
        transactions.pop(change.transactional_id, None)
    else:
        transactions[change.transactional_id] = change.transaction


class Coordinator:
    def __init__(self, partition: Partition, shared: Surroundings) -> None:
        self.index = partition.index
        self.leader_epoch = partition.leader_epoch
        self.transactions: dict[str, Transaction] = {}  # as committed
        self._name = partition.name
        self._config = shared.config
        self._shared = shared
        self._in_flight: set[str] = set()  # a step of these is being written
        self._machine: StateMachine[Contents, TransactionChange] = StateMachine(
            partition,
            Contents(),
            loaded=self._loaded,
            committed=self._committed,
            encode=encode_change,
            deadlines=shared.deadlines,
            outbox=shared.outbox,
            timeout_ms=shared.config.write_timeout_ms,
            load_bytes_max=shared.config.load_bytes_max,
        )
        self._writing = self._machine.writing

    # --- life -------------------------------------------------------------------------------

    @property
    def error(self) -> ErrorCode:
        """NONE: it serves."""
        return self._machine.error

    def progressed(self, now_ms: int) -> None:
        """The high watermark of the partition may have moved."""
        self._machine.progressed(now_ms)

    def close(self, error: ErrorCode, now_ms: int) -> None:
        """This broker does not lead the partition any more."""
        self._shared.markers.stop(self.index)
        for transactional_id in self.transactions:
            self._shared.timers.set((self.index, transactional_id), None)
        self._machine.close(error, now_ms)

    def topics_deleted(self, _names: frozenset[str], _now_ms: int) -> None:
        """Markers that are still to be told see it for themselves."""

    def _loaded(self, contents: Contents, now_ms: int) -> None:
        self.transactions = {
            transactional_id: begun_by(transaction, now_ms)
            for transactional_id, transaction in contents.transactions.items()
        }
        if self.transactions:
            count = len(self.transactions)
            self._shared.outbox.trace("transactions-loaded", partition=self._name, count=count)
        for transaction in tuple(self.transactions.values()):
            self._follow_up(transaction, now_ms)

    def _committed(self, change: TransactionChange, now_ms: int) -> None:
        self._in_flight.discard(change.transactional_id)
        apply(self.transactions, change)
        if change.transaction is not None:
            self._follow_up(change.transaction, now_ms)
        else:
            self._wake(change.transactional_id, None)

    def _follow_up(self, transaction: Transaction, now_ms: int) -> None:
        """Do what its state asks for, now or when its time is up."""
        is_open = transaction.state is TransactionState.ONGOING
        due_ms = transaction.start_ms + transaction.timeout_ms + 1
        self._wake(transaction.id, due_ms if is_open else None)
        if transaction.state.is_prepared:
            self._write_markers(transaction, now_ms)

    # --- requests ---------------------------------------------------------------------------

    def initialize(
        self,
        transactional_id: str,
        expected: Producer | None,
        timeout_ms: int,
        answer: Answer,
        now_ms: int,
    ) -> None:
        def rule(known: Transaction | None, new_id: int | None) -> Decision:
            return initializing.initialize(
                known,
                expected,
                transactional_id=transactional_id,
                timeout_ms=timeout_ms,
                version=self._version,
                new_id=new_id,
                now_ms=now_ms,
            )

        self._decide(transactional_id, rule, answer, now_ms)

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        places: frozenset[Place],
        client_version: int,
        answer: Answer,
        now_ms: int,
    ) -> None:
        def rule(known: Transaction | None, _new_id: int | None) -> Decision:
            return adding.add(known, producer, places, client_version=client_version, now_ms=now_ms)

        self._decide(transactional_id, rule, answer, now_ms)

    def verify(
        self, transactional_id: str, producer: Producer, places: frozenset[Place]
    ) -> Mapping[Place, ErrorCode]:
        return adding.verify(self.transactions.get(transactional_id), producer, places)

    def end(
        self, request: EndTxnRequest, answer: Answer, now_ms: int, *, raises_epoch: bool
    ) -> None:
        def rule(known: Transaction | None, new_id: int | None) -> Decision:
            return ending.end(
                known, request, raises_epoch=raises_epoch, new_id=new_id, now_ms=now_ms
            )

        self._decide(request.transactional_id, rule, answer, now_ms)

    # --- time -------------------------------------------------------------------------------

    def tick(self, transactional_id: str, now_ms: int) -> None:
        """Abort it, as its time is up; or complete it, which the log refused before."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return
        if transaction.state.is_prepared:
            self._complete(transactional_id, now_ms)
        elif is_timed_out(transaction, now_ms):
            self._wake(transactional_id, now_ms + self._config.time_out_check_interval_ms)
            self._abort(transactional_id, now_ms)

    def _abort(self, transactional_id: str, now_ms: int) -> None:
        def rule(known: Transaction | None, new_id: int | None) -> Decision:
            if known is None or not is_timed_out(known, now_ms):
                return Refused(ErrorCode.INVALID_TXN_STATE)  # ended while an id was asked for
            return ending.fenced(known, version=self._version, new_id=new_id, now_ms=now_ms)

        self._decide(transactional_id, rule, nobody_waits, now_ms)

    def expire(self, now_ms: int) -> None:
        """Forget the ids that have not been used for long."""
        expiration_ms = self._config.expiration_ms
        gone = [
            TransactionChange(transactional_id=transaction.id, transaction=None)
            for transaction in self.transactions.values()
            if is_expired(transaction, now_ms, expiration_ms=expiration_ms)
            and transaction.id not in self._in_flight
        ]
        for part in self._writing.in_batches(gone):
            if self._writing.write(part, nobody_waits, now_ms):
                self._in_flight.update(change.transactional_id for change in part)

    # --- carrying out -----------------------------------------------------------------------

    @property
    def _version(self) -> int:
        return self._shared.cluster.image.features.get(TRANSACTION_VERSION, 0)

    def _decide(
        self,
        transactional_id: str,
        rule: Rule,
        answer: Answer,
        now_ms: int,
        new_id: int | None = None,
    ) -> None:
        if self.error is not ErrorCode.NONE:
            answer(Refused(self.error), now_ms)
            return
        known = self.transactions.get(transactional_id)
        is_prepared = known is not None and known.state.is_prepared
        if is_prepared or transactional_id in self._in_flight:
            answer(Refused(ErrorCode.CONCURRENT_TRANSACTIONS), now_ms)
            return
        decision = rule(known, new_id)
        match decision:
            case NeedsProducerId():
                taken = partial(self._id_taken, transactional_id, rule, answer)
                self._shared.take_id(taken, now_ms)
            case Step():
                self._carry_out(decision, answer, now_ms)
            case _:
                answer(decision, now_ms)

    def _id_taken(
        self, transactional_id: str, rule: Rule, answer: Answer, new_id: int | None, now_ms: int
    ) -> None:
        """What was known may have changed meanwhile: decide again."""
        if new_id is None:
            answer(Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), now_ms)
        else:
            self._decide(transactional_id, rule, answer, now_ms, new_id)

    def _carry_out(self, step: Step, answer: Answer, now_ms: int) -> None:
        transaction = step.transaction
        told = completed(transaction, now_ms) if transaction.state.is_prepared else transaction

        def concluded(error: ErrorCode, now_ms: int) -> None:
            failed = error if error is not ErrorCode.NONE else step.error
            if failed is not ErrorCode.NONE:
                answer(Refused(failed), now_ms)
            else:
                answer(Settled(told.producer_id, told.producer_epoch), now_ms)

        self._write(transaction, concluded, now_ms)

    def _write(self, transaction: Transaction, concluded: Concluded, now_ms: int) -> bool:
        change = TransactionChange(
            transactional_id=transaction.id,
            transaction=transaction,
            is_flexible=self._version > 0,
        )
        # Only an open transaction may be too large. Its end has to fit, even if the topic takes
        # less by then, as no other record ends it. (Kafka refuses it each time.)
        is_open = transaction.state is TransactionState.ONGOING
        bytes_max = None if is_open else BATCH_BYTES_MAX
        is_written = self._writing.write((change,), concluded, now_ms, bytes_max=bytes_max)
        if is_written:
            self._in_flight.add(transaction.id)
        return is_written

    def _wake(self, transactional_id: str, due_ms: int | None) -> None:
        self._shared.timers.set((self.index, transactional_id), due_ms)

    def _write_markers(self, transaction: Transaction, now_ms: int) -> None:
        unwritten = Unwritten(
            transaction=transaction,
            index=self.index,
            coordinator_epoch=self.leader_epoch,
            written=partial(self._complete, transaction.id),
        )
        self._shared.markers.start(unwritten, now_ms)

    def _complete(self, transactional_id: str, now_ms: int) -> None:
        """All partitions have the marker."""
        complete = completed(self.transactions[transactional_id], now_ms)
        if not self._write(complete, nobody_waits, now_ms):
            self._wake(transactional_id, now_ms + _RETRY_BACKOFF_MS)


TransactionCoordinators = Coordinators[Coordinator]


def transaction_coordinators(
    config: TransactionConfig,
    *,
    cluster: Cluster,
    deadlines: Deadlines,
    outbox: Outbox,
    markers: Markers,
    take_id: TakeId,
) -> TransactionCoordinators:
    shared = Surroundings(
        config=config,
        cluster=cluster,
        deadlines=deadlines,
        outbox=outbox,
        markers=markers,
        take_id=take_id,
        timers=KeyTimers(),
    )
    return Coordinators(
        TRANSACTIONS_TOPIC,
        partial(Coordinator, shared=shared),
        cluster=cluster,
        timers=shared.timers,
        expiry_interval_ms=config.expiration_check_interval_ms,
    )
