"""Into which objects a history falls apart: parts that can be judged by themselves.

A history is right if and only if each of its objects is (linearizability is a local property), so
that objects can be judged on many machines, or many at once. What spans several objects is not
cut: then the run is one object.
Source: Herlihy and Wing 1990; Horn and Kroening 2015.
"""

from enum import Enum

from jepsen_like.checkers.operations import Operation

__all__ = ["Split", "key_of", "split_of"]


class Split(Enum):
    STEPS = "steps"  # an operation may touch several keys, each step of it one: see `log_steps`
    KEYS = "keys"  # an operation's value is [key, ...]
    WHOLE = "whole"


_SPLITS = {
    "admin": Split.STEPS,
    "cas-register": Split.KEYS,
    "kv": Split.KEYS,
    "log": Split.STEPS,
    "queue": Split.KEYS,
    "register": Split.KEYS,
}


def split_of(workload: str) -> Split:
    return _SPLITS.get(workload, Split.WHOLE)


def key_of(operation: Operation) -> str:
    """Of a workload that falls apart by keys; "" for what has no key, and concerns none."""
    match operation.argument:
        case [key, *_]:
            return str(key)
        case _:
            return ""
