"""Elections that nobody asks for: the active controller holds them in good time.

Leaders drift away from the preferred ones as brokers come and go; they are led back a number at a
time. Kafka's key for a share of leaders per broker that must be wrong first
(leader.imbalance.per.broker.percentage) means nothing without ZooKeeper, and nothing here: every
partition that can be led by its first replica will be.

Source: KIP-631; Kafka's ReplicationControlManager.
"""

from collections.abc import Iterable
from itertools import islice

import numpy as np

from controller.config import ControllerConfig
from controller.decisions import columns, partitions
from controller.metadata import configs
from controller.metadata.changes import Change
from controller.metadata.election import Election
from controller.metadata.image import MetadataImage

__all__ = ["ELECTIONS_MAX", "elect_overdue", "elect_preferred", "elect_unclean"]

ELECTIONS_MAX = 1000  # in one go: the rest follows at once


def elect_overdue(image: MetadataImage, config: ControllerConfig) -> tuple[Change, ...]:
    """Elect where there is no leader, and an ISR or eligible replica that could be it.

    Elections come with what makes them possible, but not in one batch if they are many: where a
    controller died between two batches, nothing else would ever come.
    """
    table = image.partitions
    rows = table.rows_without_leader()
    if not len(rows):
        return ()
    is_up = {id_: broker.is_active for id_, broker in image.brokers.items()}
    decided = columns.elected(image, rows, columns.Acceptable.of(image, is_up))
    odd = [
        row
        for row in rows[~decided.is_columnar].tolist()
        for state in (table.state(row),)
        if any(map(image.is_active, (*state.isr, *state.eligible_leader_replicas)))
    ]
    records = partitions.elect_one_by_one(
        image, np.array(odd, np.int32), config, image.is_acceptable, Election.ONLINE
    )
    return (*columns.block_of(decided, keep=decided.is_columnar), *records)


def elect_unclean(image: MetadataImage, config: ControllerConfig) -> tuple[Change, ...]:
    """Elect from outside the ISR where there is no leader and the topic allows it."""
    unclean = configs.topics_with_unclean_election(image, config.static_configs)
    rows = image.partitions.rows_without_leader()
    if not unclean or not len(rows):
        return ()
    allowed = columns.rows_of_topics(image, rows, unclean)
    records = partitions.elect_one_by_one(
        image, allowed, config, image.is_acceptable, Election.UNCLEAN
    )
    return tuple(islice(records, ELECTIONS_MAX))


def elect_preferred(image: MetadataImage, config: ControllerConfig) -> tuple[Change, ...]:
    """Let first replicas lead that can and do not."""
    table = image.partitions
    rows = np.setdiff1d(table.rows_led_by_another(), table.rows_without_leader())
    rows = rows.astype(np.int32)
    if not len(rows):
        return ()
    is_up = {id_: broker.is_active for id_, broker in image.brokers.items()}
    decided = columns.elected(image, rows, columns.Acceptable.of(image, is_up), prefers_first=True)
    moves = decided.is_columnar & (decided.leaders != decided.now.leader)
    block = columns.block_of(decided, keep=moves & (np.cumsum(moves) <= ELECTIONS_MAX))
    room = ELECTIONS_MAX - min(int(moves.sum()), ELECTIONS_MAX)
    odd = rows[~decided.is_columnar].tolist()
    return (*block, *islice(_one_by_one(image, odd, config), room))


def _one_by_one(
    image: MetadataImage, rows: Iterable[int], config: ControllerConfig
) -> Iterable[Change]:
    """Only first replicas that are up are worth an election."""
    table = image.partitions
    worth = [row for row in rows if image.is_active(table.state(row).replicas[0])]
    return partitions.elect_one_by_one(
        image, np.array(worth, np.int32), config, image.is_acceptable, Election.PREFERRED
    )
