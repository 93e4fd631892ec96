"""Rules over messages, for scripts: keep those that match, and let them go on later, or never.

A rule names the message by sender, receiver and type of its body. What no rule keeps goes on by
itself; the first rule that matches has it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from jepsen_like.sim.network import Message, Network

__all__ = ["Interception", "Rule"]


@dataclass(slots=True)
class Rule:
    """Keeps messages until it is released; those it has kept are in `kept`."""

    source: int | None  # None: any
    target: int | None
    body: type | None
    times: int | None  # how many it keeps; None: all
    kept: list[Message] = field(default_factory=list)
    is_over: bool = False

    def takes(self, message: Message) -> bool:
        is_spent = self.times is not None and len(self.kept) >= self.times
        if self.is_over or is_spent or not self._matches(message):
            return False
        self.kept.append(message)
        return True

    def _matches(self, message: Message) -> bool:
        return (
            self.source in (None, message.source)
            and self.target in (None, message.target)
            and (self.body is None or isinstance(message.body, self.body))
        )


class Interception:
    def __init__(self, network: Network, deliver: Callable[[Message], None]) -> None:
        self._deliver = deliver
        self._rules: list[Rule] = []
        network.takes = self._takes

    def hold(
        self,
        body: type | None = None,
        *,
        source: int | None = None,
        target: int | None = None,
        times: int | None = None,
    ) -> Rule:
        rule = Rule(source, target, body, times)
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
