"""What applications see: every committed batch once and in order, leadership at the right time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from quorum.core.application import State
from quorum.core.early_requests import HOLD_MAX_MS
from quorum.core.effects import (
    Append,
    Effect,
    Event,
    HangUp,
    ReadDone,
    Reply,
    Request,
    Response,
    Send,
    Stop,
    StorageFailed,
    Stored,
    Token,
    Trace,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.turn import Turn
from quorum.core.types import OffsetAndEpoch
from quorum.node.delivery import OWNER
from quorum.node.member import Member
from quorum.raft import following
from quorum.raft.messages import fetch_request
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader, Resigned
from tests.quorum.raft.test_membership import removal
from tests.quorum.replicas import Replicas, config, endpoint
from tests.quorum.turns import give
from wire.batch import data_batch, headers
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.security.principals import ANONYMOUS, Forwarder


@dataclass
class Journal:
    """An application that writes down what it is told, and may answer or append."""

    log: RaftNode
    served: tuple[type, ...] = ()
    told: list[tuple[object, ...]] = field(default_factory=list)
    next_offset: int = 0
    resigns_at_once: bool = False
    effects: list[Effect] = field(default_factory=list)

    def serves(self, body: object) -> bool:
        return isinstance(body, self.served)

    def lead(self, epoch: int, now_ms: int) -> None:
        self.told.append(("lead", epoch, self.next_offset))
        if self.resigns_at_once:
            self.resigns_at_once = False
            self.log.resign(now_ms)
        else:
            self.log.append(data_batch([b"hello"], timestamp_ms=now_ms), now_ms)

    def resign(self, now_ms: int) -> None:
        self.told.append(("resign",))

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        for _, header in headers(batches):
            assert header.base_offset == self.next_offset
            self.next_offset = header.next_offset
        assert self.next_offset == next_offset

    def load(self, batches: bytes, *, is_first: bool) -> None:
        raise NotImplementedError

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        raise NotImplementedError

    def state(self) -> State | None:
        return None

    def receive(self, event: Event, now_ms: int) -> None:
        self.told.append(("event", event))

    def tick(self, now_ms: int) -> None:
        pass

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects


class Journals:
    def __init__(self, *, resigns_at_once: bool = False) -> None:
        self.of: dict[int, Journal] = {}
        self.resigns_at_once = resigns_at_once

    def build(self, node: RaftNode) -> Member:
        self.of[node.node_id] = Journal(node, resigns_at_once=self.resigns_at_once)
        return Member(node, {"controller": self.of[node.node_id]})


def journal_and_member(**served: tuple[type, ...]) -> tuple[dict[str, Journal], Member, Replicas]:
    cluster = Replicas([1])
    applications = {owner: Journal(cluster.nodes[1], types) for owner, types in served.items()}
    return applications, Member(cluster.nodes[1], applications), cluster


def test_every_application_gets_every_batch() -> None:
    journals = Journals()
    cluster = Replicas([1, 2, 3, 10], voters=[1, 2, 3], build=journals.build)
    leader = cluster.elect()
    for n in range(20):
        cluster.append(leader, data_batch([b"%d" % n], timestamp_ms=0))
    cluster.run(100)
    assert {journal.next_offset for journal in journals.of.values()} == {22}


def test_nobody_reads_from_its_disk_what_it_has_just_appended() -> None:
    """Neither what the leader decides, however slowly it is committed, nor what others fetch."""
    journals = Journals()
    cluster = Replicas(build=journals.build, fetch_max_bytes=8 << 20)
    leader = cluster.elect()
    cluster.run(50)
    big = data_batch([bytes(200_000)], timestamp_ms=0)
    for node_id in cluster.ids:
        cluster.disks[node_id].is_held = node_id != leader.node_id
    for _ in range(30):  # 6 MB, before any of it is committed
        cluster.append(leader, big)
    for node_id in cluster.ids:
        cluster.sync(node_id)
    cluster.run(500)
    assert {journal.next_offset for journal in journals.of.values()} == {leader.end_offset}
    assert [each for each in cluster.reads if each[1].token.owner == OWNER] == []


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_offset_within_a_batch_commits_none_of_it(role: str) -> None:
    """Neither a voter that asks from there nor a leader that says so takes a node down."""
    journals = Journals()
    cluster = Replicas(build=journals.build)
    leader = cluster.elect()
    cluster.run(50)
    before = leader.high_watermark
    cluster.disks[leader.node_id % 3 + 1].is_held = True
    cluster.disks[(leader.node_id + 1) % 3 + 1].is_held = True
    leader.append(data_batch([b"1", b"2", b"3"], timestamp_ms=0), cluster.now_ms)
    cluster.cores[leader.node_id].settle(cluster.now_ms)  # type: ignore[attr-defined]
    cluster.settle(leader.node_id)
    cluster.run(20)
    asker = leader.node_id % 3 + 1
    if role == "leader":
        end = OffsetAndEpoch(leader.end_offset - 1, leader.role.epoch)
        ask = fetch_request(config(asker), epoch=end.epoch, end=end, high_watermark=0)
        cluster.deliver(leader.node_id, Request(token=9, body=ask))
        assert leader.high_watermark == before
    else:
        follower = cluster.nodes[asker]
        following._learn_high_watermark(follower.replica.log, leader.end_offset - 1)
        cluster.cores[asker].settle(cluster.now_ms)  # type: ignore[attr-defined]
        assert follower.high_watermark == before


def test_next_process_reads_what_was_committed_before_it() -> None:
    journals = Journals()
    cluster = Replicas([1], build=journals.build)
    cluster.append(cluster.elect(), data_batch([b"x"], timestamp_ms=0))
    cluster.run(50)
    assert cluster.reads == []
    cluster.crash(1)
    cluster.start(1)
    cluster.elect()
    cluster.run(50)
    assert [read.token.owner for _, read in cluster.reads] == [OWNER]


def test_lead_comes_after_the_epoch_has_committed_its_first_record() -> None:
    journals = Journals()
    cluster = Replicas(build=journals.build)
    leader = cluster.elect()
    cluster.run(10)
    assert journals.of[leader.node_id].told == [("lead", leader.role.epoch, 1)]


def test_new_leader_has_seen_everything_committed_before() -> None:
    journals = Journals()
    cluster = Replicas(build=journals.build)
    first = cluster.elect()
    cluster.run(100)
    cluster.crash(first.node_id)
    second = cluster.elect()
    cluster.run(10)
    (told,) = journals.of[second.node_id].told
    assert told == ("lead", second.role.epoch, 3), "LeaderChange, hello, LeaderChange"


def test_standby_takes_over_without_reading_again_what_it_knows() -> None:
    journals = Journals()
    cluster = Replicas(build=journals.build)
    first = cluster.elect()
    for n in range(500):
        cluster.append(first, data_batch([b"%d" % n], timestamp_ms=0))
    cluster.run(100)
    cluster.crash(first.node_id)
    second = cluster.elect()
    cluster.run(10)
    member = cluster.cores[second.node_id]
    assert isinstance(member, Member)
    take_over = member.take_over
    assert take_over is not None
    assert take_over.epoch == second.role.epoch
    assert take_over.replayed_records == 1, "the LeaderChange of its epoch"
    assert 0 <= take_over.took_ms <= 10
    told = [trace for node_id, trace in cluster.traces if node_id == second.node_id]
    (trace,) = (trace for trace in told if trace.event == "take-over")
    assert dict(trace.fields)["replayed"] == 1


def test_deposed_leader_is_told_before_it_hears_of_other_records() -> None:
    journals = Journals()
    cluster = Replicas(build=journals.build)
    first = cluster.elect()
    cluster.run(100)
    cluster.isolate(first.node_id)
    cluster.run(10_000)
    journal = journals.of[first.node_id]
    assert [entry[0] for entry in journal.told] == ["lead", "resign"]
    assert journal.next_offset == 2
    cluster.heal()
    cluster.run(10_000)
    assert journal.next_offset == 4
    assert [entry[0] for entry in journal.told] == ["lead", "resign"]


def test_application_may_resign_as_soon_as_it_leads() -> None:
    journals = Journals(resigns_at_once=True)
    cluster = Replicas([1], build=journals.build)
    cluster.run(100)
    assert [entry[0] for entry in journals.of[1].told] == ["lead", "resign", "lead"]
    assert cluster.nodes[1].role.epoch == 2


def test_restart_delivers_from_the_start() -> None:
    journals = Journals()
    cluster = Replicas([1], build=journals.build)
    cluster.run(100)
    cluster.crash(1)
    cluster.start(1)
    cluster.run(100)
    assert journals.of[1].next_offset == 4


@pytest.mark.parametrize(
    ("listener", "forwarded", "expected"),
    [
        ("CONTROLLER", False, "controller"),
        ("", False, "controller"),
        ("PLAINTEXT", False, "broker"),
        ("PLAINTEXT", True, "controller"),
    ],
)
def test_listener_decides_who_serves_what_both_could(
    listener: str, forwarded: bool, expected: str
) -> None:
    applications, member, _ = journal_and_member(controller=(str,), broker=(str,))
    forwarder = Forwarder(ANONYMOUS, "10.0.0.1") if forwarded else None
    request = Request(token=1, body="create topics", listener=listener, forwarder=forwarder)
    give(member, request, 0)
    assert [owner for owner, journal in applications.items() if journal.told] == [expected]


class StrictDoor:
    """Refuses 'no', makes 'less' of 'more', and keeps 'early' waiting until it is open."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_amending = False

    def admit(self, request: Request, *, is_control: bool) -> Request | Reply | None:
        match request.body:
            case "no":
                return Reply(token=request.token, body="refused")
            case "more":
                self.is_amending = True
                return replace(request, body=f"less {is_control=}")
            case "early" if not self.is_open:
                return None
        return request

    @property
    def can_judge(self) -> bool:
        return self.is_open

    def amend(self, leaving: Reply | HangUp) -> Reply | HangUp:
        self.is_amending = False
        assert isinstance(leaving, Reply)
        return Reply(token=leaving.token, body=f"amended {leaving.body}")


def test_requests_and_answers_pass_the_door_but_those_from_inside() -> None:
    cluster = Replicas([1])
    journal, door = Journal(cluster.nodes[1], (str,)), StrictDoor()
    member = Member(cluster.nodes[1], {"controller": journal}, door=door)

    def ask(body: str, listener: str = "CONTROLLER") -> list[object]:
        """Returns what is answered; the application answers whatever it is asked."""
        journal.told.clear()
        give(member, Request(token=1, body=body, listener=listener), 0)
        given = [each.body for _, each in journal.told if isinstance(each, Request)]
        journal.effects += [Reply(token=1, body=each) for each in given]
        member.settle(0)
        return [each.body for each in member.take_effects() if isinstance(each, Reply)]

    assert ask("no") == ["refused"]
    assert ask("no", listener="") == ["no"]
    assert ask("more") == ["amended less is_control=True"]
    assert ask("more", listener="PLAINTEXT") == ["amended less is_control=False"]
    assert ask("early") == []
    door.is_open = True
    journal.told.clear()
    member.settle(0)
    assert [each.body for _, each in journal.told if isinstance(each, Request)] == ["early"]


def test_who_is_not_judged_in_time_loses_the_connection() -> None:
    cluster = Replicas([1])
    journal = Journal(cluster.nodes[1], (str,))
    member = Member(cluster.nodes[1], {"controller": journal}, door=StrictDoor())
    give(member, Request(token=7, body="early", listener="CONTROLLER"), 0)
    due_ms = member.deadline_ms()
    assert due_ms is not None
    assert due_ms <= HOLD_MAX_MS
    member.take_effects()
    member.settle(HOLD_MAX_MS)
    assert HangUp(token=7) in member.take_effects()
    assert not journal.told


def test_fetch_of_another_topic_on_a_controller_is_refused_by_the_engine() -> None:
    _, member, _ = journal_and_member(controller=(str,))
    member.take_effects()
    member.engine.replica.outbox.stored(1000)  # type: ignore[attr-defined] # nothing is held
    request = Request(token=5, body=FetchRequest(max_wait_ms=0, topics=()), listener="CONTROLLER")
    give(member, request, 0)
    (reply,) = (effect for effect in member.take_effects() if isinstance(effect, Reply))
    assert isinstance(reply.body, FetchResponse)
    assert reply.body.error_code is ErrorCode.INVALID_REQUEST


def test_answers_go_to_the_owner_of_the_token() -> None:
    applications, member, _ = journal_and_member(controller=(), broker=())
    give(member, Response(token=Token("broker", 1), body="x"), 0)
    give(member, ReadDone(token=Token("controller", 1), log="t-0", records=b""), 0)
    assert len(applications["broker"].told) == 1
    assert len(applications["controller"].told) == 1


def test_failure_of_the_metadata_log_stops_whoever_read_it() -> None:
    _, member, _ = journal_and_member(controller=())
    failed = StorageFailed(log=METADATA_LOG, token=Token("member", 1), reason="read: I/O error")
    give(member, failed, 0)
    (stop,) = (effect for effect in member.take_effects() if isinstance(effect, Stop))
    assert "read: I/O error" in stop.reason
    assert member.deadline_ms() is None


def test_failure_of_another_log_goes_to_its_owner() -> None:
    applications, member, _ = journal_and_member(broker=())
    give(member, StorageFailed(log="t-0", token=Token("broker", 1), reason="?"), 0)
    assert len(applications["broker"].told) == 1


def test_effects_of_the_engine_come_before_those_that_rest_on_them() -> None:
    applications, member, _ = journal_and_member(broker=(str,))
    applications["broker"].effects.append(
        Send(token=Token("broker", 1), to=endpoint(2), channel="c", body="x", timeout_ms=1)
    )
    member.settle(0)
    kinds = [type(effect) for effect in member.take_effects()]
    assert kinds.index(Send) == len(kinds) - 1


def test_application_that_stops_in_good_order_lets_the_engine_leave_first() -> None:
    journals = Journals()
    cluster = Replicas(build=journals.build)
    leader = cluster.elect()
    cluster.run(50)
    journals.of[leader.node_id].effects.append(Stop(reason="controlled shutdown", exit_code=0))
    cluster.run(600)  # until its next event
    assert cluster.stopped[leader.node_id].exit_code == 0
    assert cluster.run_until(lambda: bool(cluster.leaders()), within_ms=300), "it was told"


def test_application_beside_one_that_stops_knows_at_once_that_it_leads_no_more() -> None:
    """The engine stays until the others know: what comes meanwhile must not be appended."""
    journals = Journals()
    cluster = Replicas(build=journals.build)
    leader = cluster.elect()
    cluster.run(50)
    journal = journals.of[leader.node_id]
    journal.effects.append(Stop(reason="controlled shutdown", exit_code=0))
    cluster.deliver(leader.node_id, Response(token=Token("controller", 1), body="x"))
    assert isinstance(leader.role, Resigned)
    assert journal.told[-1] == ("resign",)


def test_application_that_fails_stops_the_process_at_once() -> None:
    applications, member, _ = journal_and_member(broker=())
    applications["broker"].effects.append(Stop(reason="disk gone", exit_code=1))
    member.settle(0)
    (stop,) = (effect for effect in member.take_effects() if isinstance(effect, Stop))
    assert (stop.reason, stop.exit_code) == ("disk gone", 1)


def test_shut_down_leaves_the_quorum() -> None:
    _, member, _ = journal_and_member(controller=())
    member.shut_down(0)
    (stop,) = (effect for effect in member.take_effects() if isinstance(effect, Stop))
    assert stop.exit_code == 0
    give(member, Response(token=Token("raft", 1), body=None), 0)
    member.settle(0)
    assert member.take_effects() == []


# --- turns ------------------------------------------------------------------------------------


class Timed(Journal):
    """Has a deadline 5 ms after it was last told `what`, and at it does what a test wants."""

    what = ""
    due_ms: int | None = None
    at_its_deadline: Callable[[int], None] = staticmethod(lambda now_ms: None)

    def _told(self, what: str, now_ms: int) -> None:
        if what == self.what:
            self.due_ms = now_ms + 5

    def receive(self, event: Event, now_ms: int) -> None:
        super().receive(event, now_ms)
        self._told("receive", now_ms)

    def lead(self, epoch: int, now_ms: int) -> None:
        self.told.append(("lead", epoch, self.next_offset))
        self._told("lead", now_ms)

    def resign(self, now_ms: int) -> None:
        super().resign(now_ms)
        self._told("resign", now_ms)

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        super().committed(batches, next_offset, now_ms)
        self._told("committed", now_ms)

    def tick(self, now_ms: int) -> None:
        self.due_ms = None
        self.told.append(("tick", now_ms))
        self.at_its_deadline(now_ms)
        self._told("tick", now_ms)

    def deadline_ms(self) -> int | None:
        return self.due_ms


@dataclass
class Deciding(Timed):
    """Decides something with every request and at its deadline, as a controller does."""

    decided: list[bytes] = field(default_factory=list)

    def receive(self, event: Event, now_ms: int) -> None:
        super().receive(event, now_ms)
        self._decide()

    def tick(self, now_ms: int) -> None:
        super().tick(now_ms)
        self._decide()

    def _decide(self) -> None:
        self.decided.append(data_batch([b"decided"], timestamp_ms=0))
        self.effects.append(Trace(event="decided"))

    def resign(self, now_ms: int) -> None:
        super().resign(now_ms)
        self.decided.clear()

    def take_effects(self) -> list[Effect]:
        for batch in self.decided:
            self.log.append(batch, 0)
        self.decided.clear()
        return super().take_effects()


def timed(kind: type[Timed] = Timed) -> tuple[Timed, Member, Replicas]:
    """The only voter, as leader at rest."""
    timed: list[Timed] = []

    def build(node: RaftNode) -> Member:
        timed.append(kind(node, served=(str,)))
        return Member(node, {"controller": timed[0]})

    cluster = Replicas([1], build=build)
    cluster.elect()
    cluster.run(50)
    member = cluster.cores[1]
    assert isinstance(member, Member)
    return timed[0], member, cluster


@pytest.mark.parametrize("what", ["receive", "lead", "resign", "committed", "tick"])
def test_deadline_that_an_application_has_set_is_kept(what: str) -> None:
    application, member, cluster = timed()
    node = cluster.nodes[1]
    application.what = what
    match what:
        case "receive":
            give(member, Request(token=1, body="asked"), cluster.now_ms)
        case "resign":
            node.resign(cluster.now_ms)
            member.settle(cluster.now_ms)
        case "lead":
            node.resign(cluster.now_ms)
            assert cluster.run_until(lambda: application.due_ms is not None)
        case "committed":
            node.append(data_batch([b"x"], timestamp_ms=0), cluster.now_ms)
            member.settle(cluster.now_ms)
            cluster.settle(1)
            assert cluster.run_until(lambda: application.due_ms is not None)
        case "tick":
            application.due_ms = cluster.now_ms
            give(member, Request(token=1, body="asked"), cluster.now_ms)
    assert application.due_ms is not None
    due_ms = application.due_ms
    assert member._applications_due_ms == due_ms
    application.what = ""
    cluster.run(10)
    assert ("tick", due_ms) in application.told


def test_deadline_that_an_event_has_set_is_kept_though_the_disk_answers_in_the_same_turn() -> None:
    application, member, cluster = timed()
    application.what = "receive"
    member.receive(Request(token=1, body="asked"), cluster.now_ms)
    member.receive(Stored(log=METADATA_LOG, token=Token("raft", 0)), cluster.now_ms)
    member.settle(cluster.now_ms)
    assert application.due_ms == cluster.now_ms + 5 == member._applications_due_ms


def test_leadership_that_is_given_up_at_a_deadline_is_told_at_once() -> None:
    application, member, cluster = timed()
    application.at_its_deadline = cluster.nodes[1].resign
    application.due_ms = cluster.now_ms
    give(member, Request(token=1, body="asked"), cluster.now_ms)
    assert application.told[-2:] == [("tick", cluster.now_ms), ("resign",)]


def test_what_is_decided_at_a_deadline_is_written_at_once_and_before_what_rests_on_it() -> None:
    application, member, cluster = timed(Deciding)
    application.due_ms = cluster.now_ms
    give(member, Request(token=1, body="asked"), cluster.now_ms)
    assert ("tick", cluster.now_ms) in application.told
    kinds = [type(each) for each in member.take_effects()]
    assert kinds == [Append, Append, Trace, Trace]


def test_what_was_decided_in_a_turn_is_appended_though_leadership_ends_with_it() -> None:
    """It precedes what the engine does by itself, as if every event had a turn of its own."""
    applications: dict[int, Deciding] = {}

    def build(node: RaftNode) -> Member:
        applications[node.node_id] = Deciding(node, served=(str,))
        return Member(node, {"controller": applications[node.node_id]})

    cluster = Replicas(build=build)
    leader = cluster.elect()
    cluster.run(50)
    assert isinstance(leader.role, Leader)
    leader.role.check_quorum_deadline_ms = cluster.now_ms
    before = leader.end_offset
    cluster.deliver(leader.node_id, Request(token=1, body="asked"))
    assert isinstance(leader.role, Resigned)
    assert applications[leader.node_id].told[-1] == ("resign",)
    assert leader.end_offset == before + 1


def test_what_was_decided_before_a_voter_is_removed_has_the_offset_it_was_promised() -> None:
    """The removal is a record too, which the engine appends as soon as it hears of it."""
    applications: dict[int, Deciding] = {}

    def build(node: RaftNode) -> Member:
        applications[node.node_id] = Deciding(node, served=(str,))
        return Member(node, {"controller": applications[node.node_id]})

    cluster = Replicas(initial=(1, 2, 3), build=build)
    leader = cluster.elect()
    cluster.run(50)
    before = leader.end_offset
    turn: Turn[None] = Turn(prioritises=False)
    other = 1 + leader.node_id % 3
    for token, body in enumerate(["asked", removal(other)]):
        turn.add_request(Request(token=token, body=body, listener="CONTROLLER"), None)
    turn.take(cluster.cores[leader.node_id], cluster.now_ms)  # type: ignore[arg-type]
    assert leader.end_offset == before + 2
    assert leader.replica.history.latest.voters_offset == before + 1


def test_nothing_is_settled_before_the_first_event_of_a_turn() -> None:
    _application, member, cluster = timed()
    news = ReadDone(token=Token(OWNER, 1), log=METADATA_LOG, records=b"")
    assert not member.ends_batch(news)
    member.receive(Request(token=1, body="asked"), cluster.now_ms)
    assert member.ends_batch(news)
    member.settle(cluster.now_ms)
    assert not member.ends_batch(news)


def test_who_has_stopped_hears_nothing() -> None:
    application, member, cluster = timed()
    application.effects.append(Stop(reason="no disk", exit_code=1))
    member.settle(cluster.now_ms)
    give(member, Request(token=1, body="asked"), cluster.now_ms)
    assert ("event", Request(token=1, body="asked")) not in application.told
    assert member.deadline_ms() is None
    assert [type(each) for each in member.take_effects()] == [Stop]
    application.effects.append(Trace(event="afterwards"))
    member.settle(cluster.now_ms)
    assert member.take_effects() == []
