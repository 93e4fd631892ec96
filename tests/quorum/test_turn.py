"""What a turn promises to whoever runs a core: order, bounds, one settlement, and what leaves."""

from collections.abc import Iterable

import pytest

from quorum.core.effects import (
    Append,
    Effect,
    Event,
    Failure,
    HangUp,
    Reply,
    Request,
    RequestFailed,
    Send,
    StorageFailed,
    Stored,
    Token,
    Trace,
)
from quorum.core.inbox import is_control
from quorum.core.turn import CLIENTS_MAX, Turn
from quorum.core.types import Endpoint
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import FetchRequest, ReplicaState
from wire.messages.metadata import DescribeClusterRequest
from wire.messages.registration import BrokerHeartbeatRequest
from wire.zk.session import Error, Exists, Failed

LOG = "a log"
PEER = Endpoint(2, "peer", 9093)
HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=1, broker_epoch=1, current_metadata_offset=0, want_fence=False, want_shut_down=False
)
WRITE = Append(log=LOG, token=Token("core", 1), records=b"r")
REPLY = Reply(token=1, body="done")
SEND = Send(token=Token("core", 2), to=PEER, channel="c", body="fetch", timeout_ms=9)
ASK = ZkRequest(token=Token("core", 3), session_id=7, operation=Exists(path="/n"))
FAILED = StorageFailed(log=LOG, token=Token("core", 1), reason="no space")


class Core:
    """Notes what is done to it; `decisive` events end the batch before them."""

    def __init__(self, *effects: Effect, decisive: Iterable[Event] = ()) -> None:
        self.notes: list[object] = []
        self._effects = list(effects)
        self._decisive = tuple(decisive)

    def receive(self, event: Event, now_ms: int) -> None:
        self.notes.append(event)

    def ends_batch(self, event: Event) -> bool:
        return event in self._decisive

    def settle(self, now_ms: int) -> None:
        self.notes.append("settled")

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects


def stored(number: int) -> Stored:
    return Stored(log=LOG, token=Token("core", number))


def asked(token: int, body: object = HEARTBEAT) -> Request:
    return Request(token=token, body=body)


def test_a_core_settles_once_however_much_came_in() -> None:
    turn, core = Turn[str](), Core()
    events = [stored(number) for number in range(5)]
    for event in events:
        turn.add(event)
    turn.take(core, 0)
    assert core.notes == [*events, "settled"]


def test_a_core_settles_though_nothing_came_in() -> None:
    """Its deadline may have come."""
    core = Core()
    Turn[str]().take(core, 0)
    assert core.notes == ["settled"]


def test_what_came_before_a_decisive_event_is_settled_before_it() -> None:
    turn, core = Turn[str](), Core(decisive=[stored(1)])
    for number in range(3):
        turn.add(stored(number))
    turn.take(core, 0)
    assert core.notes == [stored(0), "settled", stored(1), stored(2), "settled"]


def test_a_turn_is_bounded_and_the_rest_is_of_the_next() -> None:
    turn, core = Turn[str](), Core()
    for number in range(3):
        turn.add(stored(number))
        turn.add_request(asked(number, DescribeClusterRequest()), "client")
    turn.take(core, 0, control_max=2, clients_max=2)
    assert core.notes == [stored(0), stored(1), "settled"]
    turn.take(core, 0, control_max=2, clients_max=2)
    assert [getattr(note, "token", note) for note in core.notes[3:]] == [
        stored(2).token,
        0,
        1,
        "settled",
    ]
    assert len(turn.inbox.clients) == 1


def test_a_core_hears_of_a_failed_disk_before_anything_that_waits() -> None:
    """Found by cluster seed 191001337 of the simulator: a follower took a leader's answer in the
    turn before it heard that its log had failed, and fetched on from behind records that were not
    written."""
    turn, core = Turn[str](), Core()
    other = StorageFailed(log="another", token=Token("core", 4), reason="its directory")
    turn.add(stored(0))
    for event in (FAILED, stored(1), other):
        turn.add(event)
    turn.take(core, 0, control_max=1)
    assert core.notes == [FAILED, "settled"]
    turn.add(third := StorageFailed(log="a third", token=Token("core", 5), reason="its directory"))
    turn.take(core, 0)
    assert core.notes[2:] == [other, third, stored(0), stored(1), "settled"]
    turn.add(stored(2))
    turn.add(FAILED)
    turn.take(core, 0)
    assert core.notes[7:] == [FAILED, stored(2), "settled"]


def lasting(turn: Turn[str], core: Core, seconds: float, *, clients: int) -> int:
    """How many requests the next turn should have after one that had `clients` of those waiting."""
    turn.take(core, 0, clients_max=clients)
    turn.lasted(seconds)
    return turn.clients_max


def flooded() -> Turn[str]:
    turn = Turn[str]()
    for number in range(1000):
        turn.add_request(asked(number, DescribeClusterRequest()), "client")
    return turn


def test_long_turns_are_followed_by_turns_with_fewer_clients() -> None:
    turn, core = flooded(), Core()
    assert turn.clients_max == CLIENTS_MAX == 64
    seen = [
        lasting(turn, core, seconds, clients=turn.clients_max)
        for seconds in [0.0101] * 8 + [0.01] * 8
    ]
    assert seen == [32, 16, 8, 4, 2, 1, 1, 1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_short_turns_without_as_many_clients_do_not_show_that_there_may_be_more() -> None:
    """Such as those for the answers of the disk, which follow each turn with clients."""
    turn, core = flooded(), Core()
    assert lasting(turn, core, 0.02, clients=64) == 32
    assert lasting(turn, core, 0.001, clients=0) == 32
    assert lasting(turn, core, 0.02, clients=32) == 16
    turn.inbox.take(control_max=0, clients_max=1000)
    turn.add_request(asked(1000, DescribeClusterRequest()), "client")
    assert lasting(turn, core, 0.001, clients=16) == 16


def test_what_nodes_wait_for_is_of_the_control_plane() -> None:
    """Fetches of followers, and what opens every connection; not fetches of consumers."""
    follower, consumer = (
        FetchRequest(
            replica_state=ReplicaState(replica_id=n), max_wait_ms=1, min_bytes=1, topics=()
        )
        for n in (0, -1)
    )
    assert list(map(is_control, [asked(1, follower), asked(2, ApiVersionsRequest())])) == [True] * 2
    assert not is_control(asked(3, consumer))


def test_actions_have_their_place_among_events() -> None:
    turn, core = Turn[str](), Core()
    turn.add(stored(0))
    turn.add(lambda now_ms: core.notes.append(now_ms))
    turn.add(stored(1))
    turn.take(core, 42)
    assert core.notes == [stored(0), 42, stored(1), "settled"]


def test_writes_come_first_and_what_is_told_leaves_last() -> None:
    turn = Turn[str]()
    trace = Trace(event="e")
    assert turn.take(Core(REPLY, WRITE, SEND, trace, ASK), 0) == [WRITE, trace]
    assert turn.leaving([stored(1)]) == [REPLY, SEND, ASK]
    assert turn.leaving([]) == []


def test_nothing_leaves_that_rests_on_a_failed_write_and_nobody_waits_for_it() -> None:
    turn, core = Turn[str](), Core(WRITE, REPLY, SEND, ASK)
    turn.take(core, 0)
    assert turn.leaving([stored(1), FAILED, stored(2)]) == [HangUp(token=REPLY.token)]
    turn.take(core, 0)
    assert core.notes[1:] == [
        FAILED,
        stored(1),
        stored(2),
        RequestFailed(token=SEND.token, failure=Failure.DISCONNECTED),
        ZkResult(token=ASK.token, result=Failed(error=Error.CONNECTION_LOSS)),
        "settled",
    ]


def test_what_the_next_turn_tells_leaves_though_this_one_failed() -> None:
    turn = Turn[str]()
    turn.take(Core(WRITE, REPLY), 0)
    turn.leaving([FAILED])
    turn.take(Core(SEND), 0)
    assert turn.leaving([]) == [SEND]


def test_a_request_is_answered_once() -> None:
    turn = Turn[str]()
    turn.add_request(asked(1), "who asked")
    assert list(turn.unanswered) == ["who asked"]
    assert turn.answered(1) == "who asked"
    assert list(turn.unanswered) == []
    with pytest.raises(AssertionError, match="has been answered"):
        turn.answered(1)
    turn.add_request(asked(2), "another")
    with pytest.raises(AssertionError, match="is there already"):
        turn.add_request(asked(2), "another")
