"""Questions to the nodes of a cluster: asked side by side, and none for longer than the limit.

Here is what both kinds of clusters are asked: see `own_cluster.py` and `any_cluster.py`.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.live import DESCRIBE_QUORUM, client_of
from quorumlab.inspection.states import Replay
from quorumlab.inspection.target import Address
from quorumlab.top.cluster_view import (
    ClusterView,
    ControllerSight,
    Counted,
    Partitions,
    of_metadata,
    rates,
)
from quorumlab.top.log_follower import LogFollower
from wire.errors import ErrorCode
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
)
from wire.messages.voters import DescribeQuorumResponse, QuorumPartitionResult

__all__ = [
    "LIMIT_SECONDS",
    "NO_ANSWER",
    "Answers",
    "Observer",
    "Panel",
    "Question",
    "Questions",
    "Rates",
    "active_in",
    "ask",
    "controller_sight",
    "counted",
    "is_fenced",
    "lag_of",
    "metadata_question",
    "partitions_in",
    "quorum_in",
    "quorum_question",
    "without_topics",
]

LIMIT_SECONDS = 0.5
_THREADS = 32
NO_ANSWER = "no answer"

Question = tuple[str, int]  # what is asked, and whom
Questions = dict[Question, Callable[[], Any]]
Answers = Mapping[Question, Any]
Answer = TypeVar("Answer")


class Observer(Protocol):
    def look(self) -> ClusterView:
        """Everything but the log."""
        ...


class Panel:
    """Asks many questions at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="asking")

    def ask(self, questions: Questions, *, limit_seconds: float = LIMIT_SECONDS) -> Answers:
        """The answers that come within the limit; a refusal is none."""
        asked = {self._threads.submit(_heard, each): key for key, each in questions.items()}
        done, late = wait(asked, timeout=limit_seconds)
        for each in late:
            each.cancel()
        return {asked[each]: told for each in done if (told := each.result()) is not None}


def _heard(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except (ClusterError, OSError, ValueError):
        return None


def ask(address: Address, request: object, expected: type[Answer]) -> Answer:
    with client_of(address, LIMIT_SECONDS) as client:
        return client.ask(request, expected)


class Rates:
    """Remembers the last counters of each broker."""

    def __init__(self) -> None:
        self._last: dict[int, Counted] = {}

    def of(self, broker_id: int, now: Counted | None) -> tuple[float | None, float | None]:
        before = self._last.get(broker_id)
        if now is not None:
            self._last[broker_id] = now
        return rates(before, now)


def active_in(pulses: Mapping[int, Any]) -> tuple[int | None, int | None]:
    """The active controller, and the newest epoch: what nodes say of themselves, by node id."""
    told = [(each["quorum"], node) for node, each in pulses.items()]
    leaders = [(quorum["epoch"], node) for quorum, node in told if quorum["role"] == "leader"]
    epochs = [quorum["epoch"] for quorum, _ in told if quorum["epoch"] >= 0]
    return (max(leaders)[1] if leaders else None), max(epochs, default=None)


def controller_sight(
    node_id: int, pulse: Any, gone: str, quorum: QuorumPartitionResult | None
) -> ControllerSight:
    """`gone`: why there is no pulse."""
    lag = lag_of(quorum, node_id)
    if pulse is None:
        return ControllerSight(node_id, gone, None, *lag, answers=False)
    own = pulse["quorum"]
    is_observer = own["role"] == "follower" and not own["is_voter"]
    role = "observer" if is_observer else own["role"]
    return ControllerSight(node_id, role, own["epoch"], *lag)


def counted(pulse: Mapping[str, Any]) -> Counted:
    """What a node's /v1/pulse counts: requests of clients and other nodes; bytes of both ways."""
    return Counted(time.monotonic(), pulse["requests"], pulse["bytes"])


def quorum_in(answers: Answers) -> tuple[QuorumPartitionResult | None, DescribeQuorumResponse]:
    """As the leader of the newest epoch describes it; nobody else's word counts."""
    best: QuorumPartitionResult | None = None
    response = DescribeQuorumResponse()
    for (kind, _), told in answers.items():
        if kind != "quorum" or told.error_code is not ErrorCode.NONE or not told.topics:
            continue
        found = told.topics[0].partitions[0]
        is_led = found.error_code is ErrorCode.NONE and found.leader_id >= 0
        if is_led and (best is None or found.leader_epoch > best.leader_epoch):
            best, response = found, told
    return best, response


def lag_of(quorum: QuorumPartitionResult | None, node_id: int) -> tuple[int | None, int | None]:
    """Records and milliseconds behind the leader, as the leader sees it."""
    if quorum is None:
        return None, None
    replicas = {each.replica_id: each for each in (*quorum.observers, *quorum.current_voters)}
    leader, own = replicas.get(quorum.leader_id), replicas.get(node_id)
    if leader is None or own is None or own.log_end_offset < 0:
        return None, None
    behind_ms = leader.last_caught_up_timestamp - own.last_caught_up_timestamp
    ms = None if own.last_caught_up_timestamp < 0 else max(0, behind_ms)
    return max(0, leader.log_end_offset - own.log_end_offset), ms


def metadata_question(address: Address) -> Callable[[], Partitions]:
    request = MetadataRequest(allow_auto_topic_creation=False)
    return lambda: of_metadata(ask(address, request, MetadataResponse))


def without_topics(address: Address) -> Callable[[], MetadataResponse]:
    """The brokers that clients are told of."""
    request = MetadataRequest(topics=(), allow_auto_topic_creation=False)
    return lambda: ask(address, request, MetadataResponse)


def partitions_in(follower: LogFollower, answers: Answers) -> Partitions | None:
    """From the log, which costs the cluster nothing; else as a broker has told them."""
    told = (found for (kind, _), found in answers.items() if kind == "metadata")
    return follower.partitions or next(told, None)


def is_fenced(state: Replay | None, broker_id: int) -> bool:
    known = None if state is None else state.image.brokers.get(broker_id)
    return known is not None and known.fenced


def quorum_question(address: Address) -> Callable[[], DescribeQuorumResponse]:
    return lambda: ask(address, DESCRIBE_QUORUM, DescribeQuorumResponse)
