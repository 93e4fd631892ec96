"""A guess what a history of others is of, and whether its values are [key, value].

A wrong guess would accuse a system that is right. So a history is only taken for what has all of
its operations, and something of its own that no other model has; what `add` added, the answers to
reads tell. Keys are told by questions: a read that asks for [key, nil] has one, one that asks for
nil has none, and then a pair may still be one value.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from jepsen_like.histories.history import NEMESIS, Kind, Lines, MalformedHistory, Value

__all__ = ["KEYED", "REGISTERS", "Survey", "with_keys"]

REGISTERS = ("cas-register", "partition-epoch", "register")  # workloads
_OF_QUEUES = ("enqueue", "dequeue")
_OF_REGISTERS = ("read", "write", "cas", "read-stale")
_OF_LISTS = frozenset({"add", "remove", "read", "read-stale"})
_OF_LOGS = frozenset(
    {"assign", "crash", "debug-topic-partitions", "poll", "send", "subscribe"}
)  # as Jepsen's kafka workload has them
_OF_CLIENTS = _OF_LOGS | {"commit", "committed", "txn", "txn poll", "txn send"}
KEYED = {"queue": _OF_QUEUES, **dict.fromkeys(REGISTERS, _OF_REGISTERS)}  # others have no keys
_OBSERVE = "observe"
_CHANGES = ("write", "cas", "enqueue")
_WITH_KEYS = (*_OF_QUEUES, *_OF_REGISTERS)
_READING = ("get", "read", "read-stale")
_ASKING = ("dequeue", "drain", "get", "read", "read-stale")
_KEY, _NOTHING, _VALUE, _OTHER = "a key", "nothing", "a value", "more"  # what a question says

# workload, what it must have, all that it may have
_MODELS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = tuple(
    (workload, frozenset(needed), frozenset(needed) | frozenset(others))
    for workload, needed, others in (
        ("append", {"txn append"}, {"txn", "txn r"}),
        ("rw-register", {"txn w"}, {"txn", "txn r"}),
        ("bank", {"transfer"}, {"read"}),
        ("total-queue", {"drain", "enqueue"}, {"dequeue"}),
        ("cas-register", {"cas"}, _OF_REGISTERS),
        ("register", {"write"}, _OF_REGISTERS),
        ("kv", {"append"}, {"get", "put"}),
        ("kv", {"put"}, {"get"}),
        ("register", {"read"}, {"read-stale"}),
        ("queue", {"enqueue"}, {"dequeue"}),
        ("observe", {_OBSERVE}, ()),
    )
)


@dataclass(slots=True)
class Survey:
    """What all lines of a history tell together."""

    done: set[str] = field(default_factory=set)  # fs, and the steps of transactions
    asked: set[str] = field(default_factory=set)  # what questions say
    answers: set[type] = field(default_factory=set)  # of reads and gets
    keyed: set[bool] = field(default_factory=set)  # whether values look like [key, value]

    @classmethod
    def of(cls, blocks: Iterable[Lines]) -> "Survey":
        survey = cls()
        for lines in blocks:
            survey._look_at(lines)
        survey.done = survey.done - {_OBSERVE} or survey.done  # every model may have samples
        return survey

    def workload(self) -> str:
        """ "" if nothing tells."""
        if self.done & {"poll", "send", "txn poll", "txn send"} and self.done <= _OF_CLIENTS:
            return "log" if self.done <= _OF_LOGS else "kafka"
        if self.done & {"add", "remove"} and self.done <= _OF_LISTS:
            return self._of_lists()
        for workload, needed, may_have in _MODELS:
            if needed <= self.done <= may_have:
                return workload if self._is_as(workload) else ""
        return ""

    def has_keys(self, workload: str, *, is_ours: bool) -> bool:
        """Does a workload that somebody named have keys? Ours do. Raises `MalformedHistory` if that
        cannot be told."""
        told = self._keys_told()
        if told is not None:
            return told
        if self.asked == {_NOTHING}:  # a pair is one value then
            return False
        if is_ours or (not self.asked and "cas" not in self.done):  # nobody asks: none is wrong
            return True
        raise MalformedHistory(
            f"its operations do not tell whether the values of a {workload} are [key, value]: "
            "each read asks for [key, nil] then, and for nil if they are not"
        )

    def _look_at(self, lines: Lines) -> None:
        columns = zip(lines.kind, lines.process, lines.f, lines.value, strict=True)
        for kind, process, f, value in columns:
            if process == NEMESIS:
                continue
            self.done.add(f)
            if f == "txn":
                self.done.update(f"txn {name}" for name in _names_of_steps(value))
            if kind == Kind.INVOKE and f in _ASKING:
                self.asked.add(_question(value))
                continue
            if kind == Kind.OK and f in _READING:
                self.answers.add(type(value[1] if f == "get" and _has_key(f, value) else value))
            is_told = kind in (Kind.INVOKE, Kind.OK) and value is not None
            if is_told and f in _WITH_KEYS:
                self.keyed.add(_has_key(f, value))

    def _of_lists(self) -> str:
        if not self.asked <= {_NOTHING}:
            return ""
        if self.answers == {int} and self.done == {"add", "read"}:
            return "counter"
        return "set" if self.answers and self.answers <= {list, tuple} else ""

    def _is_as(self, workload: str) -> bool:
        """Whether questions, answers and values are as this workload has them."""
        if self.done <= {"read", "read-stale"} and self.answers & {dict, list, tuple}:
            return False  # it may be all that is in a set, or a bank
        if workload in KEYED:
            return self._keys_told() is not None
        if workload == "kv":
            return "append" not in self.done or self.answers <= {str, type(None)}
        return self.asked <= {_NOTHING}

    def _keys_told(self) -> bool | None:
        """None: it cannot be told."""
        if self.asked == {_KEY} and False not in self.keyed:
            return True
        if self.asked <= {_NOTHING} and (False in self.keyed or not self.keyed):
            return False
        if self.asked <= {_NOTHING, _VALUE} and self.keyed == {False}:
            return False
        return None


def with_keys(workload: str, lines: Lines) -> Lines:
    """The same with "" for the key. A change that ends without a value only says that it did."""
    fs: Container[str] = KEYED[workload]
    value = [
        ["", value]
        if f in fs and (kind == Kind.INVOKE or value is not None or f not in _CHANGES)
        else value
        for f, kind, value in zip(lines.f, lines.kind, lines.value, strict=True)
    ]
    return lines._replace(value=value)


def _names_of_steps(value: Value) -> Iterator[Value]:
    for step in value if isinstance(value, list | tuple) else ():
        if isinstance(step, list | tuple) and step:
            yield step[0]


def _question(value: Value) -> str:
    match value:
        case None:
            return _NOTHING
        case [_, None]:
            return _KEY
        case list() | tuple() | dict():
            return _OTHER
        case _:
            return _VALUE


def _has_key(f: str, value: Value) -> bool:
    match value:
        case [_, [_, _] | (_, _)] if f == "cas":
            return True
        case [_, _]:
            return f != "cas"
        case _:
            return False
