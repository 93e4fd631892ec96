"""The transactions of a directed cluster: their coordinator, their producers, what is on its way.

`__transaction_state` has one partition here, so that one broker coordinates all of them.
"""

from broker.transactions.transaction import Transaction
from broker.transactions.transaction_coordinator import Coordinator
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from jepsen_like.scenarios.cluster.directed_clients import Produced
from jepsen_like.scenarios.cluster.directed_producer import DirectedProducer
from jepsen_like.scenarios.language.forms import Misused, Names
from jepsen_like.scenarios.stage.machines import SimulatedMachines
from jepsen_like.scenarios.stage.story import Production, Story
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.invariants.watched import Key
from jepsen_like.sim.world.network import Message
from wire.errors import ErrorCode
from wire.messages.producing import ProduceRequest

__all__ = ["COORDINATED", "DirectedTransactions", "coordinator_on"]

COORDINATED = f"{TRANSACTIONS_TOPIC}-0"
_TRANSACTION_MS = 60_000  # transaction.timeout.ms


def coordinator_on(cluster: Cluster, node: int) -> Coordinator | None:
    """None if the node is down, or does not coordinate transactions, or not yet."""
    broker = cluster.broker(node)
    serving = (
        each
        for each in (() if broker is None else broker.transactions)
        if each.error is ErrorCode.NONE
    )
    return next(serving, None)


class DirectedTransactions:
    def __init__(
        self,
        cluster: Cluster,
        machines: SimulatedMachines,
        production: Production,
        names: Names,
        story: Story,
        sent: dict[str, Produced],
    ) -> None:
        """`sent`: where records are entered that producers write, by their values."""
        self.producers: dict[str, DirectedProducer] = {}  # by name
        self._cluster = cluster
        self._machines = machines
        self._production = production
        self._names = names
        self._story = story
        self._sent = sent

    def _tell(self, line: str) -> None:
        self._production.note(line)
        self._story.tell(line)

    # --- what is known ----------------------------------------------------------------------

    def transaction(self, transactional_id: str) -> Transaction | None:
        """As its coordinator knows it by now; None while there is none that serves."""
        for node in self._cluster.options.brokers:
            coordinator = coordinator_on(self._cluster, node)
            if coordinator is not None and transactional_id in coordinator.transactions:
                return coordinator.transactions[transactional_id]
        return None

    def is_coordinating(self, node: int) -> bool:
        return coordinator_on(self._cluster, node) is not None

    def key_of(self, partition: str) -> Key:
        """Raises Misused."""
        for key, watched in self._cluster.partitions.watched.items():
            if watched.name == partition and watched.state is not None:
                return key
        raise Misused(f"there is no {partition}")

    # --- producers --------------------------------------------------------------------------

    def add(self, name: str, transactional_id: str, transaction_ms: int = _TRANSACTION_MS) -> None:
        """A new producer asks for this transactional id, and is not waited for."""
        if not self._cluster.options.transaction_version:
            raise Misused("there are no transactions here: start with transaction_version=2")
        producer = self.producers[name] = DirectedProducer(
            name,
            transactional_id,
            self._cluster,
            self._production,
            self._names,
            self._tell,
            transaction_ms=transaction_ms,
        )
        producer.host = self._cluster.world.add_client(producer)
        producer.host.start()
        producer.initialize(is_anew=True)

    def producer(self, name: str) -> DirectedProducer:
        """Raises Misused."""
        if name not in self.producers:
            raise Misused(f"no producer is named {name}: `{name} = new producer of VALUE` is one")
        return self.producers[name]

    def write(self, name: str, value: str, partition: str) -> None:
        """In its transaction, which begins with the first one."""
        key = self.key_of(partition)
        self._sent[value] = self.producer(name).write(key, partition, value)

    # --- messages ---------------------------------------------------------------------------

    def hold_batch(self, producer: str, name: str) -> None:
        """Keep the next batch that the producer sends on its way."""
        source = self.producer(producer).host.node_id

        def is_it(message: Message) -> bool:
            return message.source == source and isinstance(message.body, ProduceRequest)

        self._production.note(f"the network holds the next batch of {producer}")
        self._machines.hold(is_it, name, times=1)

    def hold_answers(self, producer: str, name: str) -> None:
        """Keep every answer to the producer on its way."""
        target = self.producer(producer).host.node_id
        self._production.note(f"the network holds every answer to {producer}")
        self._machines.hold(lambda message: message.target == target, name)
