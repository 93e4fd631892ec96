"""Rules on the simulator's network: keep messages that match, and let them go on later, or never.

What no rule takes goes on by itself; the first rule that takes a message has it. Scripts name
messages by sender, receiver and type of the body, random faults by connection: `matches` is
whatever it takes. Rules as real processes have them (`jepsen_like.faults.message_rules.FrameRule`)
work here too.
"""

from collections.abc import Callable
from random import Random

from jepsen_like.faults.message_rules import Action, Armed, Frame, FrameRule, Rules, Trigger
from jepsen_like.sim.world.network import Message, Network
from wire.api_table import api_of

__all__ = ["Interception", "Matches", "Rule"]

Matches = Callable[[Message], bool]
Rule = Armed[Message]
_REORDER_MS = 20  # long enough for the next message of a link, short against every time-out


class Interception:
    def __init__(
        self, network: Network, deliver: Callable[[Message], None], random: Random | None = None
    ) -> None:
        """`random` is for rules that strike with a probability."""
        self._network = network
        self._deliver = deliver
        self._rules: Rules[Message] = Rules(random or Random(0))

    def hold(self, matches: Matches, *, times: int | None = None) -> Rule:
        """Keep what matches: so many messages, or all of them."""
        return self.add(Armed(matches, trigger=Trigger(count=times)))

    def add(self, rule: Rule) -> Rule:
        self._network.takes = self._takes
        return self._rules.arm(rule)

    def arm(self, rule: FrameRule) -> Rule:
        def matches(message: Message) -> bool:
            frame = _frame(message)
            return frame is not None and rule.matches(frame)

        return self.add(Armed(matches, action=rule.action, trigger=rule.trigger))

    def release_all(self) -> None:
        self._rules.release_all()

    def _takes(self, message: Message) -> bool:
        rule = self._rules.taking(message)
        if rule is None:
            return False
        match rule.action:
            case Action.HOLD:
                rule.kept.append(lambda: self._deliver(message))
            case Action.DELAY:
                self._network.schedule(message, rule.delay_ms * 1000)
            case Action.REORDER:
                self._network.schedule(message, _REORDER_MS * 1000)
            case Action.DUPLICATE:
                self._network.schedule(message, 0)
                self._network.schedule(message, _REORDER_MS * 1000)
        return True


def _frame(message: Message) -> Frame | None:
    """None for what has no form on the wire: a refused connection."""
    body = type(message.body)
    if not body.__module__.startswith("wire.messages."):
        return None
    return Frame(
        source=message.source,
        target=message.target,
        api_key=api_of(body).key,
        is_request=message.is_request,
    )
