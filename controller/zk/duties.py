"""What an active controller has to do, whatever the design: the seam under `controller.py`."""

from typing import Protocol

from controller.zk.notify import Request as Command
from quorum.core.effects import Request
from quorum.zookeeper.zk_procedures import Procedure

__all__ = ["Duties"]


class Duties(Protocol):
    def take_over(self) -> Procedure[None]:
        """The first thing of a new controller: read what there is, and tell the brokers."""
        ...

    def watch_fired(self, path: str) -> None: ...

    def controlled_shutdown(self, request: Request) -> Procedure[None]:
        """A broker wants to leave: answered when its leaderships have moved, or cannot."""
        ...

    def alter_isr(self, request: Request) -> None:
        """A leader asks for ISR changes: answered at once."""
        ...

    def obeyed(self, broker_id: int, command: Command, answer: object) -> None:
        """A broker has answered a command; None: it never will."""
        ...

    def tick(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None: ...
