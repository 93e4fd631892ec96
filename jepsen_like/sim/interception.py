"""Rules over messages: keep those that match, and let them go on later, or never.

What no rule keeps goes on by itself; the first rule that matches has it. Scripts name messages by
sender, receiver and type of the body, random faults by connection: `matches` is whatever it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from jepsen_like.sim.network import Message, Network

__all__ = ["Interception", "Matches", "Rule"]

Matches = Callable[[Message], bool]


@dataclass(slots=True)
class Rule:
    """Keeps messages until it is released; those it has kept are in `kept`."""

    matches: Matches
    times: int | None  # how many it keeps; None: all
    kept: list[Message] = field(default_factory=list)
    is_over: bool = False

    def takes(self, message: Message) -> bool:
        is_spent = self.times is not None and len(self.kept) >= self.times
        if self.is_over or is_spent or not self.matches(message):
            return False
        self.kept.append(message)
        return True


class Interception:
    def __init__(self, network: Network, deliver: Callable[[Message], None]) -> None:
        self._deliver = deliver
        self._rules: list[Rule] = []
        network.takes = self._takes

    def hold(self, matches: Matches, *, times: int | None = None) -> Rule:
        self._rules = [rule for rule in self._rules if not rule.is_over]
        rule = Rule(matches, times)
        self._rules.append(rule)
        return rule

    def release(self, rule: Rule) -> None:
        """What it has kept arrives now, in order; it keeps nothing more."""
        rule.is_over = True
        for message in rule.kept:
            self._deliver(message)
        rule.kept.clear()

    def drop(self, rule: Rule) -> None:
        """What it has kept never arrives; it keeps nothing more."""
        rule.is_over = True
        rule.kept.clear()

    def release_all(self) -> None:
        for rule in self._rules:
            self.release(rule)

    def _takes(self, message: Message) -> bool:
        return any(rule.takes(message) for rule in self._rules)
