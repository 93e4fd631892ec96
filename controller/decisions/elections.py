"""Elections of leaders: those that a request asks for (ElectLeaders), and those that the active
controller holds from time to time.

A preferred election lets the first replica lead if it is in sync. An unclean election finds a
leader for a partition that has none, from outside the ISR if it must. The partitions of a request
fail or succeed by themselves.

Leaders drift away from the preferred replicas as brokers come and go. The controller moves them
back, a bounded number at a time. Kafka's leader.imbalance.per.broker.percentage means nothing
without ZooKeeper, and nothing here: every partition that its first replica can lead is moved to it.

Source: KIP-183, KIP-460, KIP-631; Kafka's ReplicationControlManager. Error messages are Kafka's,
since its tools print them.
"""

from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from controller.config import ControllerConfig
from controller.decisions import columns, failover
from controller.decisions.decision import CHANGES_MAX, Decision, refused
from controller.decisions.partition_changes import PartitionEditor
from controller.metadata import configs
from controller.metadata.changes import Change
from controller.metadata.configs import NO_ERROR, Refusal
from controller.metadata.election import Desired, Election
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState, Rows
from wire.errors import ErrorCode
from wire.messages import partitions as messages

__all__ = [
    "ELECTIONS_MAX",
    "decide_elect_leaders",
    "elect_overdue",
    "elect_preferred",
    "elect_unclean",
]

ELECTIONS_MAX = 500  # in one go: the rest follows at once
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


# --- that a request asks for ------------------------------------------------------------------


def decide_elect_leaders(
    image: MetadataImage, request: messages.ElectLeadersRequest, config: ControllerConfig
) -> Decision[messages.ElectLeadersResponse]:
    """Hold an election in the partitions that are named, or in all that need one."""
    how = _ELECTIONS.get(request.election_type)
    if how is None:
        message = f"Unknown election type {request.election_type}"
        return refused(request, Refusal(ErrorCode.INVALID_REQUEST, message))
    asked = request.topic_partitions
    rows = _rows_that_need_one(image, how)
    count = len(rows) if asked is None else sum(len(topic.partitions) for topic in asked)
    if count > CHANGES_MAX:
        message = f"One request may hold {CHANGES_MAX} elections. Ask for less at a time."
        return refused(request, Refusal(ErrorCode.POLICY_VIOLATION, message))
    editor = PartitionEditor(image, config)
    results = tuple(
        messages.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=tuple(
                _elect(editor, topic.topic, index, how) for index in topic.partitions
            ),
        )
        for topic in (_named(image, rows) if asked is None else asked)
    )
    response = messages.ElectLeadersResponse(replica_election_results=results)
    return Decision(response=response, changes=tuple(editor.changes), is_atomic=False)


def _rows_that_need_one(image: MetadataImage, how: Election) -> Rows:
    table = image.partitions
    is_preferred = how is Election.PREFERRED
    return table.rows_led_by_another() if is_preferred else table.rows_without_leader()


def _named(image: MetadataImage, rows: Rows) -> Iterable[messages.TopicPartitions]:
    found: dict[str, list[int]] = {}
    for topic_id, index, _ in image.partitions.partitions(rows):
        found.setdefault(image.topics.by_id[topic_id].name, []).append(index)
    return [
        messages.TopicPartitions(topic=name, partitions=tuple(sorted(indexes)))
        for name, indexes in sorted(found.items())
    ]


def _elect(
    editor: PartitionEditor, name: str, index: int, how: Election
) -> messages.PartitionElectionResult:
    topic = editor.image.topic(name)
    state = None if topic is None else editor.state(topic.id, index)
    if topic is None:
        found = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    elif state is None:
        message = f"No such partition as {name}-{index}"
        found = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    elif not _is_needed(state, how):
        found = _NOT_NEEDED
    elif editor.change(topic.id, index, Desired(election=how)) is None:
        found = _NOBODY[how]
    else:
        found = NO_ERROR
    return found.told(messages.PartitionElectionResult, partition_id=index)


def _is_needed(state: PartitionState, how: Election) -> bool:
    if how is Election.PREFERRED:
        return state.leader != state.replicas[0]
    return state.leader == NO_LEADER


# --- from time to time ------------------------------------------------------------------------


def elect_overdue(image: MetadataImage, config: ControllerConfig) -> tuple[Change, ...]:
    """Elect where there is no leader but an ISR member or eligible replica that could lead, or a
    last known leader where nobody else may.

    An election is recorded with the event that makes it possible; if there are many, in several
    batches and turns. Where a controller died between two of them, no other event would bring the
    rest. Of elections that cannot be decided as columns, at most `ELECTIONS_MAX` are held.
    """
    table = image.partitions
    rows = table.rows_without_leader()
    if not len(rows):
        return ()
    decided = columns.elected(image, rows, columns.Acceptable.active(image))
    odd = [
        row
        for row in rows[~decided.is_columnar].tolist()
        for state in (table.state(row),)
        if any(map(image.is_active, _candidates(state)))
    ]
    records = failover.elect_one_by_one(
        image, np.array(odd, np.int32), config, image.is_acceptable, Election.ONLINE
    )
    held = islice(records, ELECTIONS_MAX)
    return (*columns.block_of(decided, keep=decided.is_columnar), *held)


def _candidates(state: PartitionState) -> tuple[int, ...]:
    return (*state.isr, *state.eligible_leader_replicas, *state.last_known_elr)


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
    """Let the first replicas lead that can lead and do not."""
    table = image.partitions
    rows = np.setdiff1d(table.rows_led_by_another(), table.rows_without_leader())
    rows = rows.astype(np.int32)
    if not len(rows):
        return ()
    up = columns.Acceptable.active(image)
    decided = columns.elected(image, rows, up, prefers_first=True)
    moves = decided.is_columnar & (decided.leaders != decided.now.leader)
    block = columns.block_of(decided, keep=moves & (np.cumsum(moves) <= ELECTIONS_MAX))
    room = ELECTIONS_MAX - min(int(moves.sum()), ELECTIONS_MAX)
    # Of the other rows only those are worth an election whose first replica is up.
    odd = [
        row
        for row in rows[~decided.is_columnar].tolist()
        if image.is_active(table.state(row).replicas[0])
    ]
    records = failover.elect_one_by_one(
        image, np.array(odd, np.int32), config, image.is_acceptable, Election.PREFERRED
    )
    return (*block, *islice(records, room))
