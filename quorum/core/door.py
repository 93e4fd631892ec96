"""The door of a node: who may ask what is decided before a core hears of it.

A node's member has every request that came by a socket pass it, and every answer; those from inside
the process do not pass. A node may have none.
"""

from typing import Protocol

from quorum.core.effects import HangUp, Reply, Request

__all__ = ["Door"]


class Door(Protocol):
    def admit(self, request: Request, *, is_control: bool) -> Request | Reply | None:
        """What goes on in its place, or its answer; None: it is to be held until it `can_judge`.

        `is_control`: it is for the engine or the controller, not for the broker.
        """
        ...

    @property
    def can_judge(self) -> bool:
        """Can everything be judged now, so that what was held is to be admitted anew?"""
        ...

    @property
    def is_amending(self) -> bool:
        """Is there an answer on its way that has to be amended?"""
        ...

    def amend(self, leaving: Reply | HangUp) -> Reply | HangUp:
        """What leaves in its place."""
        ...
