"""ZkController: every broker's chance to be the controller, as a core beside the broker.

Decides when to run for controller, and what becomes of the controllership with the session. What is
done in it are the design's `Duties`. All of it runs in procedures, one after another.

How the end of a session is heard (`Design.hears_session_at_once`):

- At once: while the session is disconnected nothing is begun or sent. When it has expired the
  controllership ends at that moment, and with it all that was to be done in it (seed 001).
- Behind what is queued: the controllership ends when its turn comes. Earlier events are still
  written, in a session that begins meanwhile: ZkClient's manner, and KAFKA-3083.
"""

from collections.abc import Callable, Mapping
from random import Random

from controller.config import ControllerConfig
from controller.milestones import Cause, Occasion
from controller.zk.admin import Admin
from controller.zk.commands import Commands
from controller.zk.commands import Request as Command
from controller.zk.controller_context import Context, Duties
from controller.zk.controller_election import (
    NO_CONTROLLER,
    Controllership,
    Lost,
    run_for_controller,
)
from controller.zk.partition_states import StateStore
from controller.zk.procedure_milestones import ProcedureMilestones
from controller.zk.redesign import RedesignDuties
from controller.zk.v3 import V3Duties
from controller.zk.zk_controller_config import ZkControllerConfig
from controller.zk.zk_metadata import ensure_roots
from quorum.core.effects import Effect, Event, Reply, Request, RequestFailed, Response, earliest
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkEvent, ZkResult
from quorum.zookeeper.zk_procedures import Procedure, Procedures, Start
from wire.errors import ErrorCode
from wire.messages.producing import AllocateProducerIdsRequest
from wire.zk import control_rpc as rpc
from wire.zk import paths
from wire.zk.designs import IsrWriter, Layout
from wire.zk.session import Session, SessionChanged, SessionState, WatchFired

__all__ = ["OWNER", "ZkController"]

OWNER = "controller"
# Asked by nodes, which may still take us for the controller: they are refused, at least.
_OF_NODES = (rpc.ControlledShutdownRequest, rpc.AlterIsrRequest, AllocateProducerIdsRequest)
_DUTIES: Mapping[Layout, Callable[[Context], Duties]] = {
    Layout.V3: V3Duties,
    Layout.KAFKA: RedesignDuties,
}


class ZkController:
    def __init__(
        self, config: ZkControllerConfig, rules: ControllerConfig, session: Session, random: Random
    ) -> None:
        """`rules` apply to requests of administrators, in both modes."""
        self.config = config
        self.controller_id = NO_CONTROLLER  # as last read
        self._session = session
        self._outbox = Outbox(OWNER)
        at_once = config.design.hears_session_at_once
        self._procedures = Procedures(self._outbox, session, resumes=not at_once)
        self._admin = Admin(rules, self._outbox, random, config.design)
        self._milestones = ProcedureMilestones(self._outbox)
        self._context: Context | None = None
        self._duties: Duties | None = None
        self._session_id = 0  # that we last ran in
        self._unanswered: dict[int, Request] = {}  # by token
        self._now_ms = 0

    @property
    def is_active(self) -> bool:
        return self._context is not None

    @property
    def context(self) -> Context | None:
        """For observers; None while another broker is the controller."""
        return self._context

    @property
    def epoch(self) -> int:
        return -1 if self._context is None else self._context.controllership.epoch

    # --- Core ---------------------------------------------------------------------------------

    def serves(self, body: object) -> bool:
        if isinstance(body, _OF_NODES):
            return True
        return self.is_active and self._admin.serves(body)

    def receive(self, event: Event, now_ms: int) -> None:
        self._at(now_ms)
        match event:
            case ZkEvent(event=SessionChanged()):
                self._session_changed()
            case ZkEvent(event=WatchFired(path=path)):
                self._watch_fired(path)
            case ZkResult() | Response() | RequestFailed():
                self._outbox.deliver(event.token, event, now_ms)
            case Request():
                self._serve(event)
            case _:
                raise AssertionError(f"not for a controller: {event}")
        self._notice_loss()

    def tick(self, now_ms: int) -> None:
        self._at(now_ms)
        if self._context is None or not self._session.is_connected:
            return  # cut off: another may have taken over
        self._context.commands.tick(now_ms)
        if self._duties is not None:
            self._duties.tick(now_ms)
        self._notice_loss()

    def deadline_ms(self) -> int | None:
        if self._context is None or self._duties is None or not self._session.is_connected:
            return None
        return earliest(self._context.commands.deadline_ms(), self._duties.deadline_ms())

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()

    def _at(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if self._context is not None:
            self._context.now_ms = now_ms

    # --- the controllership -------------------------------------------------------------------

    def _session_changed(self) -> None:
        session = self._session
        if session.state is SessionState.CLOSED and self.config.design.hears_session_at_once:
            self._resign()
        self._procedures.session_changed()
        if session.is_connected and session.id != self._session_id:
            self._session_id = session.id
            self._procedures.submit("elect", self._elect)

    def _watch_fired(self, path: str) -> None:
        self._procedures.watch_fired(path)
        if path == paths.CONTROLLER:
            self._milestones.begin(Cause(Occasion.CONTROLLER_FAILED, self.controller_id))
            self._procedures.submit("elect", self._elect)
        elif self._duties is not None:
            self._milestones.watch_fired(path)
            self._duties.watch_fired(path)

    def _elect(self) -> Procedure[None]:
        """The node is gone or changed, or the session is new: our controllership has ended, and
        with it what still waits to be done in it."""
        self._resign()
        self._milestones.go_on(Cause(Occasion.CONTROLLER_FAILED, self.controller_id))
        yield from self._procedures.unwatch(but=paths.CONTROLLER)
        yield from ensure_roots(self.config.design)
        outcome = yield from run_for_controller(self._session, self.config.node_id, self._now_ms)
        match outcome:
            case Lost(controller_id=controller_id):
                self.controller_id = controller_id
                self._outbox.trace("controller", state="standby", active=controller_id)
            case Controllership():
                yield from self._begin_controllership(outcome)

    def _begin_controllership(self, controllership: Controllership) -> Procedure[None]:
        self.controller_id = self.config.node_id
        commands = Commands(
            self.config, self._outbox, self._session, self._milestones, self._obeyed
        )
        self._context = Context(
            config=self.config,
            outbox=self._outbox,
            procedures=self._procedures,
            commands=commands,
            controllership=controllership,
            store=StateStore(self.config.design, controllership, self._milestones),
            milestones=self._milestones,
            unanswered=self._unanswered,
            now_ms=self._now_ms,
        )
        self._outbox.trace("controller", state="active", epoch=controllership.epoch)
        self._milestones.elected(controllership.epoch)
        self._duties = _DUTIES[self.config.design.layout](self._context)
        yield from self._duties.take_over()
        self._milestones.ready(controllership.epoch)

    def _resign(self) -> None:
        if self._context is None:
            return
        self._outbox.trace("controller", state="resigned", epoch=self._context.controllership.epoch)
        self._context.commands.clear()
        self._context = None
        self._duties = None
        self._procedures.drop_waiting()
        unanswered, self._unanswered = self._unanswered, {}
        for request in unanswered.values():  # clients find the next one
            self._refuse(request)

    def _notice_loss(self) -> None:
        """A guarded write has failed: another controller has raised the epoch."""
        if self._context is not None and self._context.controllership.is_lost:
            self._resign()
            self._procedures.clear()
            self._procedures.submit("elect", self._elect)

    def _obeyed(self, broker_id: int, command: Command, answer: object) -> None:
        if self._duties is not None:
            self._duties.obeyed(broker_id, command, answer)

    # --- requests -----------------------------------------------------------------------------

    def _serve(self, request: Request) -> None:
        body, context, duties = request.body, self._context, self._duties
        if isinstance(body, rpc.ControlledShutdownRequest):
            if duties is None:
                self._refuse(request)
                return
            self._submit(request, lambda: duties.controlled_shutdown(request))
        elif isinstance(body, rpc.AlterIsrRequest):
            self._alter_isr(request)
        elif context is None:
            self._refuse(request)
        else:
            self._submit(request, lambda: self._administer(context, request))

    def _administer(self, context: Context, request: Request) -> Procedure[None]:
        yield from self._admin.serve(context, request)
        self._unanswered.pop(request.token, None)

    def _alter_isr(self, request: Request) -> None:
        writes = self.config.design.isr_writer is IsrWriter.CONTROLLER
        if self._duties is None or not writes or not self._session.is_connected:
            answer = rpc.AlterIsrResponse(error_code=ErrorCode.NOT_CONTROLLER)
            self._outbox.emit(Reply(token=request.token, body=answer))
        else:
            self._duties.alter_isr(request)

    def _submit(self, request: Request, start: Start) -> None:
        self._unanswered[request.token] = request
        if not self._procedures.submit(f"request {request.token}", start):
            del self._unanswered[request.token]
            self._refuse(request)

    def _refuse(self, request: Request) -> None:
        if isinstance(request.body, rpc.ControlledShutdownRequest):
            answer = rpc.ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)
            self._outbox.emit(Reply(token=request.token, body=answer))
        else:
            self._admin.refuse(request, ErrorCode.NOT_CONTROLLER)
