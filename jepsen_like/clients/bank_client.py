"""The bank's client: each account is a partition, a transfer a transaction of two records.

A record holds which transfer it is of, and by how much it changes its account. A read goes on from
where the last one stopped. It ends when it has all that is committed in every account, and both
halves of each transfer; at the very end it tells the balances even without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from jepsen_like.clients.log_client import LogClient
from jepsen_like.clients.steps import Clock, Steps
from jepsen_like.histories.history import Kind, Value
from jepsen_like.workloads.workload import FROM_ZERO, UNTIL_CAUGHT_UP, Done, Wish

__all__ = ["BankClient"]

_AMOUNTS = 1 << 8  # a change lies between minus and plus half of it
_POLL = Wish(f="poll", extra=UNTIL_CAUGHT_UP)
_LAST_READ = 6  # as long as others: until the time of every open transaction is up


class BankClient:
    def __init__(
        self, brokers: Sequence[int], *, clock: Clock, random: Random, timeout_ms: int
    ) -> None:
        """`timeout_ms`: of an operation."""
        self._clock = clock
        self._random = random
        self._timeout_ms = timeout_ms
        self._log = LogClient(
            brokers,
            clock=clock,
            random=random,
            timeout_ms=timeout_ms,
            is_idempotent=True,
            is_read_committed=True,
            name="bank",
        )
        self._balances: dict[str, int] = {}
        self._halves: set[int] = set()  # transfers of which one half was read

    def perform(self, wish: Wish) -> Steps[Done]:
        match wish:
            case Wish(f="transfer", value={"from": giver, "to": taker, "amount": amount}):
                done = yield from self._transfer(wish, {giver: -amount, taker: amount})
            case Wish(f="read", value=keys):
                done = yield from self._read(keys, is_last="until" in wish.extra)
            case _:
                done = Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")
        return done

    def _transfer(self, wish: Wish, changes: Mapping[str, int]) -> Steps[Done]:
        first = self._random.getrandbits(48) * _AMOUNTS + _AMOUNTS // 2
        sends = [["send", account, first + change] for account, change in changes.items()]
        # One that is to be aborted is left in halves: whoever read it would miss the other half.
        halves = sends[:1] if wish.extra.get("end") == "abort" else sends
        done = yield from self._log.perform(Wish(f="txn", value=halves, extra=wish.extra))
        return replace(done, value=wish.value)

    def _read(self, keys: Sequence[str], *, is_last: bool) -> Steps[Done]:
        if not self._balances:
            self._balances = dict.fromkeys(keys, 0)
            yield from self._log.perform(Wish(f="assign", value=keys, extra=FROM_ZERO))
        until_ms = self._clock() + self._timeout_ms * (_LAST_READ if is_last else 1)
        while True:
            done = yield from self._log.perform(_POLL)
            if done.kind is Kind.OK:
                self._add(done.value[0][1])
            is_caught_up = bool(done.extra.get("caught_up"))
            is_late = self._clock() >= until_ms
            if is_caught_up and (not self._halves or (is_late and is_last)):
                extra: Mapping[str, Value] = {"caught_up": True} if is_last else {}
                return Done(kind=Kind.OK, value=dict(self._balances), extra=extra)
            if is_late:
                return Done(kind=Kind.FAIL, error=f"{len(self._halves)} transfers in halves")
            yield self._log.leaders.pause()

    def _add(self, found: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        for key, records in found.items():
            for _, value in records:
                number, change = divmod(value, _AMOUNTS)
                self._balances[key] += change - _AMOUNTS // 2
                self._halves ^= {number}
