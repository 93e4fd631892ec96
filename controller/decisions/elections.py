"""ElectLeaders: the elections that somebody asks for.

A preferred election puts the first replica in charge where it is in sync; an unclean one finds a
leader for a partition that has none, from outside the ISR if it must. Partitions of a request fail
or succeed by themselves. Elections that happen in time by themselves: `periodic_elections`.

Source: KIP-183, KIP-460; Kafka's ReplicationControlManager. Error messages are Kafka's: its tools
print them.

Elections that nobody asks for: the active controller holds them in good time.

Leaders drift away from the preferred ones as brokers come and go; they are led back a number at a
time. Kafka's key for a share of leaders per broker that must be wrong first
(leader.imbalance.per.broker.percentage) means nothing without ZooKeeper, and nothing here: every
partition that can be led by its first replica will be.

Source: KIP-631; Kafka's ReplicationControlManager.
"""

from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from controller import refusals
from controller.config import ControllerConfig
from controller.decisions import columns, failover
from controller.decisions.decision import CHANGES_MAX, Decision
from controller.decisions.partition_changes import Edits
from controller.metadata import configs
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal
from controller.metadata.election import Election, Wish
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState, Rows
from wire.errors import ErrorCode
from wire.messages.partitions import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionElectionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

__all__ = [
    "ELECTIONS_MAX",
    "decide_elect_leaders",
    "elect_overdue",
    "elect_preferred",
    "elect_unclean",
]


_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}  # by the request's election type
_NOT_NEEDED = Refusal(
    ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)
_NOBODY: Mapping[Election, Refusal] = {
    Election.PREFERRED: Refusal(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    Election.UNCLEAN: Refusal(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    ),
}


def decide_elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, config: ControllerConfig
) -> Decision[ElectLeadersResponse]:
    """Hold an election in the partitions that are named, or in all that need one."""
    how = _ELECTIONS.get(request.election_type)
    if how is None:
        message = f"Unknown election type {request.election_type}"
        return _refused(request, ErrorCode.INVALID_REQUEST, message)
    asked = request.topic_partitions
    rows = _rows_that_need_one(image, how)
    count = len(rows) if asked is None else sum(len(topic.partitions) for topic in asked)
    if count > CHANGES_MAX:
        message = f"One request may hold {CHANGES_MAX} elections. Ask for less at a time."
        return _refused(request, ErrorCode.POLICY_VIOLATION, message)
    wanted = _named(image, rows) if asked is None else asked
    edits = Edits(image, config)
    results = tuple(
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=tuple(
                _result(index, _elect(image, edits, topic.topic, index, how))
                for index in topic.partitions
            ),
        )
        for topic in wanted
    )
    response = ElectLeadersResponse(replica_election_results=results)
    return Decision(response=response, changes=tuple(edits.changes), is_atomic=False)


def _refused(
    request: ElectLeadersRequest, error: ErrorCode, message: str
) -> Decision[ElectLeadersResponse]:
    return Decision(response=refusals.elect_leaders(request, error, message))


def _rows_that_need_one(image: MetadataImage, how: Election) -> Rows:
    """Partitions that have the leader that is wanted are left out of the answer."""
    table = image.partitions
    is_preferred = how is Election.PREFERRED
    return table.rows_led_by_another() if is_preferred else table.rows_without_leader()


def _named(image: MetadataImage, rows: Rows) -> Iterable[TopicPartitions]:
    found: dict[str, list[int]] = {}
    for row in rows.tolist():
        place = image.partitions.place(row)
        assert place is not None, f"row {row} is free but has a leader"
        found.setdefault(image.topics.by_id[place[0]].name, []).append(place[1])
    return [
        TopicPartitions(topic=name, partitions=tuple(sorted(indexes)))
        for name, indexes in sorted(found.items())
    ]


def _result(index: int, refusal: Refusal | None) -> PartitionElectionResult:
    return PartitionElectionResult(
        partition_id=index,
        error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message,
    )


def _elect(
    image: MetadataImage, edits: Edits, name: str, index: int, how: Election
) -> Refusal | None:
    topic = image.topic(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    state = edits.state(topic.id, index)
    if state is None:
        message = f"No such partition as {name}-{index}"
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if not _is_needed(state, how):
        return _NOT_NEEDED
    after = edits.change(topic.id, index, Wish(election=how))
    return _NOBODY[how] if after is None else None


def _is_needed(state: PartitionState, how: Election) -> bool:
    if how is Election.PREFERRED:
        return state.leader != state.replicas[0]
    return state.leader == NO_LEADER


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
    records = failover.elect_one_by_one(
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
    records = failover.elect_one_by_one(
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
    return failover.elect_one_by_one(
        image, np.array(worth, np.int32), config, image.is_acceptable, Election.PREFERRED
    )
