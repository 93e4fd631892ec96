"""The metadata log on what raftos commits: epochs, leadership, fetches, and what raftos loses."""

from random import Random
from uuid import UUID

from quorum.core.effects import (
    Append,
    Effect,
    EpochStart,
    LogState,
    Reply,
    Request,
    Stop,
    StorageFailed,
    Stored,
    Token,
    Trace,
    Truncate,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import LeaderAndEpoch, OffsetAndEpoch
from quorum.raft.messages import fetch_request
from quorum.raft.roles import Follower, Leader, Unattached
from quorum.raftos.commands import PIECE_BYTES_MAX, Command
from quorum.raftos.confirming_raftos_node import ConfirmingRaftosNode
from quorum.raftos.raftos_effects import (
    Broken,
    Committed,
    News,
    RaftosEvent,
    RaftosRequest,
    TermAndLeader,
)
from tests.quorum.replicas import config
from wire.batch import assign, data_batch, headers
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.fetching import FetchResponse
from wire.messages.quorum_epochs import VoteRequest, VoteResponse
from wire.messages.voters import AddRaftVoterRequest, AddRaftVoterResponse

NOW_MS = 1_000


class Driven:
    """Node 1 of 1, 2, 3, with a raftos that is moved by hand, and a disk that syncs at once, or
    when it is told to."""

    def __init__(self, state: LogState | None = None, *, syncs_at_once: bool = True) -> None:
        found = state or LogState(log=METADATA_LOG)
        self.node = ConfirmingRaftosNode(config(1), found, Random(1), NOW_MS)
        self.asked: list[RaftosRequest] = []
        self.effects: list[Effect] = []
        self._syncs_at_once = syncs_at_once
        self._unsynced: list[Token] = []
        self.settle()

    def settle(self) -> None:
        while effects := self.node.take_effects():
            for effect in effects:
                self.effects.append(effect)
                match effect:
                    case RaftosRequest():
                        self.asked.append(effect)
                    case Append() | Truncate():
                        self._unsynced.append(effect.token)
                    case _:
                        pass
            while self._unsynced and self._syncs_at_once:
                self._stored()

    def sync(self) -> None:
        """The oldest write that is not synced yet."""
        self._stored()
        self.settle()

    def _stored(self) -> None:
        self.node.receive(Stored(log=METADATA_LOG, token=self._unsynced.pop(0)), NOW_MS)

    def hear(self, news: News) -> None:
        self.node.receive(RaftosEvent(news=news), NOW_MS)
        self.settle()

    def ask(self, body: object) -> None:
        self.node.receive(Request(token=7, body=body), NOW_MS)
        self.settle()

    def commit(self, *, term: int) -> Command:
        """The oldest command that was proposed and is not committed yet."""
        command = self.asked.pop(0).command
        assert command is not None
        self.hear(Committed(term=term, command=command))
        return command

    def lead(self, term: int) -> None:
        self.hear(TermAndLeader(term=term, leader_id=1))
        self.commit(term=term)
        assert isinstance(self.node.role, Leader), self.node.role

    def append(self, *values: bytes) -> int:
        last_offset = self.node.append(data_batch(values, timestamp_ms=NOW_MS), NOW_MS)
        self.settle()
        return last_offset

    @property
    def stored(self) -> list[tuple[int, int, int]]:
        """Base offset, epoch and records of every batch in the local log."""
        batches = b"".join(each.records for each in self.effects if isinstance(each, Append))
        return [(h.base_offset, h.leader_epoch, h.record_count) for _, h in headers(batches)]

    @property
    def stops(self) -> list[Stop]:
        return [each for each in self.effects if isinstance(each, Stop)]

    @property
    def stopped(self) -> str | None:
        return next((each.reason for each in self.stops), None)

    def replies(self) -> list[object]:
        return [each.body for each in self.effects if isinstance(each, Reply)]


def foreign(number: int, value: bytes, base_offset: int) -> Command:
    records = data_batch([value], timestamp_ms=NOW_MS)
    return Command(proposer=2, life=9, number=number, base_offset=base_offset, records=records)


def test_who_wins_a_term_leads_once_its_first_record_is_committed() -> None:
    driven = Driven()
    driven.hear(TermAndLeader(term=4, leader_id=1))
    assert (driven.node.leading_since, driven.node.leader) == (None, LeaderAndEpoch(None, 4))
    driven.commit(term=4)
    assert driven.node.leading_since == EpochStart(4, 0)
    assert driven.node.leader == LeaderAndEpoch(1, 4)
    assert (driven.stored, driven.node.high_watermark) == ([(0, 4, 1)], 1)


def test_what_is_committed_is_shown_once_it_is_synced_here() -> None:
    driven = Driven(syncs_at_once=False)
    for number, value in enumerate([b"a", b"b"]):
        driven.hear(Committed(term=2, command=foreign(number, value, base_offset=number)))
    seen = [(driven.node.high_watermark, driven.node.committed_through)]
    for _ in range(2):
        driven.sync()
        seen.append((driven.node.high_watermark, driven.node.committed_through))
    assert seen == [(None, 0), (1, 1), (2, 2)]


def test_leader_shows_nothing_before_its_own_first_record_is_synced() -> None:
    driven = Driven(syncs_at_once=False)
    driven.hear(Committed(term=1, command=foreign(1, b"a", base_offset=0)))
    driven.lead(2)
    driven.append(b"b")
    driven.commit(term=2)
    seen = []
    for _ in range(3):
        driven.sync()
        seen.append(driven.node.high_watermark)
    assert seen == [None, 2, 3]


def test_no_two_proposals_of_a_process_share_a_number() -> None:
    driven = Driven()
    for term in (1, 2, 3):
        driven.hear(TermAndLeader(term=term, leader_id=1))
    assert [each.command.number for each in driven.asked if each.command] == [1, 2, 3]


def test_leader_answers_with_offsets_that_raftos_then_fills() -> None:
    driven = Driven()
    driven.lead(1)
    assert (driven.append(b"a", b"b"), driven.append(b"c"), driven.append(b"d")) == (2, 3, 4)
    assert (driven.node.end_offset, driven.node.high_watermark) == (5, 1)
    driven.commit(term=1)
    driven.commit(term=1)
    assert driven.stored == [(0, 1, 1), (1, 1, 2), (3, 1, 1), (4, 1, 1)]
    assert driven.node.high_watermark == driven.node.committed_through == 5


def test_large_batch_is_in_the_log_when_its_last_piece_is_committed() -> None:
    driven = Driven()
    driven.lead(1)
    assert driven.append(bytes(2 * PIECE_BYTES_MAX)) == 1
    assert driven.commit(term=1).pieces == 3
    driven.commit(term=1)
    assert driven.stored == [(0, 1, 1)]
    driven.commit(term=1)
    assert driven.stored == [(0, 1, 1), (1, 1, 1)]


def test_follower_takes_what_another_leader_committed() -> None:
    driven = Driven()
    driven.hear(TermAndLeader(term=2, leader_id=2))
    driven.hear(Committed(term=2, command=foreign(1, b"a", base_offset=0)))
    assert (driven.stored, driven.node.committed_through) == ([(0, 2, 1)], 1)
    assert isinstance(driven.node.role, Follower)


def test_who_lost_leadership_proposes_nothing_more() -> None:
    driven = Driven()
    driven.lead(1)
    driven.append(b"a")
    driven.append(b"b")
    driven.hear(TermAndLeader(term=2, leader_id=3))
    (pending,) = driven.asked
    assert pending.command is not None
    driven.hear(Committed(term=1, command=pending.command))  # a later leader had it
    assert driven.stored == [(0, 1, 1), (1, 1, 1)]
    assert (driven.node.end_offset, driven.node.leading_since) == (2, None)
    assert len(driven.asked) == 1


def test_resigning_asks_raftos_to_step_down_and_the_echo_changes_nothing() -> None:
    driven = Driven()
    driven.lead(3)
    driven.node.resign(NOW_MS)
    driven.settle()
    assert driven.asked == [RaftosRequest(term=3, command=None)]
    roles = len(driven.effects)
    driven.hear(TermAndLeader(term=3, leader_id=None))
    assert isinstance(driven.node.role, Unattached)
    assert len(driven.effects) == roles


def test_question_whether_it_leads_is_answered_by_a_commit_after_it() -> None:
    driven = Driven()
    driven.lead(1)
    number = driven.node.confirm_leadership(NOW_MS)
    driven.settle()
    assert driven.node.confirmed_through == 0
    driven.commit(term=1)
    assert driven.node.confirmed_through == number == 1
    assert driven.stored == [(0, 1, 1)]


def test_command_in_another_place_than_its_leader_said_stops_the_node() -> None:
    driven = Driven()
    driven.hear(Committed(term=1, command=foreign(1, b"a", base_offset=0)))
    driven.hear(Committed(term=2, command=foreign(2, b"b", base_offset=5)))
    assert driven.stopped is not None
    assert "belong to offset 5, but the log ends at 1" in driven.stopped


def test_such_a_command_is_left_out_when_raftos_repeats_its_log() -> None:
    driven = Driven()
    for number, (value, offset) in enumerate([(b"a", 0), (b"x", 5), (b"b", 1)]):
        command = foreign(number, value, offset)
        driven.hear(Committed(term=1, command=command, is_replayed=True))
    assert driven.stopped is None
    assert driven.stored == [(0, 1, 1), (1, 1, 1)]
    left_out = [each for each in driven.effects if isinstance(each, Trace)][-1]
    assert (left_out.event, dict(left_out.fields)) == (
        "left_out",
        {"proposer": 2, "term": 1, "offset": 5},
    )


def test_earlier_epoch_behind_a_later_one_stops_the_node() -> None:
    driven = Driven()
    driven.hear(Committed(term=4, command=foreign(1, b"a", base_offset=0)))
    driven.hear(Committed(term=3, command=foreign(2, b"b", base_offset=1)))
    assert driven.stopped is not None
    assert "two nodes led one term" in driven.stopped


def test_follower_that_stands_says_so_and_one_that_hears_of_another_candidate_does_not() -> None:
    for is_candidate in (True, False):
        driven = Driven()
        driven.hear(TermAndLeader(term=4, leader_id=2))
        driven.hear(TermAndLeader(term=5, leader_id=None, is_candidate=is_candidate))
        told = [dict(each.fields) for each in driven.effects if isinstance(each, Trace)][-1]
        assert told["previous"] == "follower"
        assert told["role"] == ("candidate" if is_candidate else "unattached")


def test_term_that_goes_back_stops_the_node() -> None:
    driven = Driven()
    driven.hear(TermAndLeader(term=4, leader_id=None))
    driven.hear(TermAndLeader(term=0, leader_id=None))
    assert driven.stopped is not None
    assert "from term 4 to 0" in driven.stopped


def test_broken_library_stops_the_node_with_its_reason() -> None:
    driven = Driven()
    driven.hear(Broken(reason="raftos cannot write its log: disk full"))
    assert driven.stopped == "raftos cannot write its log: disk full"


def test_disk_that_fails_stops_the_node() -> None:
    driven = Driven()
    driven.hear(Committed(term=1, command=foreign(1, b"a", base_offset=0)))
    (token,) = (each.token for each in driven.effects if isinstance(each, Append))
    driven.node.receive(StorageFailed(log=METADATA_LOG, token=token, reason="disk full"), NOW_MS)
    driven.settle()
    assert driven.stopped == f"cannot store {METADATA_LOG}: disk full"


def test_node_that_has_stopped_hears_nothing_more() -> None:
    driven = Driven()
    driven.hear(Broken(reason="broken"))
    driven.hear(Committed(term=1, command=foreign(1, b"a", base_offset=0)))
    driven.ask(VoteRequest(cluster_id=None, voter_id=1, topics=()))
    assert (driven.stored, driven.replies()) == ([], [])


def test_leader_that_is_shut_down_has_raftos_step_down() -> None:
    driven = Driven()
    driven.lead(3)
    driven.node.shut_down(NOW_MS)
    driven.settle()
    assert driven.asked == [RaftosRequest(term=3, command=None)]
    assert [(each.reason, each.exit_code) for each in driven.stops] == [("shut down", 0)]


def test_log_of_an_earlier_process_is_made_anew() -> None:
    state = LogState(
        log=METADATA_LOG, end_offset=9, last_epoch=2, epochs=(EpochStart(1, 0), EpochStart(2, 4))
    )
    driven = Driven(state)
    assert [each.end_offset for each in driven.effects if isinstance(each, Truncate)] == [0]
    assert (driven.node.end_offset, driven.node.high_watermark) == (0, None)
    driven.hear(Committed(term=1, command=foreign(1, b"a", base_offset=0), is_replayed=True))
    assert driven.stored == [(0, 1, 1)]


# --- requests -----------------------------------------------------------------------------------


def test_broker_at_the_end_is_answered_when_more_is_committed() -> None:
    driven = Driven()
    driven.lead(1)
    broker = config(11, (1, 2, 3), syncs=False)
    driven.ask(fetch_request(broker, epoch=1, end=OffsetAndEpoch(1, 1), high_watermark=1))
    assert driven.replies() == []
    driven.append(b"a")
    driven.commit(term=1)
    records = assign(data_batch([b"a"], timestamp_ms=NOW_MS), base_offset=1, leader_epoch=1)
    (answer,) = driven.replies()
    assert isinstance(answer, FetchResponse)
    (partition,) = answer.responses[0].partitions
    assert (partition.error_code, partition.records) == (ErrorCode.NONE, records)


def test_broker_at_the_end_is_answered_when_its_time_is_up() -> None:
    driven = Driven()
    driven.lead(1)
    broker = config(11, (1, 2, 3), syncs=False)
    asked = fetch_request(broker, epoch=1, end=OffsetAndEpoch(1, 1), high_watermark=1)
    driven.ask(asked)
    due_ms = NOW_MS + asked.max_wait_ms
    assert driven.node.deadline_ms() == due_ms
    answers = []
    for now_ms in (due_ms - 1, due_ms):
        driven.node.settle(now_ms)
        driven.settle()
        answers.append(len(driven.replies()))
    assert answers == [0, 1]
    assert driven.node.deadline_ms() is None


def test_broker_that_waits_hears_of_lost_leadership() -> None:
    driven = Driven()
    driven.lead(1)
    broker = config(11, (1, 2, 3), syncs=False)
    driven.ask(fetch_request(broker, epoch=1, end=OffsetAndEpoch(1, 1), high_watermark=1))
    driven.hear(TermAndLeader(term=2, leader_id=2))
    (answer,) = driven.replies()
    assert isinstance(answer, FetchResponse)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 2)


def test_votes_of_our_raft_are_refused() -> None:
    driven = Driven()
    driven.ask(VoteRequest(cluster_id=None, voter_id=1, topics=()))
    assert driven.replies() == [VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, topics=())]


def test_voters_cannot_be_changed() -> None:
    driven = Driven()
    driven.lead(1)
    ask = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1000,
        voter_id=4,
        voter_directory_id=UUID(int=4),
        listeners=(Listener(name="CONTROLLER", host="node-4", port=9004),),
    )
    driven.ask(ask)
    (answer,) = driven.replies()
    assert isinstance(answer, AddRaftVoterResponse)
    assert answer.error_code is ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == "the voters are static: kraft.version is 0"
    assert driven.node.raise_kraft_version(1, NOW_MS) is not None
