"""What leaves when: messages wait for the election that they speak of. Who hears which answer."""

from quorum.core.effects import (
    Append,
    Durability,
    Effect,
    Event,
    Reply,
    SaveElection,
    Stored,
    Trace,
)
from quorum.core.outbox import Outbox
from quorum.core.types import ElectionState
from quorum.raft.raft_outbox import HoldingOutbox


def replies(effects: list[Effect]) -> list[int]:
    return [effect.token for effect in effects if isinstance(effect, Reply)]


def test_message_leaves_at_once_while_nothing_is_being_saved() -> None:
    outbox = HoldingOutbox("log")
    outbox.on_log(Append, records=b"x", durability=Durability.SYNCED)
    outbox.send(Reply(token=1, body=None))
    assert replies(outbox.take()) == [1]


def test_message_waits_until_the_election_is_stored() -> None:
    outbox = HoldingOutbox("log")
    outbox.save(ElectionState(epoch=1))
    outbox.send(Reply(token=1, body=None))
    (saved,) = outbox.take()
    assert isinstance(saved, SaveElection)
    outbox.stored(saved.token.number - 1)
    assert outbox.take() == []
    outbox.stored(saved.token.number)
    assert replies(outbox.take()) == [1]


def test_messages_are_released_in_order_and_only_as_far_as_stored() -> None:
    outbox = HoldingOutbox("log")
    outbox.save(ElectionState(epoch=1))
    outbox.send(Reply(token=1, body=None))
    outbox.save(ElectionState(epoch=2))
    outbox.send(Reply(token=2, body=None))
    outbox.send(Reply(token=3, body=None))
    first, second = (e.token.number for e in outbox.take() if isinstance(e, SaveElection))
    outbox.stored(first)
    assert replies(outbox.take()) == [1]
    outbox.stored(second)
    assert replies(outbox.take()) == [2, 3]


def test_later_sync_releases_too() -> None:
    outbox = HoldingOutbox("log")
    outbox.save(ElectionState(epoch=1))
    outbox.send(Reply(token=1, body=None))
    number = outbox.on_log(Append, records=b"x", durability=Durability.SYNCED)
    outbox.take()
    outbox.stored(number)
    assert replies(outbox.take()) == [1]


def test_traces_do_not_wait() -> None:
    outbox = HoldingOutbox("log")
    outbox.save(ElectionState(epoch=1))
    outbox.trace("role", role="candidate")
    assert Trace(event="role", fields=(("role", "candidate"),)) in outbox.take()


def test_answer_that_comes_twice_is_heard_once() -> None:
    outbox = Outbox("component")
    heard: list[tuple[Event, int]] = []
    token = outbox.expect(lambda event, now_ms: heard.append((event, now_ms)))
    answer = Stored(log="log", token=token)
    outbox.deliver(token, answer, 1)
    outbox.deliver(token, answer, 2)
    assert heard == [(answer, 1)]
