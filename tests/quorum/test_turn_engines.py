"""Turns of a whole core, with either engine: the events of a turn are not mixed up."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from jepsen_like.planted.every_bug import planted
from quorum.core.effects import (
    Append,
    Core,
    Effect,
    Event,
    Reply,
    Request,
    Response,
    SaveElection,
    Send,
    Stored,
    Token,
)
from quorum.core.inbox import Action
from quorum.core.storage import METADATA_LOG
from quorum.core.turn import Turn
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.member import Member
from quorum.node.register import Register, RegisterRequest, RegisterResponse
from quorum.raft.kraft_version import describe_versions
from quorum.raft.messages import begin_request, fetch_request
from quorum.raft.roles import Leader
from quorum.raftos.confirming_raftos_node import ConfirmingRaftosNode
from quorum.raftos.raftos_effects import Committed, RaftosEvent, RaftosRequest, TermAndLeader
from tests.quorum.benches import BENCHES, Ask, Bench
from tests.quorum.raft.test_membership import addition, removal
from tests.quorum.replicas import Replicas, config, endpoint, replica_key
from wire.batch import data_batch
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import FetchRequest
from wire.messages.quorum_epochs import BeginQuorumEpochRequest
from wire.messages.voters import RemoveRaftVoterResponse

PUT = RegisterRequest(f="write", key="k", value=1)
NOW_MS = 1_000
ENGINES = ["raft", "raftos"]


class Led:
    """A leader with a register, given turns by hand; `effects` are those of the last turn."""

    def __init__(self, core: Core, now_ms: int) -> None:
        self.core = core
        self.effects: list[Effect] = []
        self._turn: Turn[int] = Turn()
        self._now_ms = now_ms

    def given(self, *events: Event | Action) -> list[Any]:
        """Give all in one turn; returns the outcomes of the requests that it answers."""
        for event in events:
            if isinstance(event, Request):
                self._turn.add_request(event, event.token)
            else:
                self._turn.add(event)
        self.effects = self._turn.take(self.core, self._now_ms)
        told = self._turn.leaving([])
        self.effects += told
        bodies = [each.body for each in told if isinstance(each, Reply)]
        return [each.outcome for each in bodies if isinstance(each, RegisterResponse)]

    def put(self) -> None:
        assert self.given(Request(token=900, body=PUT)) == []

    def append(self) -> Append:
        return next(each for each in self.effects if isinstance(each, Append))


class RaftLeader:
    """A leader of three with a register, taken out of its quorum: another voter is played."""

    def __init__(self, now_ms: int = 0) -> None:
        replicas = Replicas(
            engine=ConfirmingRaftNode,
            build=lambda node: ConfirmingMember(node, {"register": Register(node)}),  # type: ignore[arg-type]
            now_ms=now_ms,
            fetch_timeout_ms=600_000,  # it needs nobody
        )
        self.node = replicas.elect()
        self.core: Any = replicas.cores[self.node.node_id]
        self._other = 1 + self.node.node_id % 3
        for voter in (1, 2, 3):
            if voter != self.node.node_id:
                replicas.crash(voter)
        replicas.run(1_000)  # no fetch waits any more
        self.now_ms = replicas.now_ms

    def commits(self) -> FetchRequest:
        """The other has everything, which makes a majority."""
        end = OffsetAndEpoch(self.node.end_offset, self._epoch)
        return fetch_request(config(self._other), epoch=self._epoch, end=end, high_watermark=0)

    def deposes(self) -> BeginQuorumEpochRequest:
        """The other leads the next epoch."""
        key, leader = ReplicaKey(self.node.node_id), endpoint(self._other)
        return begin_request(config(self._other), key, epoch=self._epoch + 1, leader=leader)

    @property
    def _epoch(self) -> int:
        assert isinstance(self.node.role, Leader), self.node.role
        return self.node.role.epoch


def raft() -> tuple[Led, Event, Event]:
    """A leader of three with a put, the event that commits it, and one that ends its leadership."""
    leader = RaftLeader()
    led = Led(leader.core, leader.now_ms)
    led.put()
    assert led.given(Stored(log=METADATA_LOG, token=led.append().token)) == []
    commits = Request(token=901, body=leader.commits())
    return led, commits, Request(token=902, body=leader.deposes())


def raftos() -> tuple[Led, Event, Event]:
    """The same of raftos, which has committed the put before the disk has synced it."""
    engine = ConfirmingRaftosNode(config(1), _empty(), Random(1), NOW_MS)
    led = Led(ConfirmingMember(engine, {"register": Register(engine)}), NOW_MS)
    led.given(RaftosEvent(news=TermAndLeader(term=1, leader_id=1)))
    led.given(_committed(led))
    led.given(Stored(log=METADATA_LOG, token=led.append().token))
    led.put()
    assert led.given(_committed(led)) == []
    stored = Stored(log=METADATA_LOG, token=led.append().token)
    return led, stored, RaftosEvent(news=TermAndLeader(term=2, leader_id=2))


def _empty() -> Any:
    return Replicas([1]).disks[1].recovered()


def _committed(led: Led) -> RaftosEvent:
    asked = next(each for each in led.effects if isinstance(each, RaftosRequest))
    assert asked.command is not None
    return RaftosEvent(news=Committed(term=asked.term, command=asked.command))


LED: dict[str, Callable[[], tuple[Led, Event, Event]]] = {"raft": raft, "raftos": raftos}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_committed_before_a_leadership_ended_is_told_so(engine: str) -> None:
    led, commits, deposes = LED[engine]()
    assert led.given(commits, deposes) == ["ok"]


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_told_of_a_commit_after_a_leadership_has_ended(engine: str) -> None:
    led, commits, deposes = LED[engine]()
    assert led.given(deposes, commits) == ["info"]


def test_what_was_committed_before_a_shut_down_is_told_so() -> None:
    led, commits, _deposes = raft()
    assert isinstance(led.core, Member)
    assert led.given(commits, led.core.shut_down) == ["ok"]


@pytest.mark.parametrize("engine", ENGINES)
def test_who_asks_after_a_leadership_has_ended_is_refused(engine: str) -> None:
    """In the same turn, before which the application knows of nothing."""
    led, _commits, deposes = LED[engine]()
    assert led.given(deposes, Request(token=903, body=PUT)) == ["info", "fail"]


@pytest.mark.parametrize("engine", ENGINES)
def test_settling_after_a_change_of_role_is_found(engine: str) -> None:
    with planted("settles_after_a_change_of_role"):
        led, commits, deposes = LED[engine]()
        assert led.given(commits, deposes) == ["info"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_waiter_without_its_epoch_is_found(engine: str) -> None:
    """It would wait on, and be told of whatever the next leader writes at its offset."""
    with planted("forgets_the_epoch_of_who_waits"):
        led, _commits, deposes = LED[engine]()
        assert led.given(deposes) == []


# --- the voters of a turn -------------------------------------------------------------------------


def commits_with_a_voter_more() -> bool:
    """Two of three have a record, and in the same turn a fourth voter joins: is it committed?"""
    replicas = Replicas([1, 2, 3, 4], initial=(1, 2, 3))
    leader = replicas.elect()
    replicas.run(50)
    assert isinstance(leader.role, Leader)
    epoch, other = leader.role.epoch, 1 + leader.node_id % 3
    replicas.run(2_000)  # the fourth has caught up
    led = Led(leader, replicas.now_ms)
    led.given(Request(token=900, body=addition(4), listener="CONTROLLER"))
    asked = next(
        each
        for each in led.effects
        if isinstance(each, Send) and isinstance(each.body, ApiVersionsRequest)
    )
    before = leader.end_offset
    replicas.append(leader, data_batch([b"x"], timestamp_ms=0))
    led.given(Stored(log=METADATA_LOG, token=Token("raft", asked.token.number + 1)))
    end = OffsetAndEpoch(leader.end_offset, epoch)
    fetch = fetch_request(
        config(other, directory_id=replica_key(other).directory_id),
        epoch=epoch,
        end=end,
        high_watermark=0,
    )
    answer = Response(token=asked.token, body=describe_versions())
    led.given(Request(token=901, body=fetch), answer)
    assert any(isinstance(each, Append) for each in led.effects), "the voters have changed"
    return leader.high_watermark == before + 1


def test_what_came_before_a_change_of_voters_is_counted_with_those_of_before() -> None:
    assert commits_with_a_voter_more()


def test_counting_with_the_voters_of_the_end_is_found() -> None:
    with planted("counts_with_the_voters_of_the_end"):
        assert not commits_with_a_voter_more()


def test_change_of_voters_is_answered_in_the_turn_that_commits_it() -> None:
    """What is committed is counted before the leader does what is due."""
    replicas = Replicas(initial=(1, 2, 3))
    leader = replicas.elect()
    replicas.run(50)
    assert isinstance(leader.role, Leader)
    epoch, gone, other = leader.role.epoch, *(n for n in (1, 2, 3) if n != leader.node_id)
    led = Led(leader, replicas.now_ms)
    led.given(Request(token=900, body=removal(gone), listener="CONTROLLER"))
    led.given(Stored(log=METADATA_LOG, token=led.append().token))
    fetch = fetch_request(
        config(other, directory_id=replica_key(other).directory_id),
        epoch=epoch,
        end=OffsetAndEpoch(leader.end_offset, epoch),
        high_watermark=0,
    )
    led.given(Request(token=901, body=fetch))
    assert leader.high_watermark == leader.end_offset
    assert Reply(token=900, body=RemoveRaftVoterResponse()) in led.effects


# --- run by the driver and by the host ------------------------------------------------------------


def made(engine: str) -> Callable[[Any, Any, int], Core]:
    def make(state: Any, election: Any, now_ms: int) -> Core:
        alone = config(1, [1], election_timeout_ms=20)
        if engine == "raftos":
            node: Any = ConfirmingRaftosNode(alone, state, Random(1), now_ms)
        else:
            node = ConfirmingRaftNode(alone, state, election, Random(1), now_ms)
        return ConfirmingMember(node, {"register": Register(node)})

    return make


def carry(bench: Bench) -> None:
    """A raftos that commits whatever it is asked to, and leads from the start."""

    def commit(request: RaftosRequest) -> None:
        assert request.command is not None
        news = Committed(term=request.term, command=request.command)
        bench.feed(RaftosEvent(news=news))

    bench.perform_with(RaftosRequest, commit)
    bench.feed(RaftosEvent(news=TermAndLeader(term=1, leader_id=1)))


async def puts(bench: Bench, engine: str) -> None:
    """Ask until it leads."""
    if engine == "raftos":
        carry(bench)
    while "ok" not in outcomes(bench):
        bench.answers.clear()
        bench.feed(Ask(PUT))
        await bench.until(lambda: bench.answers)


def outcomes(bench: Bench) -> list[str | None]:
    return [getattr(body, "outcome", None) for _, body in bench.answers]


def play(runner: str, engine: str, tmp_path: Path, script: Callable[[Bench], Any]) -> None:
    async def work() -> None:
        async with BENCHES[runner](tmp_path, {1: made(engine)}) as bench:
            await puts(bench, engine)
            bench.answers.clear()
            await script(bench)

    asyncio.run(work())


@pytest.mark.parametrize("runner", BENCHES)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_put_is_answered_once(engine: str, runner: str, tmp_path: Path) -> None:
    async def script(bench: Bench) -> None:
        bench.feed(*[Ask(PUT)] * 200)
        await bench.until(lambda: len(bench.answers) == 200)
        assert outcomes(bench) == ["ok"] * 200
        assert bench.ended == {}

    play(runner, engine, tmp_path, script)


@pytest.mark.parametrize("runner", BENCHES)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_put_is_acknowledged_that_the_disk_refused(
    engine: str, runner: str, tmp_path: Path
) -> None:
    async def script(bench: Bench) -> None:
        bench.fail_writes()
        bench.feed(Ask(PUT))
        await bench.until(lambda: 1 in bench.ended)
        assert "cannot store" in bench.ended[1]
        assert "ok" not in outcomes(bench)

    play(runner, engine, tmp_path, script)


# --- the last turn of a leadership, run by the driver and by the host -----------------------------


class RaftReign:
    """A put is committed once a majority has it; another leader ends the reign."""

    def __init__(self) -> None:
        self._leader: RaftLeader | None = None

    def make(self, _state: Any, _election: Any, now_ms: int) -> Core:
        self._leader = RaftLeader(now_ms)
        return cast(Core, self._leader.core)

    async def begin(self, bench: Bench) -> None:
        """It leads already. Its disk and its peers are not those of the bench."""
        for kind in (SaveElection, Send):
            bench.perform_with(kind, lambda _effect: None)

    def commits(self, stored: Stored) -> list[Event | Ask]:
        assert self._leader is not None
        return [stored, Ask(self._leader.commits())]

    def deposes(self) -> list[Event | Ask]:
        assert self._leader is not None
        return [Ask(self._leader.deposes())]


class RaftosReign:
    """A put is committed once it is stored, for raftos has committed it before."""

    def __init__(self) -> None:
        self.make = made("raftos")

    async def begin(self, bench: Bench) -> None:
        await puts(bench, "raftos")
        bench.answers.clear()

    def commits(self, stored: Stored) -> list[Event | Ask]:
        return [stored]

    def deposes(self) -> list[Event | Ask]:
        return [RaftosEvent(news=TermAndLeader(term=2, leader_id=2))]


REIGNS: dict[str, type[RaftReign] | type[RaftosReign]] = {"raft": RaftReign, "raftos": RaftosReign}


def told_of_the_last_put(
    runner: str, engine: str, path: Path, *, is_committed_first: bool = True
) -> str | None:
    """Have a put committed and the leadership ended in one turn, in this order or the other."""
    reign = REIGNS[engine]()

    async def work() -> str | None:
        async with BENCHES[runner](path, {1: reign.make}) as bench:
            await reign.begin(bench)
            stored = await put_without_a_disk(bench)
            commits, deposes = reign.commits(stored), reign.deposes()
            bench.feed(*(commits + deposes if is_committed_first else deposes + commits))
            await bench.until(lambda: set(outcomes(bench)) - {None})
            (outcome,) = set(outcomes(bench)) - {None}
            assert bench.ended == {}
            return outcome

    return asyncio.run(work())


async def put_without_a_disk(bench: Bench) -> Stored:
    """Ask for a put, and keep back what it appends; returns what would tell that it is stored."""
    appended: list[Append] = []

    def keep_back(append: Append) -> None:
        appended.append(append)
        bench.scripts[1].changed()

    bench.perform_with(Append, keep_back)
    bench.feed(Ask(PUT))
    await bench.until(lambda: appended)
    return Stored(log=METADATA_LOG, token=appended[0].token)


each_runner = pytest.mark.parametrize("runner", BENCHES)
each_engine = pytest.mark.parametrize("engine", ENGINES)


@each_runner
@each_engine
def test_what_is_committed_in_the_last_turn_of_a_leadership_is_told_so(
    engine: str, runner: str, tmp_path: Path
) -> None:
    assert told_of_the_last_put(runner, engine, tmp_path) == "ok"


@each_runner
@each_engine
def test_nobody_is_told_of_a_commit_that_comes_after_the_end_in_the_same_turn(
    engine: str, runner: str, tmp_path: Path
) -> None:
    told = told_of_the_last_put(runner, engine, tmp_path, is_committed_first=False)
    assert told == "info"


@each_runner
@each_engine
def test_settling_after_a_change_of_role_is_found_however_it_is_run(
    engine: str, runner: str, tmp_path: Path
) -> None:
    """It shows, too, that both came in one turn."""
    with planted("settles_after_a_change_of_role"):
        assert told_of_the_last_put(runner, engine, tmp_path) == "info"
