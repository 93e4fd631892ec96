"""Processes, their links and the messages between them, as scenarios act on them: `Machines`.

Messages are held by the proxies that stand between nodes. What only the simulator can do to a node
raises Misused.
"""

from collections.abc import Callable, Iterable

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.faults.message_rules import Action, FrameRule, Trigger, api_key_of
from jepsen_like.real.impairments import Cut, Imposed
from jepsen_like.real.museum.rig import Rig, reaches
from jepsen_like.scenarios.language.forms import Misused, Names
from jepsen_like.scenarios.stage.held_messages import HeldMessages, Traffic, fetches_of
from wire.api_table import CONTROL_RPCS

__all__ = ["ProcessMachines"]

_CONTROL_KEYS = {api.name: api.key for api in CONTROL_RPCS}


class ProcessMachines:
    """`pace`: how much longer than in the simulator everything takes."""

    def __init__(
        self,
        rig: Rig,
        names: Names,
        *,
        note: Callable[[str], None],
        looked: Callable[[], None],
        pace: int = 1,
    ) -> None:
        self._rig = rig
        self._names = names
        self._note = note
        self._looked = looked
        self._pace = pace
        self.messages = HeldMessages(
            "a proxy", names, note=note, release=rig.mesh.release, lose=rig.mesh.drop
        )
        self._cuts: list[Imposed] = []

    @property
    def nodes(self) -> list[int]:
        return [node.id for node in self._rig.cluster.layout.nodes]

    @property
    def up(self) -> list[int]:
        return [node for node in self.nodes if self._rig.is_up(node)]

    # --- time ---------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        self.reach(lambda: False, ms * self._pace)

    def reach(self, condition: Callable[[], bool], within_ms: int) -> bool:
        def holds() -> bool:
            self._looked()
            return condition()

        return reaches(holds, within_ms)

    # --- processes ----------------------------------------------------------------------

    def crash(self, node: int, *, power_loss: bool = False) -> None:
        if power_loss:
            raise Misused("a process cannot lose power")
        self._note(f"{self._names.of(node)} is killed")
        self._rig.cluster.kill(node)

    def restart(self, node: int) -> None:
        self._note(f"{self._names.of(node)} is started")
        self._rig.cluster.start(node)

    def forget(self, node: int) -> None:
        """Nothing is remembered of a process that has ended."""

    def pause(self, node: int) -> None:
        raise Misused("a process is not paused here")

    def resume(self, node: int) -> None:
        raise Misused("a process is not paused here")

    def sync_in(self, node: int, ms: int) -> None:
        raise Misused("the disk of a process cannot be slowed down")

    # --- links --------------------------------------------------------------------------

    def cut(self, side: Iterable[int], others: Iterable[int]) -> None:
        one, other = sorted(side), sorted(others)
        self.messages.note_cut(one, other)
        self._cuts.append(self._rig.mesh.impose(Cut(), both_ways(one, other)))

    def heal(self) -> None:
        """What was on its way over a link that was cut is lost."""
        if self._cuts:
            self._note("the links are whole again")
        for imposed in self._cuts:
            self._rig.mesh.reset(imposed.directions)
            self._rig.mesh.lift(imposed)
        self._cuts.clear()

    def heal_all(self) -> None:
        """Also of what is held, which is let go."""
        self._cuts.clear()
        self._rig.mesh.heal()

    # --- messages -----------------------------------------------------------------------

    def hold_api(self, held: Traffic, name: str = "") -> None:
        self.messages.note_api(held)
        api, is_request, times = held.api, held.is_request, held.times
        key = _CONTROL_KEYS[api] if api in _CONTROL_KEYS else api_key_of(api)
        froms = [None] if set(self._names.nodes()) <= set(held.sources) else held.sources
        for source in froms:
            for target in held.targets:
                self._hold(key, source, target, is_request=is_request, name=name, times=times)

    def hold_fetches(self, follower: int, leader: int) -> None:
        """Those that are asked, and what is answered."""
        self.messages.note_fetches(follower, leader)
        name, key = fetches_of(follower, leader), api_key_of("fetch")
        self._hold(key, follower, leader, is_request=True, name=name)
        self._hold(key, leader, follower, is_request=False, name=name)

    def _hold(
        self,
        key: int,
        source: int | None,
        target: int,
        *,
        is_request: bool,
        name: str,
        times: int | None = None,
    ) -> None:
        rule = FrameRule(
            action=Action.HOLD,
            source=source,
            target=target,
            api_key=key,
            is_request=is_request,
            trigger=Trigger(count=times),
        )
        self.messages.add(name, self._rig.mesh.arm(rule))

    def has_held_for(self, name: str, nodes: Iterable[int]) -> bool:
        raise Misused("a proxy does not say to whom it holds messages")
