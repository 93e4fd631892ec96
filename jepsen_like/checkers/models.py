"""What an object does, one operation after the other: small pure values that a search runs through.

A model is a function `state, operation -> state`, ILLEGAL where the operation cannot have ended as
it did in that state, with the state to begin with. States are hashable. To write one of your own:

    def counter(state: int, operation: Operation) -> int:
        if operation.f == "add":
            return state + operation.argument
        return state if operation.result == state else ILLEGAL

    COUNTER = Model(initial=0, step=counter, reads=frozenset({"read"}))

An operation whose end is unknown has no result; the search tries it at every later moment, and
leaving it out. One that would change nothing may say ILLEGAL: it is then left out.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

from jepsen_like.checkers.operations import Operation, not_of
from jepsen_like.histories.history import Kind, Value

__all__ = ["ILLEGAL", "QUEUE", "REGISTER", "STRINGS", "Model"]

ILLEGAL: Final[Any] = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    initial: Hashable
    step: Callable[[Any, Operation], Any]
    reads: frozenset[str]  # the fs that change no state, ever

    def is_read(self, operation: Operation) -> bool:
        """A failed operation has changed nothing either; it may yet say what the state was not."""
        return operation.f in self.reads or operation.kind is Kind.FAIL


def _register(state: Hashable, operation: Operation) -> Any:
    """A compare-and-set that failed says only that the value was another than it expected."""
    match operation.f:
        case "read":
            return state if operation.result == state else ILLEGAL
        case "write":
            return operation.argument
        case "cas":
            expected, new = operation.argument
            if operation.kind is Kind.FAIL:
                return state if state != expected else ILLEGAL
            return new if state == expected else ILLEGAL
        case _:
            raise not_of(operation, "a register")


def _string(state: str, operation: Operation) -> Any:
    match operation.f:
        case "get":
            return state if _text(operation.result) == state else ILLEGAL
        case "put":
            return _text(operation.argument)
        case "append":
            return state + _text(operation.argument)
        case _:
            raise not_of(operation, "a string")


def _text(value: Value) -> str:
    return "" if value is None else str(value)


def _queue(state: tuple[Hashable, ...], operation: Operation) -> Any:
    """First in, first out. A dequeue of unknown end takes whatever is first."""
    match operation.f:
        case "enqueue":
            return (*state, operation.argument)
        case "dequeue" if operation.kind is Kind.INFO:
            return state[1:] if state else ILLEGAL
        case "dequeue" if operation.result is None:
            return ILLEGAL if state else state
        case "dequeue":
            return state[1:] if state and state[0] == operation.result else ILLEGAL
        case _:
            raise not_of(operation, "a queue")


QUEUE = Model(initial=(), step=_queue, reads=frozenset())
REGISTER = Model(initial=None, step=_register, reads=frozenset({"read"}))
STRINGS = Model(initial="", step=_string, reads=frozenset({"get"}))  # Porcupine's key-value tests
