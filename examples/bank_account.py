"""A model of one's own, in a few lines: an account that must never be overdrawn.

quorumlab check history.jsonl --model examples/bank_account.py:ACCOUNT

Operations are `deposit` and `withdraw` of a sum, and `balance`, which is ok with what it saw. Where
all values are [name, sum], each name is an account by itself. A withdrawal that failed was refused,
and has changed nothing; one of which nobody knows the end may still be made, or never.
"""

from typing import Any

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import Operation

__all__ = ["ACCOUNT"]


def account(balance: int, operation: Operation) -> Any:
    """The balance after the operation; ILLEGAL if it cannot have ended as it did."""
    match operation.f:
        case "deposit":
            return balance + operation.argument
        case "withdraw":
            return balance - operation.argument if operation.argument <= balance else ILLEGAL
        case "balance":
            return balance if operation.result == balance else ILLEGAL
        case _:
            return ILLEGAL


ACCOUNT = Model(initial=0, step=account, reads=frozenset({"balance"}))
