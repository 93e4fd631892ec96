"""A register that several replicas keep: what is told is so, also when leaders go."""

import json
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from jepsen_like.planted.every_bug import planted
from quorum.core.effects import Request
from quorum.core.types import LeaderAndEpoch
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.member import Member
from quorum.node.register import Register, RegisterRequest, RegisterResponse
from quorum.raft.raft_node import RaftNode
from tests.quorum.replicas import Replicas
from wire.batch import assign, data_batch


class Registers:
    """Three replicas with a register each."""

    def __init__(self) -> None:
        self.of: dict[int, Register] = {}
        self.cluster = Replicas(engine=ConfirmingRaftNode, build=self.build)
        leader = self.cluster.elect()
        assert isinstance(leader, ConfirmingRaftNode)
        self.leader = leader
        self.cluster.run(50)

    def build(self, node: RaftNode) -> Member:
        assert isinstance(node, ConfirmingRaftNode)
        self.of[node.node_id] = Register(node)
        return ConfirmingMember(node, {"register": self.of[node.node_id]})

    @property
    def others(self) -> list[int]:
        return [each for each in self.cluster.ids if each != self.leader.node_id]

    def ask(
        self, f: str, value: int | None = None, old: int | None = None, node_id: int | None = None
    ) -> RegisterResponse:
        body = RegisterRequest(f=f, key="x", value=value, old=old)
        told = self.cluster.ask(self.leader.node_id if node_id is None else node_id, body)
        assert isinstance(told, RegisterResponse), told
        return told


def test_what_is_written_is_read() -> None:
    registers = Registers()
    assert registers.ask("read").value is None
    assert registers.ask("write", 1).outcome == "ok"
    assert (registers.ask("read").outcome, registers.ask("read").value) == ("ok", 1)


def test_cas_needs_the_old_value_and_tells_what_it_found() -> None:
    registers = Registers()
    registers.ask("write", 1)
    failed = registers.ask("cas", 3, old=2)
    assert (failed.outcome, failed.has_seen, failed.seen) == ("fail", True, 1)
    assert registers.ask("cas", 3, old=1).outcome == "ok"
    assert registers.ask("read").value == 3


def test_all_replicas_come_to_the_same_state() -> None:
    registers = Registers()
    for value in range(5):
        registers.ask("write", value)
    registers.cluster.run(500)
    assert [register.values for register in registers.of.values()] == [{"x": 4}] * 3


@pytest.mark.parametrize("f", ["read", "write"])
def test_who_does_not_lead_refuses_and_names_who_does(f: str) -> None:
    registers = Registers()
    told = registers.ask(f, 1, node_id=registers.others[0])
    assert (told.outcome, told.leader_id) == ("fail", registers.leader.node_id)


@pytest.mark.parametrize(("f", "outcome"), [("read", "fail"), ("write", "info")])
def test_leader_that_is_cut_off_knows_nothing(f: str, outcome: str) -> None:
    """A read has changed nothing; a write may be found by the next leader."""
    registers = Registers()
    registers.cluster.isolate(registers.leader.node_id)
    assert registers.ask(f, 1).outcome == outcome


def told_of_a_write_that_was_lost() -> list[str]:
    """It was appended at offset 0, where the next leader has written something else."""
    log: Any = SimpleNamespace(leader=LeaderAndEpoch(2, 2), append=lambda _batch, _now_ms: 0)
    register = Register(log)
    register.lead(1, now_ms=0)
    lost = RegisterRequest(f="write", key="x", value=1)
    register.receive(Request(token=1, body=lost), now_ms=0)
    register.resign(now_ms=0)
    written = json.dumps({"f": "write", "key": "x", "value": 2, "old": None}).encode()
    batch = assign(data_batch([written], timestamp_ms=0), base_offset=0, leader_epoch=2)
    register.committed(batch, 1, now_ms=0)
    assert register.values == {"x": 2}
    replies: list[Any] = register.take_effects()
    return [reply.body.outcome for reply in replies]


def test_nobody_knows_of_a_write_whose_epoch_has_ended() -> None:
    assert told_of_a_write_that_was_lost() == ["info"]


def test_a_waiter_without_its_epoch_is_found() -> None:
    with planted("forgets_the_epoch_of_who_waits"):
        assert told_of_a_write_that_was_lost() == ["ok"]


def test_snapshot_holds_what_was_applied() -> None:
    registers = Registers()
    for value in range(3):
        registers.ask("write", value)
    full = registers.of[registers.leader.node_id]
    state = full.state()
    assert state is not None
    newcomer = Register(registers.leader)
    for number, batch in zip(count(), state.batches, strict=False):
        newcomer.load(batch, is_first=number == 0)
    end = registers.leader.replica.log.end
    newcomer.loaded(end, now_ms=0)
    assert (newcomer.values, newcomer.applied_offset) == (full.values, end.offset)


def test_function_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="f is 'add', not one of read, write, cas"):
        RegisterRequest(f="add", key="x")


def test_read_is_answered_as_soon_as_a_majority_has_confirmed() -> None:
    """Only the engine hears of that, and nothing is committed meanwhile."""
    registers = Registers()
    registers.ask("write", 1)
    registers.cluster.run(1000)
    for _ in range(3):
        asked_ms = registers.cluster.now_ms
        assert registers.ask("read").outcome == "ok"
        assert registers.cluster.now_ms - asked_ms < 100
        registers.cluster.run(300)
