"""Commands and conditions of transactions, in a cluster that has a transaction.version."""

from broker.transactions.transaction import Transaction, TransactionState
from jepsen_like.scenarios.cluster.directed_cluster import DirectedCluster
from jepsen_like.scenarios.cluster.directed_transactions import COORDINATED, DirectedTransactions
from jepsen_like.scenarios.language.forms import Forms
from jepsen_like.scenarios.stage.story import table
from wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

__all__ = ["CONDITIONS", "FORMS"]

FORMS = Forms()
CONDITIONS = Forms()
_OF = "transactions"
_UNDECIDED = (TransactionState.EMPTY, TransactionState.ONGOING)

# --- the coordinator --------------------------------------------------------------------------


@FORMS.form("coordinate transactions on NODES", "`__transaction_state-0` has these replicas")
def coordinate(cluster: DirectedCluster, nodes: list[int]) -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=tuple(nodes))
    topic = CreatableTopic(name=COORDINATED.rpartition("-")[0], assignments=(assignment,))
    cluster.ask(cluster.controller, CreateTopicsRequest(topics=(topic,)))
    first = nodes[0]
    cluster.until(lambda: cluster.transactions.is_coordinating(first), "transactions may begin")


FORMS.add("elect coordinator NODE", DirectedCluster.elect_coordinator)
CONDITIONS.add("NODE coordinates", DirectedTransactions.is_coordinating, "it serves", of=_OF)

# --- producers --------------------------------------------------------------------------------

FORMS.add("NAME = new producer of VALUE", DirectedTransactions.add, of=_OF)
FORMS.add(
    "NAME = new producer of VALUE, MS ms a transaction",
    DirectedTransactions.add,
    "the same, with transaction.timeout.ms",
    of=_OF,
)
FORMS.add("NAME writes VALUE to PARTITION", DirectedTransactions.write, of=_OF)
FORMS.add("hold the next batch of VALUE as NAME", DirectedTransactions.hold_batch, of=_OF)
FORMS.add("hold the answers to VALUE as NAME", DirectedTransactions.hold_answers, of=_OF)


@FORMS.form("NAME begins again", "it asks for its id once more, naming the epoch that it has")
def begin_again(cluster: DirectedCluster, name: str) -> None:
    cluster.transactions.producer(name).initialize(is_anew=False)


@FORMS.form("NAME commits", "once all that it has written is acknowledged")
def commits(cluster: DirectedCluster, name: str) -> None:
    cluster.transactions.producer(name).end(is_commit=True)


@FORMS.form("NAME aborts", "and gives up what is not acknowledged yet")
def aborts(cluster: DirectedCluster, name: str) -> None:
    cluster.transactions.producer(name).end(is_commit=False)


@CONDITIONS.form("NAME is done", "it has what it asked its coordinator for, or was refused")
def is_done(cluster: DirectedCluster, name: str) -> bool:
    return cluster.transactions.producer(name).is_done


# --- transactions -----------------------------------------------------------------------------


@CONDITIONS.form("the end of VALUE is decided", "its coordinator has it in its log")
def is_decided(cluster: DirectedCluster, value: str) -> bool:
    transaction = cluster.transactions.transaction(value)
    return transaction is not None and transaction.state not in _UNDECIDED


@CONDITIONS.form("VALUE is over", "its transaction has its marker in every partition")
def is_over(cluster: DirectedCluster, value: str) -> bool:
    transaction = cluster.transactions.transaction(value)
    return transaction is not None and transaction.state.is_over


@FORMS.form("transactions", "each transactional id, as its coordinator has it")
def transactions(cluster: DirectedCluster) -> None:
    ids = {producer.transactional_id for producer in cluster.transactions.producers.values()}
    known = [cluster.transactions.transaction(each) for each in sorted(ids)]
    rows = [_row(each) for each in known if each is not None]
    heading = ("transactional id", "producer", "epoch", "state", "partitions")
    cluster.story.tell(*table(heading, rows))


def _row(transaction: Transaction) -> tuple[object, ...]:
    places = ", ".join(f"{topic}-{index}" for topic, index in sorted(transaction.places))
    return (
        transaction.id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state.label,
        places or None,
    )
