"""Workloads of transactions: what is written together is read together, or never (KIP-98).

`transactions`: the log with transactions in place of sends. Each writes to some of the keys; some
are aborted on purpose, and end as `fail`: nothing of them may ever be read. Consumers read
committed records only. Judged as the log, with what transactions on logs promise beside.

`bank`: each partition is an account. A transfer takes from one and gives to another, in a
transaction; a read adds up all that is committed in every account. Kafka shows the two halves of a
transfer one after the other, so a read that sees one half reads on, and fails if its time is up:
only at the very end nothing may be in halves. Judged: the total.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from jepsen_like.histories.history import Value
from jepsen_like.workloads.log_workloads import Log
from jepsen_like.workloads.workload import (
    UNTIL_CAUGHT_UP,
    DrawnWorkload,
    Wish,
    Workload,
    WorkloadOptions,
)

__all__ = ["Transactions", "bank"]

_TOGETHER_MAX = 3  # records of a transaction
_ABORTED = 5  # one of so many transactions
_PAUSES = 2  # as long as a log's
_AMOUNT_MAX = 9
_TRANSFERS = 6  # for one read


def _perhaps_aborted(random: Random) -> Mapping[str, Value]:
    return {"end": "abort"} if random.randrange(_ABORTED) == 0 else {}


class Transactions(Log):
    pauses = _PAUSES
    weights: ClassVar[Mapping[str, int]] = {"write": 45, "poll": 50, "assign": 5}

    def __init__(self, options: WorkloadOptions) -> None:
        super().__init__(options, "transactions")

    def write(self, random: Random) -> Wish:
        together = random.randint(1, _TOGETHER_MAX)
        sends = [self.send(random).value[0] for _ in range(together)]
        return Wish(f="txn", value=sends, extra=_perhaps_aborted(random))


def bank(options: WorkloadOptions) -> Workload:
    log = Log(options)
    accounts = list(log.keys)

    def draw(_process: int, random: Random) -> Wish:
        if random.randrange(_TRANSFERS) == 0:
            return Wish(f="read", value=accounts)
        giver, taker = random.sample(accounts, 2)
        transfer = {"from": giver, "to": taker, "amount": random.randint(1, _AMOUNT_MAX)}
        return Wish(f="transfer", value=transfer, extra=_perhaps_aborted(random))

    def final(process: int) -> Sequence[Wish]:
        is_reader = process % options.processes == 0
        return [Wish(f="read", value=accounts, extra=UNTIL_CAUGHT_UP)] if is_reader else []

    return DrawnWorkload(
        name="bank", options=options, pauses=_PAUSES, draw=draw, final=final, topics=log.topics
    )
