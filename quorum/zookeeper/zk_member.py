"""ZkMember: one process in ZooKeeper mode, a session and the applications on it, as one core.

The sibling of `quorum.node.member`: there is no log to order records, but a session that the
applications share. Decides who gets which event; decides nothing about what is in ZooKeeper.

    - every change of the session, and every watch that fires, is told to each application, in the
      order in which they are given: who must stop acting hears it before who would ask him;
    - a request goes to the first that serves it, one that another broker has forwarded to the
      first of all.

A `Stop` of an application ends the process; its session ends with it, and so do its znodes.
"""

from collections.abc import Mapping
from typing import Protocol

from quorum.core.door import Door
from quorum.core.effects import Answer, Effect, Event, HangUp, Reply, Request, Stop, earliest
from quorum.zookeeper.zk_effects import ZkEvent
from wire.zk.session import Session, SessionChanged

__all__ = ["ZkApplication", "ZkMember"]


class ZkApplication(Protocol):
    def receive(self, event: Event, now_ms: int) -> None: ...

    def tick(self, now_ms: int) -> None:
        """The deadline has come."""
        ...

    def deadline_ms(self) -> int | None: ...

    def take_effects(self) -> list[Effect]: ...

    def serves(self, body: object) -> bool:
        """Is this request for this application, now?"""
        ...


class ZkMember:
    """`applications` by the owner name of their tokens, the controller before the broker."""

    def __init__(
        self,
        session: Session,
        applications: Mapping[str, ZkApplication],
        door: Door | None = None,
    ) -> None:
        self.session = session
        self.applications = dict(applications)
        self.door = door  # which all requests pass but those from inside the process
        self._refusals: list[Effect] = []  # of the door
        self._due_ms: int | None = None  # the first deadline of them, after a settlement
        self._has_stopped = False

    # --- Core ---------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        if self._has_stopped:
            return
        match event:
            case Request():
                self._serve(event, now_ms)
            case ZkEvent():
                self._tell(event, now_ms)
            case Answer():
                self.applications[event.token.owner].receive(event, now_ms)
            case _:
                raise AssertionError(f"there is no quorum: {event}")

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None:
        if self._has_stopped:
            return
        first_ms, has_ticked = None, False
        for application in self.applications.values():
            due_ms = application.deadline_ms()
            if due_ms is not None and due_ms <= now_ms:
                application.tick(now_ms)
                has_ticked = True
            elif due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        self._due_ms = self._first_deadline_ms() if has_ticked else first_ms

    def deadline_ms(self) -> int | None:
        """By the last settlement: events move deadlines, and a turn ends with one."""
        return None if self._has_stopped else self._due_ms

    def _first_deadline_ms(self) -> int | None:
        return earliest(*[core.deadline_ms() for core in self.applications.values()])

    def take_effects(self) -> list[Effect]:
        effects, self._refusals = self._refusals, []
        for application in self.applications.values():
            effects += application.take_effects()
        if self.door is not None and self.door.is_amending:
            effects = [
                self.door.amend(each) if isinstance(each, Reply | HangUp) else each
                for each in effects
            ]
        for effect in effects:
            if isinstance(effect, Stop):
                self._has_stopped = True
        return effects

    # --- routing ------------------------------------------------------------------------------

    def _serve(self, request: Request, now_ms: int) -> None:
        *beside, broker = self.applications.values()
        for application in beside:
            if request.forwarded or application.serves(request.body):
                self._admit(application, request, now_ms, is_control=True)
                return
        # A Fetch of the metadata log, which there is none of, is for the broker, too: it says so.
        self._admit(broker, request, now_ms, is_control=False)

    def _admit(
        self, application: ZkApplication, request: Request, now_ms: int, *, is_control: bool
    ) -> None:
        """ACLs have no place in ZooKeeper: what the door goes by is there from the start."""
        if self.door is not None and request.listener:
            admitted = self.door.admit(request, is_control=is_control)
            assert admitted is not None, "nothing is waited for"
            if isinstance(admitted, Reply):
                self._refusals.append(admitted)
                return
            request = admitted
        application.receive(request, now_ms)

    def _tell(self, event: ZkEvent, now_ms: int) -> None:
        if isinstance(event.event, SessionChanged):
            self.session.become(event.event, now_ms)
        for application in self.applications.values():
            application.receive(event, now_ms)
