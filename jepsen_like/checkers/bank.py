"""A bank whose accounts are read all at once (Jepsen's `bank`): what is moved does not get lost.

    transfer {"from": 0, "to": 1, "amount": 3}
    read                                        ok {0: 7, 1: 3}: each account and its balance

- `wrong-total`: the balances that one read saw do not add up to the total. The header's option
  `total-amount` says what that is; else it is what the first read saw
- `negative-balance`: an account is overdrawn, unless the option `negative-balances?` allows it
- `unknown-account`: one that is not in the option `accounts`, if that is there

Whether transfers and reads can be brought into an order is not asked.
"""

from collections.abc import Iterator, Mapping, Sequence

from jepsen_like.checkers.operations import Operation, malformed, not_of
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind, Value

__all__ = ["check_bank"]

_SHOWN = 3  # of each rule


def check_bank(operations: Sequence[Operation], options: Mapping[str, Value]) -> Verdict:
    """Raises `MalformedHistory`."""
    reads = []
    for each in operations:
        if each.f == "read" and each.kind is Kind.OK:
            reads.append((each, _balances(each)))
        elif each.f not in ("read", "transfer"):
            raise not_of(each, "a bank")
    total = options.get("total-amount")
    if total is None and reads:
        total = sum(reads[0][1].values())
    found: dict[str, list[Finding]] = {}
    for operation, balances in reads:
        for finding in _wrong(operation, balances, total, options):
            found.setdefault(finding.rule, []).append(finding)
    shown = [each for of in found.values() for each in of[:_SHOWN]]
    return Verdict.of(shown, {"reads": len(reads)} | {name: len(of) for name, of in found.items()})


def _balances(operation: Operation) -> dict[Value, int]:
    told = operation.result
    if not isinstance(told, dict) or any(type(each) is not int for each in told.values()):
        raise malformed(operation, "a read of all accounts")
    return dict(told)


def _wrong(
    operation: Operation, balances: Mapping[Value, int], total: Value, options: Mapping[str, Value]
) -> Iterator[Finding]:
    seen = sum(balances.values())
    if seen != total:
        told = f"{operation.index} saw {seen} in all, of {total}: {dict(balances)}"
        yield Finding.of("wrong-total", "bank", told, operation)
    for account, balance in balances.items():
        if balance < 0 and not options.get("negative-balances?"):
            told = f"{operation.index} saw {balance} in account {account}"
            yield Finding.of("negative-balance", "bank", told, operation)
    known = options.get("accounts")
    names = {str(each) for each in known or balances}
    for account in (each for each in balances if str(each) not in names):
        told = f"{operation.index} saw account {account}, which is none"
        yield Finding.of("unknown-account", "bank", told, operation)
