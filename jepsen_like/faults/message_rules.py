"""Rules over single messages between nodes: which of them are held, lost, doubled or late.

A response goes from the node that was asked to the one that asked, so that `source` is always the
sender. The first rule in force that takes a message has it; what no rule takes goes on by itself.

A fault of messages is made of rules (`rules_of`), by these parameters:

    apis        names of APIs, each with a rule of its own; the backend has a default
    direction   "request": what the targets ask; "response": what they are answered

A held message goes on when the fault heals. Clients are left alone: a network can double what a
client sent only if the client sends it again, and then that client knows.

Pure. What a rule does to the bytes is left to what carries them: the proxy of real processes
(`jepsen_like.real.proxy`) and the simulator's network (`jepsen_like.sim.world.interception`).

Source: the triggers that Kafka's developers proposed for fault injection; reliability facts, 4.3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Generic, TypeVar

from jepsen_like.faults.fault import Fault
from jepsen_like.faults.participants import CLIENTS
from wire.api_table import APIS, api_by_key

__all__ = [
    "ALWAYS",
    "MESSAGE_KINDS",
    "Action",
    "Armed",
    "Frame",
    "FrameRule",
    "Rules",
    "Trigger",
    "api_key_of",
    "rules_of",
]

Message = TypeVar("Message")
GoOn = Callable[[], None]  # lets a message that was kept go on


class Action(StrEnum):
    HOLD = "hold"  # until the rule is released
    DROP = "drop"
    DUPLICATE = "duplicate"  # and the second one over a new connection, as a retry would come
    REORDER = "reorder"  # behind the next message of the same link
    DELAY = "delay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Which of the messages that match are taken: each with `probability`, up to `count` of them
    (None: no bound).
    """

    count: int | None = None
    probability: float = 1.0

    def __str__(self) -> str:
        if self.probability < 1.0:
            return f"with_probability({self.probability:g})"
        return "always()" if self.count is None else f"times({self.count})"


ALWAYS = Trigger()


def api_key_of(name: str) -> int:
    """The key of an API by its name, as the table has it or as Kafka does. Raises ValueError."""
    wanted = name.replace("_", "").lower()
    for api in APIS:
        if api.name.replace("_", "") == wanted:
            return api.key
    raise ValueError(f"no API is called {name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A message as rules see it. `source` sends it, `target` gets it; CLIENTS is no node."""

    source: int
    target: int
    api_key: int
    is_request: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRule:
    """An action on the messages that match. None stands for any node."""

    action: Action
    source: int | None = None
    target: int | None = None
    api_key: int
    is_request: bool
    trigger: Trigger = ALWAYS

    def matches(self, frame: Frame) -> bool:
        return (
            self.source in (None, frame.source)
            and self.target in (None, frame.target)
            and (self.api_key, self.is_request) == (frame.api_key, frame.is_request)
        )

    def __str__(self) -> str:
        """`hold the request of alter_partition, 1 -> 101, times(2)`."""
        which = "request" if self.is_request else "response"
        api = api_by_key(self.api_key)
        name = api.name if api else f"API {self.api_key}"
        ends = " -> ".join(_name_of(end) for end in (self.source, self.target))
        return f"{self.action} the {which} of {name}, {ends}, {self.trigger}"


def _name_of(node_id: int | None) -> str:
    return "any" if node_id is None else "clients" if node_id == CLIENTS else str(node_id)


class Armed(Generic[Message]):
    """A rule in force, and what it has done: the proof that it bit."""

    def __init__(
        self,
        matches: Callable[[Message], bool],
        *,
        action: Action = Action.HOLD,
        trigger: Trigger = ALWAYS,
        delay_ms: int = 0,
    ) -> None:
        self.action = action
        self.delay_ms = delay_ms
        self.calls = 0  # messages that matched
        self.fired = 0  # and were taken
        self.kept: list[GoOn] = []  # what it holds, in order; filled by whoever carries messages
        self.is_over = False
        self._matches = matches
        self._trigger = trigger

    def takes(self, message: Message, random: Random) -> bool:
        trigger = self._trigger
        is_spent = trigger.count is not None and self.fired >= trigger.count
        if self.is_over or is_spent or not self._matches(message):
            return False
        self.calls += 1
        if trigger.probability < 1.0 and random.random() >= trigger.probability:
            return False
        self.fired += 1
        return True

    def release(self) -> None:
        """Let the messages that it kept go on, in order; it takes no more."""
        self.is_over = True
        kept, self.kept = self.kept, []
        for go_on in kept:
            go_on()

    def drop(self) -> None:
        """Drop the messages that it kept; it takes no more."""
        self.is_over = True
        self.kept.clear()


class Rules(Generic[Message]):
    """All rules in force, in the order in which they came."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._armed: list[Armed[Message]] = []

    def __bool__(self) -> bool:
        return bool(self._armed)

    def arm(self, armed: Armed[Message]) -> Armed[Message]:
        self._armed = [each for each in self._armed if not each.is_over]
        self._armed.append(armed)
        return armed

    def taking(self, message: Message) -> Armed[Message] | None:
        """The rule that takes this message, if any."""
        for armed in self._armed:
            if armed.takes(message, self._random):
                return armed
        return None

    def release_all(self) -> None:
        armed, self._armed = self._armed, []
        for each in armed:
            each.release()


MESSAGE_KINDS: Mapping[str, Action] = {
    "hold-rpc": Action.HOLD,
    "drop-rpc": Action.DROP,
    "duplicate-rpc": Action.DUPLICATE,
    "reorder-rpc": Action.REORDER,
}


def rules_of(
    fault: Fault,
    targets: Sequence[int],
    nodes: Iterable[int],
    *,
    apis: Iterable[str],
    triggers: Mapping[str, Trigger],
) -> list[FrameRule]:
    """`triggers`: of each kind. Raises ValueError for unknown names."""
    is_request = fault.parameters.get("direction", "request") == "request"
    return [
        FrameRule(
            action=MESSAGE_KINDS[fault.kind],
            source=target if is_request else other,
            target=other if is_request else target,
            api_key=api_key_of(name),
            is_request=is_request,
            trigger=triggers[fault.kind],
        )
        for target in targets
        for other in nodes
        if other != target
        for name in apis
    ]
