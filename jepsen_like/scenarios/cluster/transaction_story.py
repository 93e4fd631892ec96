"""Tells of transactions: who coordinates them, what a coordinator writes down, and up to where
readers of committed records are held back.
"""

from broker.partition.partition import LeaderOf, Partition
from broker.transactions.transaction_records import TransactionChange, decode_change
from jepsen_like.scenarios.cluster.directed_transactions import COORDINATED, coordinator_on
from jepsen_like.scenarios.stage.story import Story, Told, appended_after
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.world.host import Host
from wire.batch import headers, records_of

__all__ = ["TransactionStory"]


class TransactionStory:
    """Is asked after each turn of a broker."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._told = Told(story)
        self._written: dict[int, Entry | None] = {}

    def forget(self, node: int) -> None:
        """Its process has ended: what it says next is news."""
        self._told.forget(node, ("coordinates", "stable"))

    def tell(self, host: Host, cluster: Cluster) -> None:
        node, broker = host.node_id, cluster.broker(host.node_id)
        if broker is None:
            return
        coordinates = coordinator_on(cluster, node) is not None or None
        self._told.tell("coordinates", node, coordinates, f"{node} coordinates transactions")
        written = host.disk.logs.get(COORDINATED)
        if written is None:
            return
        entries = appended_after(self._written.get(node), written.written.entries)
        self._written[node] = written.written.last
        leads = any(
            each.name == COORDINATED and isinstance(each.role, LeaderOf) for each in broker.replicas
        )
        for entry in entries if leads else ():
            for change in _changes_in(entry):
                self._story.tell(f"{node} writes down: {_described(change)}")

    def tell_stable(self, node: int, partition: Partition) -> None:
        """Readers of committed records get no further than this."""
        log = partition.open_log
        is_held = (
            isinstance(partition.role, LeaderOf) and log.last_stable_offset < log.high_watermark
        )
        stable = log.last_stable_offset if is_held else None
        self._told.tell("stable", node, stable, f"{node} holds readers back at {stable}")


def _changes_in(entry: Entry) -> list[TransactionChange]:
    """The changes that one batch records; a control batch records none."""
    (_, header), *_ = headers(entry.records)
    decoded = map(decode_change, () if header.is_control else records_of(entry.records))
    return [change for change in decoded if change is not None]


def _described(change: TransactionChange) -> str:
    transaction = change.transaction
    if transaction is None:
        return f"{change.transactional_id} is forgotten"
    places = "".join(f", {topic}-{index}" for topic, index in sorted(transaction.places))
    return (
        f"{transaction.id} is {transaction.state.label},"
        f" producer {transaction.producer_id} in epoch {transaction.producer_epoch}{places}"
    )
