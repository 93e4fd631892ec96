"""Random static and dynamic members of one group, whose coordinator fails over again and again.

Processes are started twice with one instance id, stop without a word, and come back. The log of the
coordinator commits late, refuses, or takes more time than the coordinator waits. Whatever happens:

- no two members have one instance id, in the group and in what a leader is told;
- once a process has its assignment, earlier member ids of its instance id are fenced for ever;
- a process that has its assignment is fenced only if another one has come with its instance id, and
  forgotten only if it was silent or removed: a failover forgets neither;
- an assignment is what the leader assigned to this very member, by its instance id or name;
- each request is answered once, and without faults all have a place in one generation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.groups import joining, static, syncing
from broker.groups import members as membership
from broker.groups.group import Group, GroupState, Outcome, Replacement, restore
from broker.groups.records import GroupChange, GroupMetadata, decode_change, encode_change
from tests.broker.groups.scenes import CONFIG, REBALANCE_MS, SESSION_MS, joiner
from wire.errors import ErrorCode
from wire.messages.groups import (
    HeartbeatRequest,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

INSTANCES = ("A", "B", None)
PROTOCOLS = (("sticky", "range"), ("range", "sticky"), ("range",))
PROCESSES_MAX = 6
FENCED, UNKNOWN = ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID


@dataclass(eq=False)
class Process:
    name: str
    instance_id: str | None
    protocols: tuple[str, ...]
    member_id: str = ""
    generation: int = -1
    wants: str = "join"  # "join", "sync", "live", or "nothing": it was fenced
    assigns: tuple[tuple[str, str], ...] = ()  # member ids and names, if it leads
    token: int | None = None
    has_place: bool = False  # it has its assignment, and was neither silent nor removed
    may_be_fenced: bool = False  # another process has come with its instance id

    @property
    def label(self) -> str:
        """The leader assigns it: the instance id outlives the member id."""
        return self.instance_id or self.member_id


@dataclass
class Write:
    metadata: GroupMetadata
    replacement: Replacement | None
    is_awaited: bool = True


@dataclass
class World:
    now_ms: int = 1_000_000
    group: Group = field(default_factory=lambda: Group(id="g", state_since_ms=0))
    committed: list[bytes] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    is_refusing: bool = False
    processes: list[Process] = field(default_factory=list)
    ghosts: list[Process] = field(default_factory=list)
    waiting: dict[int, Process] = field(default_factory=dict)
    fenced: set[tuple[str, str]] = field(default_factory=set)  # instance id and member id
    told: dict[str, set[str]] = field(default_factory=dict)  # member ids, by instance id
    numbers: Any = field(default_factory=lambda: count(1))

    # --- what may happen; `choice` is any number

    def start(self, choice: int) -> None:
        """A process comes, perhaps with an instance id that another one has."""
        if len(self.processes) < PROCESSES_MAX:
            instance_id = INSTANCES[choice % 3]
            self.begin(instance_id, PROTOCOLS[choice % 7 % 3])

    def stop(self, choice: int) -> None:
        if self.processes:
            self._forget(self.processes.pop(choice % len(self.processes)))

    def bounce(self, choice: int) -> None:
        if self.processes:
            old = self.processes[choice % len(self.processes)]
            self.stop(choice)
            self.begin(old.instance_id, PROTOCOLS[choice // 3 % 3])

    def haunt(self, choice: int) -> None:
        """A process that was stopped, or fenced, asks once more."""
        ghosts = [process for process in self.ghosts if process.member_id]
        if ghosts:
            ghost = ghosts[choice % len(ghosts)]
            self._check_fenced(ghost, membership.heartbeat(self.group, _beat(ghost), self.now_ms))

    def settle(self, _choice: int) -> None:
        """A while without faults."""
        self.is_refusing = False
        for _ in range(4):
            self.all_step(0)
            self.commit(2)
            self.advance(1)

    def step(self, choice: int) -> None:
        if self.processes:
            self._act(self.processes[choice % len(self.processes)])

    def all_step(self, _choice: int) -> None:
        for process in tuple(self.processes):
            self._act(process)

    def commit(self, choice: int) -> None:
        for _ in range(1 + choice % 3):
            if self.writes:
                self._commit_first()

    def time_out(self, _choice: int) -> None:
        """The coordinator does not wait longer; the log may commit it all the same."""
        for write in [write for write in self.writes if write.is_awaited]:
            self._conclude(write, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def refuse(self, choice: int) -> None:
        self.is_refusing = choice % 4 == 0

    def fail_over(self, choice: int) -> None:
        """The next leader has some of what was not committed."""
        self._answer(membership.close(self.group, ErrorCode.NOT_COORDINATOR, self.now_ms))
        for write in self.writes:
            if write.is_awaited:
                self._conclude(write, ErrorCode.NOT_COORDINATOR)
        survivors = self.writes[: choice % (len(self.writes) + 1)]
        self.committed += [_encoded(write.metadata) for write in survivors]
        self.writes.clear()
        assert not self.waiting, "all that waited have been sent on"
        self.group = Group(id="g", state_since_ms=self.now_ms)
        if self.committed:
            self.group = restore("g", _decoded(self.committed[-1]), self.now_ms)

    def advance(self, choice: int) -> None:
        """Time goes by; each process that has a place sends a heartbeat first."""
        for process in tuple(self.processes):
            if process.wants == "live":
                self._act(process)
        self._tick((1000, 3000, SESSION_MS - 1000)[choice % 3])

    def be_silent(self, _choice: int) -> None:
        for process in self.processes:
            process.has_place = False
        self._tick(REBALANCE_MS)

    def remove(self, choice: int) -> None:
        """An administrator removes a static member, or some process leaves."""
        instance_id = INSTANCES[choice % 3]
        identity = MemberIdentity(member_id="", group_instance_id=instance_id)
        if instance_id is None and self.processes:
            leaving = self.processes.pop(choice % len(self.processes))
            self._forget(leaving)
            instance_id = leaving.instance_id
            identity = MemberIdentity(member_id=leaving.member_id, group_instance_id=instance_id)
        for process in self.processes:
            if (
                process.instance_id is not None
                and process.instance_id == identity.group_instance_id
            ):
                process.has_place = False
        out, _ = membership.leave(self.group, (identity,), CONFIG, self.now_ms)
        self._carry_out(out)

    # --- processes

    def begin(self, instance_id: str | None, names: tuple[str, ...]) -> None:
        self.processes.append(Process(f"p{next(self.numbers)}", instance_id, names))

    def _act(self, process: Process) -> None:
        if process.token is not None or process.wants == "nothing":
            return
        if process.wants == "live":
            self._beat(process)
            return
        token = process.token = next(self.numbers)
        self.waiting[token] = process
        if process.wants == "join":
            self._join(process, token)
        else:
            self._sync(process, token)

    def _join(self, process: Process, token: int) -> None:
        process.has_place = False
        if not process.member_id and process.instance_id is not None:
            for other in self.processes:
                if other is not process and other.instance_id == process.instance_id:
                    other.may_be_fenced = True
            process.may_be_fenced = False
        request = joiner(
            token,
            process.member_id,
            new_id=f"{process.name}-{token}",
            names=process.protocols,
            needs_id=True,
            instance_id=process.instance_id,
            can_skip=bool(token % 2),
        )
        self._carry_out(joining.join(self.group, request, CONFIG, self.now_ms))

    def _sync(self, process: Process, token: int) -> None:
        request = SyncGroupRequest(
            group_id="g",
            generation_id=process.generation,
            member_id=process.member_id,
            group_instance_id=process.instance_id,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=label.encode())
                for member_id, label in process.assigns
            ),
        )
        self._carry_out(syncing.sync(self.group, token, request, self.now_ms))

    def _beat(self, process: Process) -> None:
        self._heard(process, membership.heartbeat(self.group, _beat(process), self.now_ms))

    def _check_fenced(self, process: Process, error: ErrorCode) -> None:
        if (process.instance_id, process.member_id) in self.fenced:
            is_known = process.instance_id in self.group.static_ids
            assert error is (FENCED if is_known else UNKNOWN), (process, error)

    def _heard(self, process: Process, error: ErrorCode) -> None:
        if error is not ErrorCode.NOT_COORDINATOR:
            self._check_fenced(process, error)
        if error is ErrorCode.NONE:
            return
        if process.has_place:
            assert error is not UNKNOWN, process
            assert error is not FENCED or process.may_be_fenced, process
        if error is FENCED:
            self._forget(process)
        else:
            process.wants = "join"
        if error is UNKNOWN:
            process.member_id = ""
        if error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            process.protocols = PROTOCOLS[0]  # the user corrects it

    def _forget(self, process: Process) -> None:
        """It stops: its answers reach nobody."""
        process.wants = "nothing"
        self.ghosts.append(process)

    # --- answers

    def _answered(self, token: int, body: object) -> None:
        process = self.waiting.pop(token)  # once
        process.token = None
        match body:
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                self._joined(process, body)
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                process.member_id = body.member_id
            case SyncGroupResponse(error_code=ErrorCode.NONE):
                self._synced(process, body)
            case JoinGroupResponse() | SyncGroupResponse() if process.wants != "nothing":
                self._heard(process, body.error_code)

    def _joined(self, process: Process, body: JoinGroupResponse) -> None:
        assert (process.instance_id, body.member_id) not in self.fenced, process
        instances = [member.group_instance_id for member in body.members]
        known = [instance_id for instance_id in instances if instance_id is not None]
        assert len(set(known)) == len(known), body.members
        process.member_id, process.generation = body.member_id, body.generation_id
        leads = body.leader == body.member_id and not body.skip_assignment
        process.assigns = tuple(
            (member.member_id, member.group_instance_id or member.member_id)
            for member in (body.members if leads else ())
        )
        if process.instance_id is not None:
            self.told.setdefault(process.instance_id, set()).add(body.member_id)
        if process.wants != "nothing":
            process.wants = "sync"

    def _synced(self, process: Process, body: SyncGroupResponse) -> None:
        assert body.assignment == process.label.encode(), (process, body)
        assert (process.instance_id, process.member_id) not in self.fenced, process
        if process.instance_id is not None:
            earlier = self.told[process.instance_id] - {process.member_id}
            self.fenced |= {(process.instance_id, member_id) for member_id in earlier}
        if process.wants != "nothing":
            process.wants = "live"
            process.has_place = True

    # --- the coordinator

    def _carry_out(self, out: Outcome) -> None:
        self._answer(out)
        if out.stored is not None:
            write = Write(out.stored, out.replacement)
            if self.is_refusing:
                self._conclude(write, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            else:
                self.writes.append(write)
        self._check()

    def _answer(self, out: Outcome) -> None:
        for token, body in out.answers:
            self._answered(token, body)

    def _commit_first(self) -> None:
        write = self.writes.pop(0)
        self.committed.append(_encoded(write.metadata))
        if write.is_awaited:
            self._conclude(write, ErrorCode.NONE)

    def _conclude(self, write: Write, error: ErrorCode) -> None:
        write.is_awaited = False
        group, now_ms = self.group, self.now_ms
        if write.replacement is not None:
            out = static.replacement_stored(group, write.replacement, error, now_ms)
        elif error is ErrorCode.NONE:
            out = syncing.assigned(group, write.metadata, now_ms)
        else:
            out = syncing.assignment_failed(group, write.metadata, error, CONFIG, now_ms)
        self._carry_out(out)

    def _tick(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self._carry_out(membership.tick(self.group, CONFIG, self.now_ms))

    def _check(self) -> None:
        members = self.group.members
        assert all(member.id == member_id for member_id, member in members.items())
        static_ids = {
            member.instance_id: member.id for member in members.values() if member.is_static
        }
        assert len(static_ids) == sum(member.is_static for member in members.values()), members
        assert self.group.static_ids == static_ids
        assert set(self.group.unsynced) <= set(members), self.group.unsynced
        assert self.group.leader in members if members else True
        if self.group.state is GroupState.STABLE:
            spoken = [{spoken.name for spoken in member.protocols} for member in members.values()]
            assert all(self.group.protocol in names for names in spoken), spoken

    # --- the end

    def finish(self) -> None:
        """Without faults, the last process of each instance id has a place."""
        self.is_refusing = False
        latest = {process.instance_id or process.name: process for process in self.processes}
        for process in self.processes:
            if process not in latest.values():
                process.wants = "nothing"
        for _ in range(60):
            for process in latest.values():
                if process.wants == "nothing":  # it was fenced: somebody starts it again
                    process.wants, process.member_id = "join", ""
            self.all_step(0)
            self.commit(2)
            self.advance(1)
        self._tick(SESSION_MS + REBALANCE_MS)
        assert all(process in self.processes for process in self.waiting.values())
        assert {process.wants for process in latest.values()} <= {"live"}
        assert len({process.generation for process in latest.values()}) <= 1


def _beat(process: Process) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id="g",
        generation_id=process.generation,
        member_id=process.member_id,
        group_instance_id=process.instance_id,
    )


def _encoded(metadata: GroupMetadata) -> bytes:
    return encode_change(GroupChange(group_id="g", metadata=metadata)).value or b""


def _decoded(value: bytes) -> GroupMetadata:
    record = encode_change(GroupChange(group_id="g", metadata=None))
    change = decode_change(type(record)(key=record.key, value=value))
    assert isinstance(change, GroupChange)
    assert change.metadata is not None
    return change.metadata


ACTIONS: tuple[Callable[[World, int], None], ...] = (
    *[World.step] * 2,
    *[World.all_step] * 3,
    *[World.commit] * 3,
    *[World.advance] * 2,
    *[World.settle] * 2,
    *[World.start] * 2,
    *[World.bounce] * 3,
    World.stop,
    World.haunt,
    World.time_out,
    World.refuse,
    *[World.fail_over] * 3,
    World.be_silent,
    World.remove,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 20)), min_size=10, max_size=80))
def test_an_instance_id_has_one_member_and_earlier_ones_are_fenced(
    steps: list[tuple[Callable[[World, int], None], int]],
) -> None:
    world = World()
    for instance_id in INSTANCES:
        world.begin(instance_id, PROTOCOLS[0])
    world.settle(0)
    for act, choice in steps:
        act(world, choice)
    world.finish()
