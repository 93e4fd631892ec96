"""What consumer groups commit: it stays, it goes forward, and a reader resumes there.

    commit     {key: offset}; extras group=name, generation=n if it is known
    committed  [key, ...], ok {key: offset, or None}; extra group=name
    assign     extras group=name, seek="committed": the reading begins at what is committed

`committed-stale`, for either of the last two, may be old: a coordinator that was cut off answers
with what it knows, until it knows better. It may not be wrong: the offset was committed once.

The offset of a group and key is a register that `commit` writes and `committed` reads: it must be
linearizable, by whatever is exact for it. And within a generation:

    commit-backwards   an offset is committed after a higher one
    stale-commit       a commit is acknowledged though one of a later generation had been before
    resumed-elsewhere  a reading does not begin with the first record at or behind any offset that
                       can have been committed then

A commit of unknown end may count at any later time, or never. Source: Kafka's consumer groups;
KIP-62 and KIP-429 for what generations promise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from jepsen_like.checkers.operations import NEVER, Operation, malformed, overtaken
from jepsen_like.checkers.registers import check_registers
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Finding, Verdict, compose
from jepsen_like.histories.history import Kind, Value

__all__ = ["check_commits"]

_UNKNOWN = -1
_STALE = "committed-stale"
_Place = tuple[str, str]  # a group and a key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    offset: int
    generation: int  # _UNKNOWN: nobody told
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resumed:
    assigned: Operation
    poll: Operation
    offset: int  # of the first record

    @property
    def may_be_old(self) -> bool:
        return bool(self.assigned.extra["seek"] == _STALE)


@dataclass(slots=True)
class _Groups:
    commits: dict[_Place, list[_Commit]] = field(default_factory=dict)
    resumed: dict[_Place, list[_Resumed]] = field(default_factory=dict)
    registers: list[Operation] = field(default_factory=list)
    offsets: dict[str, set[int]] = field(default_factory=dict)  # that anybody saw, of each key
    _waiting: dict[tuple[Value, str], tuple[str, Operation]] = field(default_factory=dict)

    def add(self, operation: Operation) -> None:
        match operation.f:
            case "commit":
                self._commit(operation)
            case "committed" | "committed-stale" as f if operation.kind is Kind.OK:
                for key, offset in operation.result.items():
                    self._register("read-stale" if f == _STALE else "read", operation, key, offset)
            case "assign" if operation.kind is Kind.OK:
                self._assign(operation)
            case "poll" | "txn" | "send" if operation.kind is Kind.OK:
                self._see(operation)
            case _:
                pass

    def _commit(self, operation: Operation) -> None:
        for key, offset in operation.argument.items():
            if type(offset) is not int:
                raise ValueError(offset)
            self._register("write", operation, key, offset)
            generation = int(operation.extra.get("generation", _UNKNOWN))
            commit = _Commit(offset=offset, generation=generation, operation=operation)
            if operation.kind is not Kind.FAIL:
                self.commits.setdefault((operation.extra["group"], key), []).append(commit)

    def _register(self, f: str, operation: Operation, key: str, offset: Value) -> None:
        name = f"{operation.extra['group']} {key}"
        value = [name, offset]
        extra = {name: operation.extra[name] for name in ("node",) if name in operation.extra}
        self.registers.append(replace(operation, f=f, argument=value, result=value, extra=extra))

    def _assign(self, operation: Operation) -> None:
        """A process that is assigned something else does not resume any more."""
        self._waiting = {
            where: what for where, what in self._waiting.items() if where[0] != operation.process
        }
        if operation.extra.get("seek") in ("committed", _STALE):
            for key in operation.argument:
                self._waiting[operation.process, key] = operation.extra["group"], operation

    def _see(self, operation: Operation) -> None:
        for step in operation.result:
            match step:
                case ["send", key, [int(offset), _]]:
                    self.offsets.setdefault(key, set()).add(offset)
                case ["poll", polled]:
                    for key, records in polled.items():
                        self._polled(operation, key, [offset for offset, _ in records])

    def _polled(self, operation: Operation, key: str, offsets: Sequence[int]) -> None:
        self.offsets.setdefault(key, set()).update(offsets)
        if offsets and (operation.process, key) in self._waiting:
            group, assigned = self._waiting.pop((operation.process, key))
            resumed = _Resumed(assigned=assigned, poll=operation, offset=offsets[0])
            self.resumed.setdefault((group, key), []).append(resumed)


def check_commits(operations: Sequence[Operation], budget: Budget | None = None) -> Verdict:
    groups = _Groups()
    for operation in operations:
        try:
            groups.add(operation)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise malformed(operation, f"a {operation.f} of a group") from error
    findings: list[Finding] = []
    for place, commits in groups.commits.items():
        findings += _went_back(" ".join(place), commits)
        findings += _stale(" ".join(place), commits)
    for place, resumed in groups.resumed.items():
        commits = groups.commits.get(place, [])
        findings += _elsewhere(" ".join(place), resumed, commits, groups.offsets[place[1]])
    counts = {"commits": sum(map(len, groups.commits.values()))}
    objects = [" ".join(place) for place in {**groups.commits, **groups.resumed}]
    linearizable = replace(check_registers(groups.registers, budget), counts={})
    return compose([Verdict.of(findings, counts, objects=objects), linearizable])


def _went_back(name: str, commits: Sequence[_Commit]) -> Iterator[Finding]:
    of_generation: dict[int, list[_Commit]] = {}
    for commit in _in_generations(commits):
        of_generation.setdefault(commit.generation, []).append(commit)
    for generation, mine in of_generation.items():
        for before, commit in overtaken(mine, of=_operation, rank=lambda each: each.offset):
            told = f"{commit.offset} was committed after {before.offset} in {generation}"
            yield Finding.of("commit-backwards", name, told, before.operation, commit.operation)


def _stale(name: str, commits: Sequence[_Commit]) -> Iterator[Finding]:
    known = _in_generations(commits)
    for before, commit in overtaken(known, of=_operation, rank=lambda each: each.generation):
        told = (
            f"generation {commit.generation} committed {commit.offset} "
            f"after generation {before.generation} had committed"
        )
        yield Finding.of("stale-commit", name, told, before.operation, commit.operation)


def _in_generations(commits: Sequence[_Commit]) -> list[_Commit]:
    """The acknowledged commits whose generation is known."""
    return [each for each in commits if each.generation != _UNKNOWN and each.operation.ret < NEVER]


def _operation(commit: _Commit) -> Operation:
    return commit.operation


def _elsewhere(
    name: str, resumed: Sequence[_Resumed], commits: Sequence[_Commit], offsets: set[int]
) -> Iterator[Finding]:
    for each in resumed:
        able = _able(each, commits)
        if not any(_acknowledged_before(each, commit) for commit in commits) or any(
            commit.offset <= each.offset
            and not any(commit.offset <= other < each.offset for other in offsets)
            for commit in able
        ):
            continue
        told = " or ".join(str(offset) for offset in sorted({commit.offset for commit in able}))
        detail = f"a reading began at offset {each.offset}, and {told} was committed"
        ops = (commit.operation for commit in able)
        yield Finding.of("resumed-elsewhere", name, detail, each.assigned, each.poll, *ops)


def _able(resumed: _Resumed, commits: Sequence[_Commit]) -> list[_Commit]:
    """The commits that can have been in force at some moment from the assignment to the first
    record; if the answer may be old, at any moment before."""
    before = [each for each in commits if _acknowledged_before(resumed, each)]
    latest_call = max((each.operation.call for each in before), default=-1)
    if resumed.may_be_old:
        latest_call = -1
    return [
        each
        for each in commits
        if each.operation.call < resumed.poll.ret and each.operation.ret > latest_call
    ]


def _acknowledged_before(resumed: _Resumed, commit: _Commit) -> bool:
    return commit.operation.ret < resumed.assigned.call
