"""Objects for `playing`, honest or not, and for each what its operations may do: the whole truth.

A truth is a function like that of a model: the state after an operation, ILLEGAL if it cannot have
ended as it did. It is written without a look at any checker.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from jepsen_like.checkers.models import ILLEGAL
from jepsen_like.checkers.operations import Operation
from jepsen_like.histories.history import Kind
from tests.agreement.playing import Answer

__all__ = [
    "INITIAL_VALUE",
    "KEY",
    "BegunCasRegister",
    "BegunRegister",
    "CasRegister",
    "ConditionalRegister",
    "Element",
    "Log",
    "Register",
    "Strings",
    "VersionedRegister",
    "after_access",
    "after_append",
    "after_change",
    "after_conditional",
    "after_listing",
    "after_string",
    "after_version",
]

KEY = "object-0"


@dataclass
class _Liar:
    random: Random
    dishonesty: float = 0.0
    fails_falsely = True

    def __post_init__(self) -> None:
        self.dishonesty = self.random.choice([0.0, 0.0, 0.2, 0.5])

    def lies(self) -> bool:
        return self.random.random() < self.dishonesty


@dataclass
class Log(_Liar):
    """Without gaps; a poll reads records, or is told the end."""

    workload = "log"
    records: list[int] = field(default_factory=list)

    def wish(self, number: int) -> tuple[str, Any]:
        if self.random.random() < 0.6:
            return "send", [["send", KEY, number]]
        return "poll", [["poll"]]

    def answer(self, f: str, argument: Any) -> Answer:
        lie = self.random.choice([-1, 1]) if self.lies() else 0
        if f == "send":
            self.records.append(argument[0][2])
            offset = max(0, len(self.records) - 1 + lie)
            return Answer(value=[["send", KEY, [offset, argument[0][2]]]])
        if self.random.random() < 0.5:
            end = max(0, len(self.records) + lie)
            return Answer(value=[["poll", {}]], extra={"ends": {KEY: end}})
        begin = self.random.randrange(len(self.records) + 1)
        read = [[at, self.records[at]] for at in range(begin, len(self.records))]
        if lie and read:
            read[-1][0] += 1
        return Answer(value=[["poll", {KEY: read}]])


def after_append(log: tuple[int, ...], operation: Operation) -> Any:
    if operation.f == "send":
        is_told = operation.kind is Kind.OK
        is_wrong = is_told and operation.result[0][2][0] != len(log)
        return ILLEGAL if is_wrong else (*log, operation.argument[0][2])
    end = operation.extra.get("ends", {}).get(KEY, len(log))
    read = operation.result[0][1].get(KEY, [])
    is_true = end == len(log) and all(at < len(log) and log[at] == value for at, value in read)
    return log if is_true else ILLEGAL


@dataclass
class Register(_Liar):
    """Every write is of a value of its own."""

    workload = "register"
    values: list[int | None] = field(default_factory=lambda: [None])

    def wish(self, number: int) -> tuple[str, Any]:
        return self.random.choice([("read", [KEY, None]), ("write", [KEY, number])])

    def answer(self, f: str, argument: Any) -> Answer:
        if f == "write":
            self.values.append(argument[1])
            return Answer(extra=self.told(len(self.values) - 1))
        version = len(self.values) - 1
        if self.lies():
            version = max(0, version - self.random.choice([1, 1, 2]))
        return Answer(value=[KEY, self.values[version]], extra=self.told(version))

    def told(self, version: int) -> dict[str, Any]:
        return {}


@dataclass
class VersionedRegister(Register):
    fails_falsely = False  # a version that nobody was told of is a gap, and gaps are legal

    def told(self, version: int) -> dict[str, Any]:
        return {"version": version}


@dataclass
class ConditionalRegister(VersionedRegister):
    """A partition's state: half of the writes are made only if their version is the last one."""

    workload = "partition-epoch"

    def answer(self, f: str, argument: Any) -> Answer:
        if f == "read" or self.random.random() < 0.5:
            return super().answer(f, argument)
        last = len(self.values) - 1
        expected = max(0, last - self.random.choice([0, 0, 1]))
        if expected != last and not self.lies():
            return Answer(has_failed=True)
        self.values.append(argument[1])
        return Answer(extra={"version": last + 1, "expected": expected})


def after_access(value: Hashable, operation: Operation) -> Any:
    if operation.f == "write":
        return operation.argument
    return value if operation.result == value else ILLEGAL


def after_version(state: tuple[Hashable, int], operation: Operation) -> Any:
    told = operation.extra.get("version")
    if operation.f == "read":
        return state if (operation.result, told) == state else ILLEGAL
    version = state[1] + 1
    return (operation.argument, version) if told in (None, version) else ILLEGAL


def after_conditional(state: tuple[Hashable, int, bool], operation: Operation) -> Any:
    """Versions may have gaps. What nobody was told is at least so high, until a read tells it."""
    value, least, is_known = state
    told = operation.extra.get("version")
    if operation.f == "read":
        is_able = told is not None and (told == least if is_known else told >= least)
        return (value, told, True) if is_able and operation.result == value else ILLEGAL
    if told is None:
        return operation.argument, least + 1, False
    is_able = least <= operation.extra.get("expected", told - 1) < told
    return (operation.argument, told, True) if is_able else ILLEGAL


@dataclass
class CasRegister(_Liar):
    """Few values, so that each comes back; what fails tells what it saw, or only that it did."""

    workload = "cas-register"
    value: int | None = None

    def wish(self, number: int) -> tuple[str, Any]:
        old, new = self.random.randrange(3), self.random.randrange(3)
        wishes = [("read", None), ("write", new), ("cas", [old, new]), ("cas", [self.value, new])]
        f, argument = self.random.choice(wishes)
        return f, [KEY, argument]

    def answer(self, f: str, argument: Any) -> Answer:
        old = self.random.randrange(3) if self.lies() else self.value
        match f:
            case "read":
                return Answer(value=[KEY, old])
            case "write":
                self.value = argument[1]
            case "cas" if argument[1][0] == old:
                self.value = argument[1][1]
            case "cas":
                tells: list[dict[str, Any]] = [{}, {"seen": old}, {"mismatch": True}]
                told = self.random.choice(tells)
                return Answer(has_failed=True, extra=told)
        return Answer()


def after_change(value: Hashable, operation: Operation) -> Any:
    if operation.f != "cas":
        return after_access(value, operation)
    old, new = operation.argument
    if operation.kind is Kind.FAIL:
        seen = operation.extra.get("seen", value)
        is_true = seen == value and ("seen" in operation.extra or value != old)
        return value if is_true else ILLEGAL
    return new if old == value else ILLEGAL


INITIAL_VALUE = 2


@dataclass
class BegunRegister(Register):
    values: list[int | None] = field(default_factory=lambda: [INITIAL_VALUE])


@dataclass
class BegunCasRegister(CasRegister):
    value: int | None = INITIAL_VALUE


@dataclass
class Strings(_Liar):
    workload = "kv"
    value: str = ""

    def wish(self, number: int) -> tuple[str, Any]:
        f = self.random.choice(["get", "get", "append", "append", "put"])
        return f, [KEY, None if f == "get" else f"{number} "]

    def answer(self, f: str, argument: Any) -> Answer:
        if f == "get":
            parts = self.value.split()
            if self.lies() and parts:
                parts.pop(self.random.randrange(len(parts)))
            return Answer(value=[KEY, "".join(f"{part} " for part in parts)])
        self.value = argument[1] if f == "put" else self.value + argument[1]
        return Answer()


def after_string(value: str, operation: Operation) -> Any:
    match operation.f:
        case "get":
            return value if operation.result == value else ILLEGAL
        case "put":
            return operation.argument
        case _:
            return value + operation.argument


@dataclass
class Element(_Liar):
    """Of a set: clients add it, remove it and list it in any order, there or not.

    In half of the histories it is added once at most: the fast checker judges only these. A list
    may name an element twice.
    """

    workload = "set"
    is_there: bool = False
    adds_left: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.adds_left = self.random.choice([1, float("inf")])

    def wish(self, number: int) -> tuple[str, Any]:
        f = self.random.choice(["read", "read", "add", "remove"])
        if f == "add" and self.adds_left:
            self.adds_left -= 1
            return "add", "x"
        return ("remove", "x") if f == "remove" else ("read", None)

    def answer(self, f: str, argument: Any) -> Answer:
        if f == "read":
            listed = self.random.choice([["x"], ["x"], ["x", "x"]])
            return Answer(value=listed if self.is_there != self.lies() else [])
        self.is_there = f == "add"
        return Answer()


def after_listing(is_there: bool, operation: Operation) -> Any:
    match operation.f:
        case "add":
            return True
        case "remove":
            return False
        case _:
            return is_there if bool(operation.result) == is_there else ILLEGAL
