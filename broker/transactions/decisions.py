"""The decisions that a rule can make about a request to a transactional id."""

from typing import NamedTuple

from broker.transactions.transaction import Transaction
from wire.errors import ErrorCode

__all__ = ["Decision", "NeedsProducerId", "Refused", "Settled", "Step"]


class Refused(NamedTuple):
    error: ErrorCode


class Settled(NamedTuple):
    """It is so already: nothing is written."""

    producer_id: int
    producer_epoch: int


class Step(NamedTuple):
    """The next value is written, then the request is answered."""

    transaction: Transaction
    error: ErrorCode = ErrorCode.NONE  # the answer, once it is written


class NeedsProducerId(NamedTuple):
    """The rule is asked again once there is a new producer id."""


Decision = Refused | Settled | Step | NeedsProducerId
