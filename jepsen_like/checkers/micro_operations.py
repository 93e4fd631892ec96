"""Transactions of reads and writes, as Jepsen's `append` and `wr` have them, and their evidence.

    [["append", 3, 1], ["r", 3, [1]]]    to a list, and the whole list
    [["w", 3, 1], ["r", 3, 1]]           to a register, and its value; None: never written

An invocation has None for what it is going to read. A transaction has taken place if it is ok, or
if something that it wrote is read: also one that failed, and then that read breaks a rule (`G1a`).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from jepsen_like.checkers.operations import Operation, exact, malformed, not_of
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Kind, Value

__all__ = ["WRITE_OF", "Transaction", "Write", "Writes", "transactions_of"]

WRITE_OF = {"append": "append", "rw-register": "w"}  # what a write is called, by workload


@dataclass(frozen=True, slots=True)
class Write:
    by: "Transaction"
    is_last: bool  # of the transaction, to its key


@dataclass(slots=True, eq=False)
class Transaction:
    """`steps` are (f, key, value); keys and values are exact, so that they can be compared."""

    operation: Operation
    steps: Sequence[tuple[str, Hashable, Hashable]]
    has_failed: bool = False

    def writes(self, f: str) -> dict[Hashable, list[Hashable]]:
        written: dict[Hashable, list[Hashable]] = defaultdict(list)
        for name, key, value in self.steps:
            if name == f:
                written[key].append(value)
        return written


def transactions_of(operations: Sequence[Operation], write: str) -> list[Transaction]:
    """`write`: what a write is called. Raises `MalformedHistory`."""
    found = []
    for operation in operations:
        if operation.f != "txn":
            raise not_of(operation, "a history of transactions")
        is_ok = operation.kind is Kind.OK
        told = operation.result if is_ok and operation.result is not None else operation.argument
        steps = list(_steps(operation, told, write))
        if not is_ok or operation.result is None:  # it has read nothing that is known
            steps = [step for step in steps if step[0] == write]
        found.append(Transaction(operation, steps, operation.kind is Kind.FAIL))
    return found


def _steps(
    operation: Operation, told: Value, write: str
) -> Iterator[tuple[str, Hashable, Hashable]]:
    if not isinstance(told, list | tuple):
        raise malformed(operation, "a transaction")
    for step in told:
        match step:
            case [f, key, value] if f in ("r", write):
                try:
                    yield f, exact(key), exact(value)
                except TypeError as error:
                    raise malformed(operation, "a transaction") from error
            case _:
                raise malformed(operation, "a transaction")


@dataclass(slots=True)
class Writes:
    """Who wrote what, by key and value; `twice` are those of which that is not known."""

    of: dict[Hashable, dict[Hashable, Write]] = field(default_factory=lambda: defaultdict(dict))
    twice: list[tuple[Hashable, Hashable]] = field(default_factory=list)

    @classmethod
    def by(cls, transactions: Sequence[Transaction], f: str) -> "Writes":
        writes = cls()
        for each in transactions:
            for key, values in each.writes(f).items():
                for at, value in enumerate(values):
                    if value in writes.of[key]:
                        writes.twice.append((key, value))
                    writes.of[key][value] = Write(each, at == len(values) - 1)
        return writes

    def is_by(self, transaction: Transaction, key: Hashable, value: Hashable) -> bool:
        write = self.of[key].get(value)
        return write is not None and write.by is transaction

    def misread(self, reader: Transaction, key: Hashable, value: Hashable) -> Iterator[Finding]:
        """`phantom` and `G1a`: that it read this value is wrong, whatever isolation is promised."""
        write = self.of[key].get(value)
        if write is None:
            told = f"{reader.operation.index} read {value!r}, which nobody wrote"
            yield Finding.of("phantom", str(key), told, reader.operation)
        elif write.by.has_failed:
            told = f"{reader.operation.index} read {value!r}, whose write failed"
            yield Finding.of("G1a", str(key), told, write.by.operation, reader.operation)

    def intermediate(
        self, reader: Transaction, key: Hashable, value: Hashable
    ) -> Iterator[Finding]:
        """`G1b`: it read what its writer wrote over in the same transaction."""
        write = self.of[key].get(value)
        if write is not None and not write.is_last and write.by is not reader:
            told = f"{reader.operation.index} read {value!r}, which was not the last of its writer"
            yield Finding.of("G1b", str(key), told, write.by.operation, reader.operation)
