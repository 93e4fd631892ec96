"""Messages that are held back, by the names that a scenario gives to the rules that hold them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jepsen_like.faults.message_rules import Armed
from jepsen_like.scenarios.language.forms import Names

__all__ = ["HeldMessages", "Traffic", "fetches_of"]

Rule = Armed[Any]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of an API, or the answers to them; all, or so many."""

    api: str
    sources: Sequence[int]
    targets: Sequence[int]
    is_request: bool = True
    times: int | None = None


class HeldMessages:
    """`keeper` is who holds them, for the account: the network, or the proxies."""

    def __init__(
        self,
        keeper: str,
        names: Names,
        *,
        note: Callable[[str], None],
        release: Callable[[Rule], None] = Armed.release,
        lose: Callable[[Rule], None] = Armed.drop,
    ) -> None:
        self._keeper = keeper
        self._names = names
        self._note = note
        self._release = release
        self._lose = lose
        self._rules: dict[str, list[Rule]] = {}  # by name

    def add(self, name: str, rule: Rule) -> None:
        self._rules.setdefault(name, []).append(rule)

    def note_cut(self, one: Sequence[int], other: Sequence[int]) -> None:
        verb = "is" if len(one) == 1 else "are"
        self._note(f"{self._names.listed(one)} {verb} cut off from {self._names.listed(other)}")

    def note_api(self, held: Traffic) -> None:
        amount = "every" if held.times is None else "one"
        what = f"{amount} {held.api} {'request' if held.is_request else 'answer'}"
        ends = f"from {self._names.listed(held.sources)} to {self._names.listed(held.targets)}"
        self._note(f"{self._keeper} holds {what} {ends}")

    def note_fetches(self, follower: int, leader: int) -> None:
        ends = f"of {self._names.of(follower)} from {self._names.of(leader)}"
        self._note(f"{self._keeper} holds every fetch {ends}")

    def has(self, name: str) -> bool:
        """Something is held under this name."""
        return any(rule.kept for rule in self._rules.get(name, ()))

    def has_none(self, name: str) -> bool:
        """Nothing is held under this name."""
        return not self.has(name)

    @property
    def count(self) -> int:
        return sum(len(rule.kept) for rules in self._rules.values() for rule in rules)

    def release(self, name: str | None = None) -> None:
        """What is held under this name arrives now, and no more is held.

        None: under all names.
        """
        self._end("lets go of", name, self._release)

    def lose(self, name: str | None = None) -> None:
        """What is held under this name never arrives, and no more is held.

        None: under all names.
        """
        self._end("loses", name, self._lose)

    def _end(self, verb: str, name: str | None, end: Callable[[Rule], None]) -> None:
        names = [*self._rules] if name is None else [name]
        rules = [rule for each in names for rule in self._rules.pop(each, [])]
        if rules:
            count = sum(len(rule.kept) for rule in rules)
            self._note(f"{self._keeper} {verb} what it held ({count} messages)")
        for rule in rules:
            end(rule)


def fetches_of(follower: int, leader: int) -> str:
    """The name of the rules that hold what a follower fetches."""
    return f"fetches of {follower} from {leader}"
