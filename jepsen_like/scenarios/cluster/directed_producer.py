"""A transactional producer of a directed cluster does what it is told, and repeats it if it has to.

It begins with a transactional id, writes, and ends what it has written. What the coordinator or a
leader cannot answer yet is asked again after a short pause, of whoever coordinates or leads by
then. A batch is given up when its transaction is aborted, and may be on its way still.

With transaction.version 2 its batches add their partitions, and each end gives it the next epoch
(KIP-890). With version 1 it adds partitions itself, and goes on in the same epoch with the next
sequence, as clients did that did not begin again after an abort.

In the history each record is a `send` that ends with its transaction: `ok` where that is known to
have committed, `fail` where nobody has asked for that or the coordinator has refused it.

Source: KIP-98, KIP-360, KIP-890; Kafka's TransactionManager.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from broker.transactions.transaction import EPOCH_BUMPS
from jepsen_like.clients.steps import Ask, Pause, Step, Steps
from jepsen_like.clients.transactional import (
    COORDINATOR_ELSEWHERE,
    COORDINATOR_RETRIABLE,
    Identity,
    find_coordinator,
)
from jepsen_like.histories.history import Kind
from jepsen_like.scenarios.cluster.directed_clients import Produced, number_of, outcome_of
from jepsen_like.scenarios.language.forms import Misused, Names
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.sim.assemblies.cluster.clients.client import produced_in
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.invariants.transaction_invariants import Made
from jepsen_like.sim.assemblies.cluster.invariants.watched import Key
from jepsen_like.sim.assemblies.quorum.clients.asking import AskingCore
from jepsen_like.sim.world.client_releases import NEWEST, ClientRelease
from jepsen_like.sim.world.host import Host
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.groups import FindCoordinatorResponse
from wire.messages.producing import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
)
from wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnResponse,
)

__all__ = ["DirectedProducer"]

_PAUSE_MS = 20
_ASKING_MS = 500  # until a coordinator that does not answer is looked for anew
_BEFORE_EPOCH_BUMPS = ClientRelease(
    "transaction.version 1", {"produce": 11, "add_partitions_to_txn": 3, "end_txn": 4}
)
_PRODUCE_AGAIN = (
    *COORDINATOR_RETRIABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


@dataclass(slots=True)
class Write:
    """A record of a transaction; `made` is the transaction as its judge knows it."""

    made: Made
    key: Key
    partition: str
    produced: Produced
    process: int  # of the history
    offset: int = -1  # once it is acknowledged


class DirectedProducer(AskingCore):
    """`name` is that of the script, `transactional_id` may be shared with others."""

    host: Host  # set as soon as there is one

    def __init__(
        self,
        name: str,
        transactional_id: str,
        cluster: Cluster,
        production: Production,
        names: Names,
        tell: Callable[[str], None],
        *,
        transaction_ms: int,
    ) -> None:
        """`tell` puts a line into story and account; `transaction_ms`: what its coordinator waits
        for the end of a transaction."""
        version = cluster.options.transaction_version
        self._raises_epochs = version >= EPOCH_BUMPS
        super().__init__(
            timeout_ms=cluster.options.client_timeout_ms,
            release=NEWEST if self._raises_epochs else _BEFORE_EPOCH_BUMPS,
        )
        self.name = name
        self.transactional_id = transactional_id
        self._cluster = cluster
        self._judge = cluster.transactions
        self._production = production
        self._names = names
        self._tell = tell
        self._transaction_ms = transaction_ms
        self._coordinator: int | None = None
        self._identity: Identity | None = None
        self._made: Made | None = None  # what is open
        self._writes: list[Write] = []  # of what is open
        self._added: set[Key] = set()
        self._until_us = 0  # when the coordinator aborts it
        self._asking = 0  # beginnings and ends that have no answer yet
        self._waiting: list[tuple[int, Steps[None]]] = []  # with the time at which they go on

    def __str__(self) -> str:
        return self.name

    @property
    def is_done(self) -> bool:
        """Has it an answer to all that it asked its coordinator to begin or end?"""
        return not self._asking

    # --- steps ------------------------------------------------------------------------------

    def settle(self, now_ms: int) -> None:
        ready = [steps for due_ms, steps in self._waiting if due_ms <= now_ms]
        self._waiting = [each for each in self._waiting if each[0] > now_ms]
        for steps in ready:
            self._go_on(steps, None, now_ms)

    def deadline_ms(self) -> int | None:
        return min((due_ms for due_ms, _ in self._waiting), default=None)

    def _begin(self, steps: Steps[None]) -> None:
        self._waiting.append((0, steps))
        self.host.command(lambda _now_ms: None)

    def _go_on(self, steps: Steps[None], told: object, now_ms: int) -> None:
        try:
            step: Step = steps.send(told)
        except StopIteration:
            return
        if isinstance(step, Pause):
            self._waiting.append((now_ms + step.ms, steps))
        else:
            self.ask(step.node, step.body, partial(self._go_on, steps), step.timeout_ms)

    def _ask_coordinator(self, body: object) -> Steps[object]:
        """The first answer that is no reason to ask again."""
        while True:
            answer: object = None
            if self._coordinator is None:
                self._coordinator = yield from self._found_coordinator()
            if self._coordinator is not None:
                answer = yield Ask(node=self._coordinator, body=body, timeout_ms=_ASKING_MS)
            error = _error_in(answer)
            if error not in COORDINATOR_RETRIABLE:
                return answer
            if error in COORDINATOR_ELSEWHERE:
                self._coordinator = None
            yield Pause(_PAUSE_MS)

    def _found_coordinator(self) -> Steps[int | None]:
        finds = find_coordinator(self.transactional_id)
        for broker in self._cluster.options.brokers:
            answer = yield Ask(node=broker, body=finds, timeout_ms=_ASKING_MS)
            found = answer.coordinators[0] if isinstance(answer, FindCoordinatorResponse) else None
            if found is not None and found.error_code is ErrorCode.NONE:
                return found.node_id
        return None

    # --- beginning --------------------------------------------------------------------------

    def initialize(self, *, is_anew: bool) -> None:
        """Get the transactional id: anew, or as the producer that it was (KIP-360)."""
        self._asking += 1
        as_whom = "" if is_anew else f", as who had it in epoch {self._known().epoch}"
        self._production.note(f"{self.name} asks for {self.transactional_id}{as_whom}")
        self._begin(self._initialized(is_anew=is_anew))

    def _initialized(self, *, is_anew: bool) -> Steps[None]:
        owner = self._judge.owner(self.transactional_id)
        body = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._transaction_ms
        )
        if not is_anew:
            known = self._known()
            body = replace(body, producer_id=known.producer_id, producer_epoch=known.epoch)
        answer = yield from self._ask_coordinator(body)
        assert isinstance(answer, InitProducerIdResponse), answer
        self._asking -= 1
        if answer.error_code is not ErrorCode.NONE:
            self._tell(f"{self.name} is refused: {answer.error_code.name}")
            return
        self._identity = Identity(self.transactional_id, answer.producer_id, answer.producer_epoch)
        self._tell(f"{self.name} is producer {answer.producer_id} in epoch {answer.producer_epoch}")
        with self._cluster.world.judging:
            self._judge.gives(self.transactional_id, self, owner=owner, is_anew=is_anew)

    def _known(self) -> Identity:
        if self._identity is None:
            raise Misused(f"{self.name} has no id yet: `deliver until {self.name} is done`")
        return self._identity

    # --- writing ----------------------------------------------------------------------------

    def write(self, key: Key, partition: str, value: str) -> Produced:
        """One record; the first of a transaction begins it."""
        identity = self._known()
        if not self.is_done:
            raise Misused(f"{self.name} waits: `deliver until {self.name} is done`")
        if self._made is None:
            self._made = self._judge.begins(self.transactional_id, identity.epoch)
            self._writes, self._added = [], set()
            self._until_us = self._cluster.world.now_us + self._transaction_ms * 1000
        self._made.sent.add(value.encode())
        number = number_of(value)
        self._production.note(
            f"{self.name} writes {value} ({number} in the history) to {partition}"
        )
        sent = [["send", partition, number]]
        process = self._production.invoke("send", [*sent])
        write = Write(self._made, key, partition, Produced(value), process)
        self._writes.append(write)
        topic = (partition.rpartition("-")[0], *key)
        body = identity.produce(key, (value.encode(),), topic, now_ms=0, timeout_ms=self.timeout_ms)
        identity.appended(key, 1)
        self._begin(self._written(write, identity, body))
        return write.produced

    def _written(self, write: Write, identity: Identity, body: ProduceRequest) -> Steps[None]:
        if not self._raises_epochs and write.key not in self._added:
            error = _error_in((yield from self._ask_coordinator(_adding(identity, write))))
            if error is not ErrorCode.NONE:
                self._refused(write, error)
                return
            self._added.add(write.key)
        while self._made is write.made:
            leader = self._leader_of(write.key)
            if leader >= 0:
                answer = yield Ask(node=leader, body=body, timeout_ms=self.timeout_ms)
                told, error = produced_in(answer)
                if told is not None and error is ErrorCode.NONE:
                    write.offset, write.produced.error = told.base_offset, error
                    sent = [write.produced.value.encode()]
                    write.made.acknowledged(write.key, sent, told.base_offset)
                if error not in _PRODUCE_AGAIN:
                    write.produced.error = error
                    value = write.produced.value
                    self._tell(f"{self.name}: {value} {outcome_of(told, self._names.of(leader))}")
                    return
            yield Pause(_PAUSE_MS)

    def _refused(self, write: Write, error: ErrorCode) -> None:
        write.produced.error = error
        self._tell(f"{self.name}: {write.produced.value} is refused: {error.name}")

    def _leader_of(self, key: Key) -> int:
        state = self._cluster.partitions.watched[key].state
        return -1 if state is None else state.leader

    # --- ending -----------------------------------------------------------------------------

    def end(self, *, is_commit: bool) -> None:
        """Commit what is open once all of it is acknowledged, or abort it at once."""
        if self._made is None:
            said = f"{self.name} writes VALUE to PARTITION"
            raise Misused(f"{self.name} has no transaction: `{said}` begins one")
        self._asking += 1
        self._production.note(f"{self.name} {'commits' if is_commit else 'aborts'}")
        self._begin(self._ended(self._made, self._known(), is_commit=is_commit))

    def _ended(self, made: Made, identity: Identity, *, is_commit: bool) -> Steps[None]:
        while is_commit and not all(write.produced.is_answered for write in self._writes):
            yield Pause(_PAUSE_MS)
        made.is_commit = is_commit
        self._made = None
        answer = yield from self._ask_coordinator(identity.end(is_commit=is_commit))
        assert isinstance(answer, EndTxnResponse), answer
        self._asking -= 1
        if answer.error_code is ErrorCode.NONE:
            made.is_told = True
            self._identity = identity.next(answer) if self._raises_epochs else identity
            self._tell(f"{self.name} has {'committed' if is_commit else 'aborted'}")
            self._complete(Kind.OK if is_commit else Kind.FAIL, "aborted")
            return
        # Where another has the id, it may have committed all the same: nobody knows any more.
        is_certain = not is_commit or self._judge.owner(self.transactional_id) is self
        self._tell(f"{self.name} is refused: {answer.error_code.name}")
        if self._cluster.world.now_us < self._until_us:
            with self._cluster.world.judging:
                self._judge.fences(self.transactional_id, self)
        self._complete(Kind.FAIL if is_certain else Kind.INFO, answer.error_code.name)

    def _complete(self, kind: Kind, error: str) -> None:
        """Enter into the history what has become of the records."""
        for write in self._writes:
            if kind is not Kind.OK:
                self._production.complete(write.process, kind, error=error)
            elif write.produced.is_acknowledged:
                value = number_of(write.produced.value)
                done = [["send", write.partition, [write.offset, value]]]
                self._production.complete(write.process, kind, [*done])
            else:
                self._production.complete(write.process, Kind.FAIL, error="refused")


def _adding(identity: Identity, write: Write) -> AddPartitionsToTxnRequest:
    topic, _, index = write.partition.rpartition("-")
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=identity.transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        topics=(AddPartitionsToTxnTopic(name=topic, partitions=(int(index),)),),
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


def _error_in(answer: object) -> ErrorCode:
    """A time-out if there was no answer."""
    match answer:
        case InitProducerIdResponse(error_code=error) | EndTxnResponse(error_code=error):
            return error
        case AddPartitionsToTxnResponse(results_by_transaction=(result, *_)):
            return result.topic_results[0].results_by_partition[0].partition_error_code
        case _:
            return ErrorCode.REQUEST_TIMED_OUT
