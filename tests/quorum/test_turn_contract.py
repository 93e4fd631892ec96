"""What a core may rely on in the asyncio driver and in the simulator's host alike."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from quorum.core.effects import (
    Append,
    Durability,
    Effect,
    Event,
    Failure,
    HangUp,
    Reply,
    Request,
    RequestFailed,
    Response,
    Send,
    Stop,
    StorageFailed,
    Stored,
    Token,
    Trace,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.turn import CLIENTS_MAX, CONTROL_MAX
from tests.quorum.benches import BENCHES, SETTLED, Ask, Bench
from tests.quorum.log_files import batch
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.registration import BrokerHeartbeatRequest, BrokerHeartbeatResponse

HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=1, broker_epoch=1, current_metadata_offset=0, want_fence=False, want_shut_down=False
)
ALIVE = BrokerHeartbeatResponse()
DESCRIBE = DescribeClusterRequest()
DESCRIBED = DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=())
WRITE = Append(
    log=METADATA_LOG,
    token=Token("core", 100),
    records=batch(0),
    durability=Durability.SYNCED,
)
PATIENT_MS = 9_000
Script = Callable[[Bench], Awaitable[None]]


def contract(script: Script) -> Callable[[str, Path], None]:
    """Have `script` played by the driver and by the host."""

    @pytest.mark.parametrize("runner", BENCHES)
    def test(runner: str, tmp_path: Path) -> None:
        async def work() -> None:
            async with BENCHES[runner](tmp_path) as bench:
                for each in bench.scripts.values():
                    each.notes.clear()
                await script(bench)

        asyncio.run(work())

    return test


def news(number: int) -> Stored:
    return Stored(log="another", token=Token("core", number))


def send(bench: Bench, number: int, *, timeout_ms: int = PATIENT_MS) -> Send:
    return Send(
        token=Token("core", number),
        to=bench.at(2),
        channel="c",
        body=HEARTBEAT,
        timeout_ms=timeout_ms,
    )


def answering(event: Event) -> list[Effect]:
    return [Reply(token=event.token, body=_body(event))] if isinstance(event, Request) else []


def _body(request: Request) -> object:
    return DESCRIBED if request.body == DESCRIBE else ALIVE


def on(wanted: Event, *effects: Effect) -> Callable[[Event], list[Effect]]:
    return lambda event: list(effects) if event == wanted else []


# --- what a turn is -----------------------------------------------------------------------------


@contract
async def test_what_came_in_together_is_settled_once(bench: Bench) -> None:
    core = bench.scripts[1]
    events = [news(number) for number in range(5)]
    bench.feed(*events)
    await bench.until(lambda: core.notes)
    assert core.notes == [*events, SETTLED]


@contract
async def test_what_came_before_a_decisive_event_is_settled_before_it(bench: Bench) -> None:
    core = bench.scripts[1]
    core.is_decisive = lambda event: event == news(1)
    bench.feed(*map(news, range(3)))
    await bench.until(lambda: core.notes[-2:] == [news(2), SETTLED])
    assert core.notes == [news(0), SETTLED, news(1), news(2), SETTLED]


@contract
async def test_an_action_has_its_place_among_events(bench: Bench) -> None:
    core = bench.scripts[1]
    bench.feed(news(0), lambda now_ms: core.note("done"), news(1))
    await bench.until(lambda: core.notes)
    assert core.notes == [news(0), "done", news(1), SETTLED]


@contract
async def test_the_control_plane_has_its_place_before_clients(bench: Bench) -> None:
    core = bench.scripts[1]
    core.script = answering
    bench.feed(Ask(DESCRIBE), Ask(HEARTBEAT), Ask(DESCRIBE), news(0))
    await bench.until(lambda: len(bench.answers) == 3)
    assert [getattr(each, "body", each) for each in core.heard(Request, Stored)] == [
        news(0),
        HEARTBEAT,
        DESCRIBE,
        DESCRIBE,
    ]
    assert sorted(bench.answers) == [(0, DESCRIBED), (1, ALIVE), (2, DESCRIBED)]


@contract
async def test_a_flood_of_clients_delays_what_comes_by_a_slice(bench: Bench) -> None:
    core, flood = bench.scripts[1], 3 * CLIENTS_MAX + 1

    def script(event: Event) -> list[Effect]:
        if len(core.heard(Request)) == 1:
            bench.hear(news(0))
        return answering(event)

    core.script = script
    bench.feed(*[Ask(DESCRIBE)] * flood)
    await bench.until(lambda: len(bench.answers) == flood)
    assert sorted(number for number, _ in bench.answers) == list(range(flood))
    heard = core.heard(Request, Stored)
    assert [each.token for each in heard if each != news(0)] == sorted(
        each.token for each in heard if each != news(0)
    )
    assert heard.index(news(0)) <= CLIENTS_MAX
    for turn in turns(core.notes):
        assert sum(isinstance(each, Request) for each in turn) <= CLIENTS_MAX


@contract
async def test_a_turn_ends_however_much_came_in(bench: Bench) -> None:
    core = bench.scripts[1]
    core.script = answering
    events = [news(number) for number in range(CONTROL_MAX + 1)]
    bench.feed(Ask(DESCRIBE), *events)
    await bench.until(lambda: bench.answers)
    first, second = turns(core.notes)[:2]
    assert first == events[:CONTROL_MAX]
    assert second[0] == events[CONTROL_MAX]
    assert isinstance(second[1], Request), "clients come after what is left of the control plane"


def turns(notes: list[object]) -> list[list[object]]:
    found: list[list[object]] = [[]]
    for note in notes:
        if note == SETTLED:
            found.append([])
        else:
            found[-1].append(note)
    return found


# --- what leaves --------------------------------------------------------------------------------


@contract
async def test_writes_come_first_and_what_is_told_leaves_last(bench: Bench) -> None:
    core, trace = bench.scripts[1], Trace(event="e")

    def script(event: Event) -> list[Effect]:
        if not isinstance(event, Request):
            return []
        return [*answering(event), WRITE, send(bench, 1), trace]

    core.script = script
    bench.feed(Ask(HEARTBEAT))
    await bench.until(lambda: bench.answers and len(core.heard(Effect)) == 4)
    assert [type(each) for each in core.heard(Effect)] == [Append, Trace, Reply, Send]


@contract
async def test_what_is_written_is_told_to_be_stored_once(bench: Bench) -> None:
    core = bench.scripts[1]
    core.script = on(news(0), WRITE)
    bench.feed(news(0))
    stored = Stored(log=METADATA_LOG, token=WRITE.token)
    await bench.until(lambda: stored in core.notes)
    await passes(bench)
    assert core.notes.count(stored) == 1


@contract
async def test_nothing_leaves_that_rests_on_a_write_that_failed(bench: Bench) -> None:
    """And nobody waits for it: the asker is hung up on, and the core's own question fails."""
    core, peer = bench.scripts[1], bench.scripts[2]
    asked = send(bench, 1)

    def script(event: Event) -> list[Effect]:
        return [WRITE, *answering(event), asked] if isinstance(event, Request) else []

    core.script = script
    bench.fail_writes()
    bench.feed(Ask(HEARTBEAT))
    failed = RequestFailed(token=asked.token, failure=Failure.DISCONNECTED)
    await bench.until(lambda: failed in core.notes and bench.answers)
    await passes(bench)
    assert bench.answers == [(0, None)]
    assert [type(each) for each in core.heard(Effect)] == [Append, HangUp]
    assert core.heard(StorageFailed, RequestFailed)[1:] == [failed]
    assert peer.heard(Request) == []


@contract
async def test_what_the_turn_after_a_failure_tells_leaves(bench: Bench) -> None:
    core, peer = bench.scripts[1], bench.scripts[2]
    peer.script = answering
    asked = send(bench, 1)

    def script(event: Event) -> list[Effect]:
        if event == news(0):
            return [WRITE]
        return [asked] if isinstance(event, StorageFailed) else []

    core.script = script
    bench.fail_writes()
    bench.feed(news(0))
    answer = Response(token=asked.token, body=ALIVE)
    await bench.until(lambda: answer in core.notes)


async def passes(bench: Bench) -> None:
    """Let some turns pass: whatever was to come has come."""
    core = bench.scripts[1]
    for number in range(1000, 1010):
        bench.feed(news(number))
        await bench.until(partial(core.notes.__contains__, news(number)))


# --- answers ------------------------------------------------------------------------------------


@contract
async def test_answering_twice_ends_the_run(bench: Bench) -> None:
    core = bench.scripts[1]
    core.script = lambda event: answering(event) * 2
    bench.feed(Ask(HEARTBEAT))
    await bench.until(lambda: 1 in bench.ended)
    assert "has been answered, or never came" in bench.ended[1]


@contract
async def test_a_question_is_answered_once(bench: Bench) -> None:
    core, peer = bench.scripts[1], bench.scripts[2]
    peer.script = answering
    core.script = on(news(0), *(send(bench, number) for number in range(3)))
    bench.feed(news(0))
    await bench.until(lambda: len(core.heard(Response)) == 3)
    await passes(bench)
    assert core.heard(Response, RequestFailed) == [
        Response(token=Token("core", number), body=ALIVE) for number in range(3)
    ]


@contract
async def test_a_question_fails_once_when_its_peer_stops(bench: Bench) -> None:
    stop = Stop(reason="enough", exit_code=0)
    await fails(bench, lambda asked: [stop], Failure.DISCONNECTED)
    assert bench.ended == {2: "enough"}


@contract
async def test_a_question_fails_once_when_its_peer_says_nothing(bench: Bench) -> None:
    await fails(bench, lambda asked: [], Failure.TIMED_OUT, timeout_ms=50)


@contract
async def test_an_answer_without_a_body_is_silence(bench: Bench) -> None:
    def silence(asked: Request) -> list[Effect]:
        return [Reply(token=asked.token, body=None)]

    await fails(bench, silence, Failure.TIMED_OUT, timeout_ms=50)


async def fails(
    bench: Bench,
    does: Callable[[Request], list[Effect]],
    failure: Failure,
    *,
    timeout_ms: int = PATIENT_MS,
) -> None:
    core, peer = bench.scripts[1], bench.scripts[2]
    await meet(bench)
    peer.script = lambda event: does(event) if isinstance(event, Request) else []
    core.script = on(news(0), send(bench, 1, timeout_ms=timeout_ms))
    bench.feed(news(0))
    await bench.until(lambda: core.heard(RequestFailed))
    await passes(bench)
    assert core.heard(Response, RequestFailed) == [
        RequestFailed(token=Token("core", 1), failure=failure)
    ]


async def meet(bench: Bench) -> None:
    """Connect and exchange the versions, then forget that anything has happened."""
    core, peer = bench.scripts[1], bench.scripts[2]
    peer.script = answering
    core.script = on(news(99), send(bench, 99))
    bench.feed(news(99))
    await bench.until(lambda: core.heard(Response))
    core.notes.clear()


@contract
async def test_an_answer_that_comes_too_late_is_none(bench: Bench) -> None:
    core, peer = bench.scripts[1], bench.scripts[2]
    await meet(bench)
    peer.notes.clear()

    def script(event: Event) -> list[Effect]:
        """The peer answers all that it was asked, once it has been asked again."""
        if not isinstance(event, Request) or event.body == HEARTBEAT:
            return []
        return [effect for asked in peer.heard(Request) for effect in answering(asked)]

    peer.script = script
    again = Send(
        token=Token("core", 2), to=bench.at(2), channel="d", body=DESCRIBE, timeout_ms=PATIENT_MS
    )

    def asking(event: Event) -> list[Effect]:
        if event == news(0):
            return [send(bench, 1, timeout_ms=50)]
        return [again] if isinstance(event, RequestFailed) else []

    core.script = asking
    bench.feed(news(0))
    await bench.until(lambda: core.heard(Response))
    await passes(bench)
    assert core.heard(Response, RequestFailed) == [
        RequestFailed(token=Token("core", 1), failure=Failure.TIMED_OUT),
        Response(token=again.token, body=DESCRIBED),
    ]


# --- time, and the end --------------------------------------------------------------------------


@contract
async def test_a_core_settles_at_its_deadline_and_not_before(bench: Bench) -> None:
    core = bench.scripts[1]
    bench.feed(due_in(bench, 30))
    await bench.until(lambda: core.late_ms)
    assert core.late_ms[0] >= 0


@contract
async def test_an_earlier_deadline_takes_the_place_of_a_later_one(bench: Bench) -> None:
    core = bench.scripts[1]
    bench.feed(due_in(bench, 3_600_000))
    await passes(bench)
    bench.feed(due_in(bench, 20))
    await bench.until(lambda: core.late_ms)
    bench.feed(due_in(bench, 20))
    await bench.until(lambda: len(core.late_ms) == 2)


def due_in(bench: Bench, ms: int) -> Callable[[int], None]:
    def put(now_ms: int) -> None:
        bench.scripts[1].due_ms = now_ms + ms

    return put


@contract
async def test_the_answer_that_comes_with_a_stop_leaves(bench: Bench) -> None:
    core = bench.scripts[1]
    stop = Stop(reason="enough", exit_code=0)
    core.script = lambda event: [stop, *answering(event)]
    bench.feed(Ask(HEARTBEAT))
    await bench.until(lambda: bench.answers and 1 in bench.ended)
    assert bench.answers == [(0, ALIVE)]
    assert bench.ended == {1: "enough"}


@contract
async def test_who_has_stopped_is_given_nothing_more(bench: Bench) -> None:
    core = bench.scripts[1]
    core.script = on(news(0), Stop(reason="enough", exit_code=0))
    events = [news(number) for number in range(CONTROL_MAX + 9)]
    bench.feed(*events)
    await bench.until(lambda: 1 in bench.ended)
    assert core.heard(Event) == events[:CONTROL_MAX]
