"""A core that asks a simulated cluster for one operation after the other."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from jepsen_like.sim.assemblies.quorum.asking import Answered, Asking
from quorum.core.effects import Effect, Event
from wire.errors import ErrorCode

__all__ = ["UNCLEAR", "Operator"]

# Asked directly, a controller that answers one of these may have done it all the same: those that
# wait when it loses its leadership are told so, and a later controller may commit them.
UNCLEAR = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


@dataclass(slots=True, kw_only=True)
class Operator:
    """One operation is under way at a time; subclasses say which in `_operate`."""

    random: Random
    timeout_ms: int
    interval_ms: int  # between two operations, on average
    works: bool = True
    asking: Asking = field(default_factory=Asking)
    _due_ms: int | None = None

    # --- Core ---------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        self.asking.receive(event, now_ms)

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        if self._due_ms is None:
            self._pause(now_ms)
        elif now_ms >= self._due_ms and self.asking.is_quiet:
            self._due_ms = now_ms + self.timeout_ms
            if self.works:
                self._operate()

    def deadline_ms(self) -> int | None:
        return 0 if self._due_ms is None else self._due_ms if self.asking.is_quiet else None

    def take_effects(self) -> list[Effect]:
        return self.asking.take()

    @property
    def is_quiet(self) -> bool:
        return self.asking.is_quiet

    def _operate(self) -> None:
        raise NotImplementedError

    def _pause(self, now_ms: int) -> None:
        self._due_ms = now_ms + self.random.randint(1, 2 * self.interval_ms)

    def _ask(self, node: int, body: object, concludes: Callable[[object], None]) -> None:
        """`concludes` is given the answer; None if there was none."""

        def answered(answer: object, now_ms: int) -> None:
            self._pause(now_ms)
            concludes(answer)

        told: Answered = answered
        self.asking.ask(node, body, self.timeout_ms, told)
