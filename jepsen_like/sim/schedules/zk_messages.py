"""Messages between simulated brokers that a schedule holds, lets go and loses, and says so."""

from collections.abc import Callable

from jepsen_like.sim.interception import Interception, Matches, Rule
from jepsen_like.sim.network import Message
from wire.messages.fetching import FetchRequest, FetchResponse

__all__ = ["StagedMessages"]


class StagedMessages:
    """`note` and `name` are the stage's."""

    def __init__(
        self,
        messages: Interception,
        note: Callable[[str], None],
        name: Callable[[int], str],
    ) -> None:
        self._messages = messages
        self._note = note
        self._name = name

    def hold(
        self, body: type, *, target: int, source: int | None = None, times: int | None = None
    ) -> Rule:
        is_request = body.__name__.endswith("Request")
        count = "every" if times is None else "one" if times == 1 else f"{times} times"
        ends = "" if source is None else f"from {self._name(source)} "

        def matches(message: Message) -> bool:
            is_it = isinstance(message.body, body) and message.is_request == is_request
            return is_it and message.target == target and source in (None, message.source)

        what = f"{count} {body.__name__} {ends}to {self._name(target)}"
        return self._hold(matches, what, times=times)

    def stop_fetching(self, follower: int, leader: int) -> Rule:
        def matches(message: Message) -> bool:
            ends = (message.source, message.target)
            return (isinstance(message.body, FetchRequest) and ends == (follower, leader)) or (
                isinstance(message.body, FetchResponse) and ends == (leader, follower)
            )

        what = f"every fetch of {self._name(follower)} from {self._name(leader)}"
        return self._hold(matches, what)

    def _hold(self, matches: Matches, what: str, *, times: int | None = None) -> Rule:
        self._note(f"the network holds {what}")
        return self._messages.hold(matches, times=times)

    def let_go(self, *rules: Rule) -> None:
        count = sum(len(rule.kept) for rule in rules)
        self._note(f"the network lets go of what it held ({count} messages)")
        for rule in rules:
            self._messages.release(rule)

    def drop(self, *rules: Rule) -> None:
        for rule in rules:
            self._note(f"the network loses what it held ({len(rule.kept)} messages)")
            self._messages.drop(rule)

    def release_all(self) -> None:
        self._messages.release_all()
