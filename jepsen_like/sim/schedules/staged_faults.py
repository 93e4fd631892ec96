"""What a schedule does to simulated nodes and to messages between them, and says so."""

from collections.abc import Callable

from jepsen_like.sim.host import Host
from jepsen_like.sim.interception import Interception, Rule
from jepsen_like.sim.network import Message
from jepsen_like.sim.world import World
from wire.messages.fetching import FetchRequest, FetchResponse

__all__ = ["StagedFaults"]


class StagedFaults:
    """`note` and `name` are the stage's."""

    def __init__(
        self, world: World, *, note: Callable[[str], None], name: Callable[[int], str]
    ) -> None:
        self.messages = Interception(world.network, world.deliver)
        self._hosts = world.nodes
        self._note = note
        self._name = name

    # --- processes ----------------------------------------------------------------------

    def kill(self, node: int) -> None:
        self._told(node, "is killed").crash(power_loss=False)

    def start(self, node: int) -> None:
        self._told(node, "is started").start()

    def pause(self, node: int) -> None:
        self._told(node, "is paused").pause()

    def resume(self, node: int) -> None:
        self._told(node, "goes on").resume()

    def _told(self, node: int, what: str) -> Host:
        self._note(f"{self._name(node)} {what}")
        return self._hosts[node]

    # --- messages -----------------------------------------------------------------------

    def hold(
        self, body: type, *, target: int, source: int | None = None, times: int | None = None
    ) -> Rule:
        count = "every" if times is None else "one" if times == 1 else f"{times} times"
        ends = "" if source is None else f"from {self._name(source)} "
        self._note(f"the network holds {count} {body.__name__} {ends}to {self._name(target)}")
        return self._hold(body, source, target, times)

    def stop_fetching(self, follower: int, leader: int) -> tuple[Rule, Rule]:
        """Nothing of the leader's log gets to the follower, nor what is parked for it there."""
        self._note(
            f"the network holds every fetch of {self._name(follower)} from {self._name(leader)}"
        )
        asking = self._hold(FetchRequest, follower, leader)
        return asking, self._hold(FetchResponse, leader, follower)

    def _hold(self, body: type, source: int | None, target: int, times: int | None = None) -> Rule:
        is_request = body.__name__.endswith("Request")

        def matches(message: Message) -> bool:
            is_it = isinstance(message.body, body) and message.is_request == is_request
            return is_it and message.target == target and source in (None, message.source)

        return self.messages.hold(matches, times=times)

    def let_go(self, *rules: Rule) -> None:
        count = sum(len(rule.kept) for rule in rules)
        self._note(f"the network lets go of what it held ({count} messages)")
        for rule in rules:
            rule.release()

    def drop(self, *rules: Rule) -> None:
        for rule in rules:
            self._note(f"the network loses what it held ({len(rule.kept)} messages)")
            rule.drop()
