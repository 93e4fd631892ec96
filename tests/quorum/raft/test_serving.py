"""How a leader answers fetches: refusals in order, parking, and what wakes it."""

import pytest

from quorum.core.effects import Effect, Read, ReadDone, Reply, Request, Stored, Token
from quorum.core.parking import PARKED_MAX
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.raft import leading, serving
from quorum.raft.leading import OBSERVERS_MAX
from quorum.raft.messages import fetch_request
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader
from quorum.raft.serving import WATERMARK_LINGER_MS
from tests.quorum.replicas import Replicas, config
from tests.quorum.turns import give
from wire.batch import data_batch, headers
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import FetchedPartition, FetchRequest, FetchResponse

OBSERVER = 9


@pytest.fixture
def leader() -> RaftNode:
    """A leader of three in epoch 1 that has committed its LeaderChange and owes nobody anything."""
    cluster = Replicas(seed=3)
    node = cluster.elect()
    cluster.run(700)
    for other in set(cluster.ids) - {node.node_id}:
        cluster.crash(other)
    cluster.run(600)
    assert isinstance(node.role, Leader)
    assert len(node.role.parked) == 0
    return node


def ask(
    leader: RaftNode,
    *,
    offset: int,
    last_epoch: int = 1,
    epoch: int = 1,
    known: int | None = 1,
    by: int = 0,
) -> FetchRequest:
    asker = by or next(n for n in (1, 2, 3) if n != leader.node_id)
    return fetch_request(
        config(asker),
        epoch=epoch,
        end=OffsetAndEpoch(offset=offset, epoch=last_epoch),
        high_watermark=known,
    )


def answers(
    node: RaftNode, request: FetchRequest | None, now_ms: int = 2000
) -> list[FetchedPartition]:
    """Deliver a fetch, or the time; the partitions of the answers that leave, reads served."""
    node.take_effects()
    if request is None:
        node.settle(now_ms)
    else:
        give(node, Request(token=now_ms, body=request), now_ms)
    found: list[FetchedPartition] = []
    effects = node.take_effects()
    for effect in effects:
        if isinstance(effect, Read):
            give(node, ReadDone(token=effect.token, log=METADATA_LOG, records=b"read"), now_ms)
            effects += node.take_effects()
        if isinstance(effect, Reply):
            assert isinstance(effect.body, FetchResponse)
            found += effect.body.responses[0].partitions
    return found


def newest(effects: list[Effect]) -> list[bytes | None]:
    """The records of the answers that leave."""
    bodies = [effect.body for effect in effects if isinstance(effect, Reply)]
    answered = [body for body in bodies if isinstance(body, FetchResponse)]
    return [body.responses[0].partitions[0].records for body in answered]


def test_fetch_of_the_newest_records_is_answered_at_once(leader: RaftNode) -> None:
    (answer,) = answers(leader, ask(leader, offset=0, last_epoch=0))
    assert answer.records is not None
    assert [header.next_offset for _, header in headers(answer.records)] == [1]
    assert answer.high_watermark == 1
    assert answer.current_leader.leader_id == leader.node_id


def test_fetch_of_what_is_not_in_memory_is_answered_when_it_was_read(leader: RaftNode) -> None:
    leader.replica.log.tail.clear()
    (answer,) = answers(leader, ask(leader, offset=0, last_epoch=0))
    assert (answer.records, answer.high_watermark) == (b"read", 1)


def test_fetch_at_the_end_waits_for_its_time(leader: RaftNode) -> None:
    assert answers(leader, ask(leader, offset=1), now_ms=2000) == []
    assert leader.deadline_ms() == 2500
    assert answers(leader, None, now_ms=2499) == []
    (answer,) = answers(leader, None, now_ms=2500)
    assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")


def test_observer_that_knows_less_committed_is_answered_at_once(leader: RaftNode) -> None:
    (answer,) = answers(leader, ask(leader, offset=1, known=None, by=OBSERVER))
    assert answer.high_watermark == 1


def test_voter_that_knows_less_committed_is_told_a_moment_later(leader: RaftNode) -> None:
    """Records usually come first, and bring the watermark with them."""
    assert answers(leader, ask(leader, offset=1, known=None), now_ms=2000) == []
    assert leader.deadline_ms() == 2000 + WATERMARK_LINGER_MS
    assert answers(leader, None, now_ms=2000 + WATERMARK_LINGER_MS - 1) == []
    (answer,) = answers(leader, None, now_ms=2000 + WATERMARK_LINGER_MS)
    assert answer.high_watermark == 1
    assert isinstance(leader.role, Leader)
    assert leader.role.watermark_due_ms is None, "the next one waits for as long"


def test_voter_that_knows_less_hears_of_it_with_records_at_once(leader: RaftNode) -> None:
    answers(leader, ask(leader, offset=1, known=None), now_ms=2000)
    leader.append(data_batch([b"x"], timestamp_ms=0), 2001)
    (records,) = newest(leader.take_effects())
    assert records


def test_append_wakes_a_parked_fetch(leader: RaftNode) -> None:
    answers(leader, ask(leader, offset=1), now_ms=2000)
    leader.append(data_batch([b"x"], timestamp_ms=0), 2001)
    (records,) = newest(leader.take_effects())
    assert records is not None
    found = [(header.base_offset, header.next_offset) for _, header in headers(records)]
    assert found == [(1, 2)]


def test_higher_watermark_wakes_an_observers_fetch(leader: RaftNode) -> None:
    leader.append(data_batch([b"x"], timestamp_ms=0), 2000)
    assert answers(leader, ask(leader, offset=2, by=OBSERVER)) == []
    assert answers(leader, ask(leader, offset=2), now_ms=2001) == []
    give(leader, Stored(log=METADATA_LOG, token=Token("raft", 10**6)), 2002)
    (reply,) = (effect for effect in leader.take_effects() if isinstance(effect, Reply))
    assert reply.token == 2000, "the observer's"
    assert isinstance(reply.body, FetchResponse)
    assert reply.body.responses[0].partitions[0].high_watermark == 2


def test_lost_leadership_is_told_to_all_that_wait(leader: RaftNode) -> None:
    answers(leader, ask(leader, offset=1), now_ms=2000)
    leader.take_effects()
    leader.replica.log.tail.clear()
    give(leader, Request(token=8, body=ask(leader, offset=0, last_epoch=0)), 2001)
    (read,) = (effect for effect in leader.take_effects() if isinstance(effect, Read))
    leader.resign(2002)
    replies = [effect for effect in leader.take_effects() if isinstance(effect, Reply)]
    assert [reply.token for reply in replies] == [2000, 8]
    for reply in replies:
        assert isinstance(reply.body, FetchResponse)
        error = reply.body.responses[0].partitions[0].error_code
        assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    give(leader, ReadDone(token=read.token, log=METADATA_LOG, records=b"late"), 2003)
    assert not any(isinstance(effect, Reply) for effect in leader.take_effects())


def test_diverging_fetch_is_told_where_its_epoch_ended_and_does_not_count(
    leader: RaftNode,
) -> None:
    assert isinstance(leader.role, Leader)
    before = {n: p.last_fetch_ms for n, p in leader.role.progress.items()}
    (answer,) = answers(leader, ask(leader, offset=9))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, 1)
    assert {n: p.last_fetch_ms for n, p in leader.role.progress.items()} == before


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"offset": 0, "last_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"offset": 0, "last_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"offset": 0, "last_epoch": 0, "epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"offset": 0, "epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_fetch_is_refused(leader: RaftNode, request_: dict[str, int], error: ErrorCode) -> None:
    (answer,) = answers(leader, ask(leader, **request_))
    assert answer.error_code is error
    assert answer.current_leader.leader_id == leader.node_id


@pytest.mark.parametrize(
    ("max_wait_ms", "error"), [(-1, ErrorCode.INVALID_REQUEST), (0, ErrorCode.NONE)]
)
def test_negative_wait_is_refused(leader: RaftNode, max_wait_ms: int, error: ErrorCode) -> None:
    (answer,) = answers(leader, replace(ask(leader, offset=1), max_wait_ms=max_wait_ms))
    assert answer.error_code is error


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topics": ()}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_fetch_is_refused_as_a_whole(
    leader: RaftNode, change: dict[str, object], error: ErrorCode
) -> None:
    request = replace(ask(leader, offset=1), **change)
    give(leader, Request(token=1, body=request), 2000)
    (reply,) = (effect for effect in leader.take_effects() if isinstance(effect, Reply))
    assert isinstance(reply.body, FetchResponse)
    assert (reply.body.error_code, reply.body.responses) == (error, ())


def test_client_without_replica_id_is_served_but_not_counted(leader: RaftNode) -> None:
    request = ask(leader, offset=0, last_epoch=0)
    request = replace(request, replica_state=replace(request.replica_state, replica_id=-1))
    assert len(answers(leader, request)) == 1
    assert isinstance(leader.role, Leader)
    assert leader.role.observers == {}


def test_node_zero_is_counted(leader: RaftNode) -> None:
    request = ask(leader, offset=1)
    request = replace(request, replica_state=replace(request.replica_state, replica_id=0))
    answers(leader, request)
    assert isinstance(leader.role, Leader)
    assert [key.id for key in leader.role.observers] == [0]


def test_observer_is_known_for_the_whole_of_its_session(leader: RaftNode) -> None:
    assert isinstance(leader.role, Leader)
    session_ms = leader.replica.config.observer_session_ms
    for node_id, now_ms in ((100, 1999), (101, 2000), (102, 2000 + session_ms)):
        leading.track(leader.replica, leader.role, ReplicaKey(node_id), 1, now_ms=now_ms)
    assert list(leader.role.observers) == [ReplicaKey(101), ReplicaKey(102)]


def test_fetch_under_our_own_id_is_not_counted(leader: RaftNode) -> None:
    assert isinstance(leader.role, Leader)
    answers(leader, ask(leader, offset=1, by=leader.node_id))
    assert leader.node_id not in leader.role.progress
    assert leader.role.observers == {}


def test_observers_are_bounded(leader: RaftNode) -> None:
    assert isinstance(leader.role, Leader)
    for n in range(OBSERVERS_MAX + 10):
        leading.track(leader.replica, leader.role, ReplicaKey(100 + n), 1, now_ms=2000 + n)
    assert len(leader.role.observers) == OBSERVERS_MAX
    assert ReplicaKey(100) not in leader.role.observers


def test_full_car_park_answers_at_once(leader: RaftNode) -> None:
    assert isinstance(leader.role, Leader)
    for _ in range(PARKED_MAX):
        serving.fetch(leader.replica, leader.role, 1, ask(leader, offset=1), now_ms=2000)
    assert len(leader.role.parked) == PARKED_MAX
    outbox = leader.replica.outbox
    assert outbox.take() == []
    serving.fetch(leader.replica, leader.role, 2, ask(leader, offset=1), now_ms=2000)
    (reply,) = outbox.take()
    assert isinstance(reply, Reply)
    assert reply.token == 2


def test_a_host_that_floods_the_log_takes_no_room_from_others(leader: RaftNode) -> None:
    assert isinstance(leader.role, Leader)
    request = ask(leader, offset=1)

    def ask_from(host: str, token: int) -> None:
        assert isinstance(leader.role, Leader)
        serving.fetch(leader.replica, leader.role, token, request, host=host, now_ms=2000)

    for token in range(serving.OF_HOST_MAX + 1):
        ask_from("10.6.6.6", token)
    (reply,) = leader.replica.outbox.take()
    assert isinstance(reply, Reply)
    assert reply.token == serving.OF_HOST_MAX
    ask_from("10.0.0.1", 999)
    assert leader.replica.outbox.take() == []
    assert len(leader.role.parked) == serving.OF_HOST_MAX + 1
