"""Member: an engine and the applications on it as one core, a process's share in the quorum.

Decides which of them gets an event, and tells the applications when they lead. `delivery` brings
them what is committed. Decides nothing about the log or what is in it.

    - `lead` comes after everything before the epoch has been delivered (its LeaderChange too, so
      that the epoch is known to be able to commit);
    - `resign` comes as soon as leadership is lost, before anything that another leader committed.

When an application stops in good order, the engine still has to leave the quorum: the process
ends with the engine's `Stop`. Any other `Stop` ends it at once.

Source: KIP-595, the state machine's side; Kafka's RaftClient.Listener.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from quorum.core.application import Application, Engine
from quorum.core.door import Door
from quorum.core.early_requests import EarlyRequests
from quorum.core.effects import (
    Answer,
    Effect,
    EpochStart,
    Event,
    HangUp,
    Reply,
    Request,
    Stop,
    StorageFailed,
)
from quorum.core.outbox import EffectQueue
from quorum.node.delivery import OWNER, Delivery
from quorum.raft.config import SnapshotSettings

__all__ = ["Member", "TakeOver"]

_CHANGES_MAX = 8  # of leadership within one event: more is a loop


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """A take-over: from the election of this node until its applications lead."""

    epoch: int
    took_ms: int
    replayed_records: int  # at least 1: the LeaderChange of the epoch


class _Receiver(Protocol):
    def receive(self, event: Event, now_ms: int) -> None: ...


class Member:
    """`applications` by the owner name of their tokens, the controller before the broker.

    Requests on `control_listeners`, those from inside the process (whose listener is empty), and
    those that a broker forwarded are meant for the engine or the controller; others for the broker.
    All but those from inside pass the `door`.
    """

    def __init__(
        self,
        engine: Engine,
        applications: Mapping[str, Application],
        control_listeners: Iterable[str] = ("CONTROLLER",),
        *,
        snapshots: SnapshotSettings | None = None,
        door: Door | None = None,
    ) -> None:
        self.engine = engine
        self._door = door
        self.applications = dict(applications)
        self._listed = tuple(self.applications.values())
        self._control_listeners = ("", *control_listeners)
        self._outbox = EffectQueue(OWNER)  # what all of them ask for, in order
        # The outbox's own method: another around it would be a call more for every turn.
        self.take_effects: Callable[[], list[Effect]] = self._outbox.take
        self._early = EarlyRequests(self._outbox.emit)  # those that the door cannot judge yet
        self._delivery = Delivery(engine, self._listed, snapshots or SnapshotSettings())
        self.applied_times = self._delivery.applied_times
        self._servers: list[Engine | Application] = [engine, *self._listed]
        self._led_epoch: int | None = None  # the epoch that the applications know that they lead
        # The engine's `leading_since` when they last learned all there was to know of it.
        self._known_since: EpochStart | None = None
        self._elected: tuple[int, int, int] | None = None  # epoch, time, offset delivered then
        self.take_over: TakeOver | None = None  # the last one
        self._owners: dict[str, _Receiver] = {**self.applications, OWNER: self._delivery}
        self._is_unsettled = False  # an event came in since the last settlement
        self._applications_due_ms: int | None = None  # their first deadline
        self._is_due_stale = True  # a deadline may have moved
        self._has_stopped = False
        for each in self._servers:
            self._outbox.effects += each.take_effects()

    # --- Core ---------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        if self._has_stopped:
            return
        self._is_unsettled = True
        receiver: _Receiver = self.engine  # for an event of the engine's own, and what befalls it
        if isinstance(event, Request):
            self._admit(event, now_ms)
            return
        if isinstance(event, StorageFailed) and event.log == self.engine.log_name:
            pass
        elif isinstance(event, Answer):
            receiver = self._owners.get(event.token.owner, receiver)
        self._give(receiver, event, now_ms)

    def _give(self, receiver: _Receiver, event: Event, now_ms: int) -> None:
        if receiver is not self.engine:
            self._is_due_stale = True
        receiver.receive(event, now_ms)

    def ends_batch(self, event: Event) -> bool:
        """Events that may change role, epoch, voters or image; any event once leadership is lost,
        so that no application acts on it.
        """
        if not self._is_unsettled:
            return False
        is_for_delivery = isinstance(event, Answer) and event.token.owner == OWNER
        return is_for_delivery or self.engine.ends_batch(event) or self._has_lost_leadership()

    def settle(self, now_ms: int) -> None:
        """Say that leadership is lost, deliver records, say that it is won, and do what is due.

        First the applications append what they have decided: the engine may add records of its own.
        """
        if self._has_stopped:
            return
        self._is_unsettled = False
        told = self._gather()
        self.engine.settle(now_ms)
        if self.engine.leading_since is not self._known_since:
            self._tell_changes(now_ms)
        if self._delivery.poll(now_ms):
            self._is_due_stale = True
            self._tell_changes(now_ms)
        due_ms = self._applications_due_ms
        if self._is_due_stale or (due_ms is not None and due_ms <= now_ms):
            self._tick(now_ms)
            told += self._gather()
        if self._early:
            told += self._judge_early(now_ms)
        self._collect(told, now_ms)

    def _judge_early(self, now_ms: int) -> list[Effect]:
        assert self._door is not None, "whoever holds them has a door"
        if not self._door.can_judge:
            self._early.tick(now_ms)
            return []
        for request in self._early.release():
            self._admit(request, now_ms)
        return self._gather()

    def _tick(self, now_ms: int) -> None:
        """Let the applications do what is due, and learn what is next."""
        first_ms = None
        for application in self._listed:
            due_ms = application.deadline_ms()
            if due_ms is not None and due_ms <= now_ms:
                application.tick(now_ms)
                self._tell_changes(now_ms)  # it may have given up leading
                due_ms = application.deadline_ms()
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        self._applications_due_ms = first_ms
        self._is_due_stale = False

    def deadline_ms(self) -> int | None:
        if self._has_stopped:
            return None
        due_ms = self._applications_due_ms
        early_ms = self._early.deadline_ms() if self._early else None
        for at_ms in (self._delivery.due_ms, self.engine.deadline_ms(), early_ms):
            if at_ms is not None and (due_ms is None or at_ms < due_ms):
                due_ms = at_ms
        return due_ms

    def shut_down(self, now_ms: int) -> None:
        """Leave the quorum and stop. A broker's controlled shutdown comes before this.

        So does what came in before: a leader resigns, which ends the batch.
        """
        if self._is_unsettled:
            self.settle(now_ms)
        self.engine.shut_down(now_ms)
        self._tell_changes(now_ms)
        self._collect(self._gather(), now_ms)

    # --- routing ------------------------------------------------------------------------------

    def _admit(self, request: Request, now_ms: int) -> None:
        is_control = request.forwarded or request.listener in self._control_listeners
        if self._door is not None and request.listener:
            admitted = self._door.admit(request, is_control=is_control)
            if not isinstance(admitted, Request):
                if admitted is None:
                    self._early.hold(request, now_ms)
                else:
                    self._outbox.emit(admitted)
                return
            request = admitted
        self._give(self._server_of(request, is_control=is_control), request, now_ms)

    def _server_of(self, request: Request, *, is_control: bool) -> _Receiver:
        """Two applications of a combined node may serve an API: the listener decides."""
        for server in self._servers if is_control else reversed(self._servers):
            if server.serves(request.body):
                return server
        return self.engine  # a Fetch of anything but the metadata log: it has the answer

    # --- what the applications are told -------------------------------------------------------

    def _has_lost_leadership(self) -> bool:
        """Do the applications lead an epoch that is over?"""
        since = self.engine.leading_since
        return self._led_epoch is not None and (since is None or since.epoch != self._led_epoch)

    def _tell_changes(self, now_ms: int) -> None:
        for _ in range(_CHANGES_MAX):
            if not self._tell_leadership(now_ms):
                leads = self._led_epoch is not None
                self._known_since = self.engine.leading_since if leads else None
                return
        raise AssertionError(f"leadership of epoch {self._led_epoch} comes and goes")

    def _tell_leadership(self, now_ms: int) -> bool:
        """Returns whether it has changed. An application may resign as soon as it leads."""
        since = self.engine.leading_since
        if self._led_epoch is not None:
            if since is not None and since.epoch == self._led_epoch:
                return False
            self._led_epoch = None
            self._is_due_stale = True
            for application in self._listed:
                application.resign(now_ms)
            return True
        if since is None:
            self._elected = None
            return False
        delivered = self._delivery.next_offset
        if self._elected is None or self._elected[0] != since.epoch:
            self._elected = (since.epoch, now_ms, delivered)
        if delivered <= since.start_offset:
            return False
        self._led_epoch = since.epoch
        self._is_due_stale = True
        for application in self._listed:
            application.lead(since.epoch, now_ms)
        self._note_take_over(now_ms)
        return True

    def _note_take_over(self, now_ms: int) -> None:
        """Measure the take-over: a hot standby has only the last records to apply."""
        assert self._elected is not None, "lead without an election"
        epoch, elected_ms, delivered = self._elected
        found = TakeOver(
            epoch=epoch,
            took_ms=now_ms - elected_ms,
            replayed_records=self._delivery.next_offset - delivered,
        )
        self.take_over = found
        self._outbox.trace(
            "take-over", epoch=epoch, ms=found.took_ms, replayed=found.replayed_records
        )

    def _gather(self) -> list[Effect]:
        """What the applications ask for; they append first what they have decided."""
        told: list[Effect] = []
        for application in self._listed:
            told += application.take_effects()
        return told

    def _collect(self, told: list[Effect], now_ms: int) -> None:
        """The engine's effects first: answers of an application may rest on its appends."""
        is_leaving = False
        effects = self._outbox.effects
        effects += self.engine.take_effects()
        for effect in told:
            if type(effect) is Stop and effect.exit_code == 0:
                is_leaving = True
            else:
                effects.append(effect)
        if self._delivery.outbox.effects:
            effects += self._delivery.outbox.take()
        if is_leaving:
            self.shut_down(now_ms)  # an application that led must know before the next event
        if self._door is not None and self._door.is_amending:
            effects[:] = [
                self._door.amend(effect) if isinstance(effect, Reply | HangUp) else effect
                for effect in effects
            ]
        for effect in effects:
            if type(effect) is Stop:
                self._has_stopped = True
