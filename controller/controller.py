"""The controller core: decides on the head image, appends, and answers once it is committed.

While it leads, requests are decided one after another on what has been decided before, committed
or not; what is decided within a turn goes into the log as one batch (`controller.accumulator`). An
answer waits until the batch it rests on is committed, also one that changes nothing: it may rest on
what others have changed just before. Reads are answered from the committed image, by any
controller.

The rules are in `controller.decisions`; what is not in the log (sessions) is in
`controller.liveness`.

Source: KIP-631; Kafka's QuorumController.
"""

from random import Random

from controller.accumulator import BATCH_RECORDS_MAX, Accumulator, spread_records_max
from controller.chores import Chores
from controller.config import ControllerConfig
from controller.decision_milestones import ControllerMilestones, cause_of
from controller.decisions import brokers, cluster, elections, failover
from controller.decisions.brokers import present_life
from controller.decisions.features import Quorum, why_not_to_lead
from controller.images import Images
from controller.liveness import Liveness
from controller.metadata.changes import Change, record_count, split_changes
from controller.metadata.configs import UNCLEAN_ELECTION
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import METADATA_VERSION
from controller.metadata.own_configs import OwnConfigs
from controller.milestones import Cause, Occasion
from controller.quotas.mutations import Allowance, MutationQuota
from controller.quotas.sampled_rate import Windows
from controller.refusals import refuse
from controller.registration import Registration
from controller.requests import READS, WRITES, CommittedView, Situation, timeout_ms
from quorum.core import parking
from quorum.core.application import MetadataLog, State
from quorum.core.config_effects import ConfigsChanged
from quorum.core.effects import Effect, Event, Reply, Request, RequestFailed, Response, earliest
from quorum.core.outbox import EffectQueue
from quorum.core.parking import Parking
from quorum.core.types import OffsetAndEpoch
from wire.batch import headers
from wire.capabilities import Capability
from wire.errors import ErrorCode
from wire.message import Message, replace
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
)
from wire.metadata_records import AbortTransactionRecord

__all__ = [
    "OWNER",
    "Controller",
]

OWNER = "controller"
_GIVE_WAY_MS = 100
_GIVE_WAY_DOUBLED = 7  # times: to 12.8 s
_TAKE_OVER = Cause(Occasion.CONTROLLER_FAILED)


class _Waiting(Message, kw_only=False):
    """An answer that may leave once everything up to `last_offset` is committed."""

    last_offset: int
    epoch: int  # of the leader that decided it
    request: Request
    response: object


class Controller:
    """An application on the metadata log (`quorum.core.application.Application`)."""

    def __init__(
        self, config: ControllerConfig, metadata_log: MetadataLog, random: Random, now_ms: int
    ) -> None:
        self.config = config
        self.liveness = Liveness(config.session_timeout_ms)
        self._log = metadata_log
        self._accumulator = Accumulator(metadata_log)
        self._random = random
        self._images = Images()
        self._own_configs = OwnConfigs(config.node_id)
        self._registration = Registration(config, now_ms)
        self._waiting: Parking[_Waiting] = Parking()
        self._epoch: int | None = None  # the epoch that this node leads
        self._give_way_ms: int | None = None  # when it leaves the lead, since it is unable to lead
        self._gave_way = 0  # times
        self._delivered_ms = now_ms  # when records were last delivered
        self._chores = Chores(config, self.liveness)
        self._mutation_quota = MutationQuota(
            Windows(config.quota_window_count, config.quota_window_ms)
        )
        self._milestones = ControllerMilestones()
        self._outbox = EffectQueue(OWNER)
        self._has_stopped = False

    @property
    def image(self) -> MetadataImage:
        """What is committed and may be shown."""
        return self._images.committed.stable

    @property
    def applied_offset(self) -> int:
        """All before it is in the image, but for a transaction that is not over."""
        return self._images.committed.at.offset

    @property
    def head(self) -> MetadataImage:
        """What has been decided, committed or not."""
        return self._images.head

    @property
    def is_active(self) -> bool:
        return self._epoch is not None

    # --- Application ------------------------------------------------------------------------

    def serves(self, body: object) -> bool:
        kind = type(body)
        return kind in WRITES or kind in READS

    def lead(self, epoch: int, now_ms: int) -> None:
        assert self._epoch is None, (self._epoch, epoch)
        if self._has_stopped:
            return
        problem = why_not_to_lead(self._images.head, self.config)
        if problem:
            self._outbox.trace("controller", state="unable to lead", epoch=epoch, because=problem)
            self._give_way(now_ms)
            return
        self._epoch = epoch
        changes = self._changes_at_start()
        if changes:
            self._append(changes, _TAKE_OVER, is_atomic=True, now_ms=now_ms)
        overdue = elections.elect_overdue(self._images.head, self.config)
        if overdue:
            self._append(overdue, _TAKE_OVER, is_atomic=False, now_ms=now_ms)
            self._outbox.trace("overdue", elections=record_count(overdue))
        self.liveness.reset(self._images.head, now_ms)
        self._registration.leader_changed(now_ms)
        self._chores.begin(now_ms)
        if record_count(overdue) >= elections.ELECTIONS_MAX:
            self._chores.elect_overdue_soon(now_ms)
        self._outbox.trace("controller", state="active", epoch=epoch)
        self._milestones.took_over(epoch, end_offset=self._accumulator.end_offset)
        self._outbox.effects += self._milestones.committed(self.applied_offset)

    def _give_way(self, now_ms: int) -> None:
        """At once, then ever later: perhaps nobody is able to, and each election is a record."""
        wait_ms = _GIVE_WAY_MS << min(self._gave_way, _GIVE_WAY_DOUBLED) if self._gave_way else 0
        self._gave_way += 1
        self._give_way_ms = now_ms + wait_ms
        if not wait_ms:
            self._log.resign(now_ms)

    def resign(self, now_ms: int) -> None:
        self._give_way_ms = None
        if self._epoch is None:
            return
        self._outbox.trace("controller", state="standby", epoch=self._epoch)
        self._epoch = None
        self._chores.end()
        self._accumulator.clear()
        self._images.roll_back()
        self._milestones.clear()
        self.liveness.clear()
        self._registration.leader_changed(now_ms)
        for waiting in self._waiting.release(self._has_ended):
            self._reply_not_controller(waiting.request)

    def _has_ended(self, waiting: _Waiting) -> bool:
        """Is the epoch over that decided it? `committed` meets none: `resign` has refused it."""
        return parking.has_ended(waiting.epoch, self._epoch)

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        if self._has_stopped:
            return
        self._delivered_ms = now_ms
        if self._epoch is None:
            self._follow(batches, next_offset)
            self._tell_of_configs()
            return
        self._images.delivered_to_leader(next_offset)
        self._tell_of_configs()
        self._outbox.effects += self._milestones.committed(next_offset)
        for waiting in self._waiting.release(lambda each: each.last_offset < next_offset):
            self._reply(waiting.request, waiting.response)

    def _follow(self, batches: bytes, next_offset: int) -> None:
        try:
            self._images.delivered_to_standby(batches, next_offset)
            if not all(header.is_control for _, header in headers(batches)):
                self._gave_way = 0  # somebody else is able to
        except ValueError as error:
            self._stop(f"the metadata log cannot be applied before offset {next_offset}: {error}")

    def load(self, batches: bytes, *, is_first: bool) -> None:
        assert self._epoch is None, "only a standby lags so far behind"
        if self._has_stopped:
            return
        try:
            self._images.load(batches, is_first=is_first)
        except ValueError as error:
            self._stop(f"a snapshot of the metadata cannot be loaded: {error}")

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        if not self._has_stopped:
            self._images.loaded(end)
            self._delivered_ms = now_ms
            self._tell_of_configs()

    def _tell_of_configs(self) -> None:
        configs = self._own_configs.changed(self.image)
        if configs is not None:
            self._outbox.emit(ConfigsChanged(values=configs))

    def state(self) -> State | None:
        return self._images.state(self._delivered_ms)

    def _stop(self, reason: str) -> None:
        """Nothing sound can be decided on an image that lacks a record."""
        self._has_stopped = True
        self._outbox.stop(reason, 1)

    # --- Core -------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        if self._has_stopped:
            return
        match event:
            case Request():
                self._serve(event, now_ms)
            case Response() | RequestFailed():
                self._registration.answered(event.token, now_ms)
            case _:
                raise AssertionError(f"not for the controller: {event}")

    def tick(self, now_ms: int) -> None:
        if self._has_stopped:
            return
        for waiting in self._waiting.expired(now_ms):
            message = "The changes were not committed in time; they may be all the same."
            self._refuse(waiting.request, ErrorCode.REQUEST_TIMED_OUT, message)
        if self._give_way_ms is not None and now_ms >= self._give_way_ms:
            self._log.resign(now_ms)
        if self._epoch is not None:
            self._do_chores(now_ms)
        if self._registration.is_due(self._images.committed, now_ms):
            self._register_itself(now_ms)

    def deadline_ms(self) -> int | None:
        if self._has_stopped:
            return None
        own_ms = None if self._epoch is None else self._chores.deadline_ms(self._images.head)
        registration_ms = self._registration.deadline_ms(self._images.committed)
        return earliest(self._waiting.due_ms, registration_ms, own_ms, self._give_way_ms)

    def take_effects(self) -> list[Effect]:
        """What was decided since the last call is appended first."""
        if self._accumulator.decisions:
            self._accumulator.write()
        return self._outbox.take() if self._outbox.effects else []

    # --- requests ---------------------------------------------------------------------------

    def _serve(self, request: Request, now_ms: int) -> None:
        read = READS.get(type(request.body))
        if read is not None:
            known = CommittedView(image=self.image, config=self.config, log=self._log)
            self._reply(request, read(known, request.body))
            return
        assert type(request.body) in WRITES, f"not served: {type(request.body).__name__}"
        self._write(request, now_ms)

    def _write(self, request: Request, now_ms: int) -> None:
        if self._epoch is None:
            self._reply_not_controller(request)
            return
        if isinstance(request.body, BrokerHeartbeatRequest):
            self._hear(request.body, now_ms)
        if len(self._waiting) >= self.config.waiting_requests_max:
            message = "Too many requests wait for the controller; nothing was done: try again."
            self._refuse(request, ErrorCode.REQUEST_TIMED_OUT, message)
            return
        allowance = self._allowance(request, now_ms)
        decision = WRITES[type(request.body)](self._situation(allowance, now_ms), request.body)
        response = decision.response
        if allowance.throttle_ms:
            response = replace(response, throttle_time_ms=allowance.throttle_ms)
        if decision.kraft_version is not None:
            self._accumulator.write()
            problem = self._log.raise_kraft_version(decision.kraft_version, now_ms)
            if problem is not None:
                self._refuse(request, ErrorCode.INVALID_UPDATE_VERSION, problem)
                return
        last_offset = -1
        if decision.changes:
            cause = cause_of(request.body)
            last_offset = self._append(
                decision.changes, cause, is_atomic=decision.is_atomic, now_ms=now_ms
            )
            if record_count(decision.changes) >= failover.ONE_BY_ONE_MAX:
                self._chores.elect_overdue_soon(now_ms)
            self._after(request.body, decision.response, last_offset, now_ms)
        elif not self._images.has_uncommitted and decision.kraft_version is None:
            self._reply(request, response)
            return
        else:
            last_offset = self._accumulator.end_offset - 1
        deadline_ms = now_ms + timeout_ms(request.body, self.config)
        waiting = _Waiting(last_offset, self._epoch, request, response)
        self._waiting.park(waiting, deadline_ms)

    def _after(self, body: object, response: object, last_offset: int, now_ms: int) -> None:
        """What the controller remembers of a change beside the log."""
        head = self._images.head
        match body, response:
            case BrokerRegistrationRequest(), BrokerRegistrationResponse():
                self.liveness.registered(body.broker_id, response.broker_epoch, now_ms)
                self._outbox.trace("registered", broker=body.broker_id, epoch=response.broker_epoch)
            case BrokerHeartbeatRequest(), BrokerHeartbeatResponse():
                if head.brokers[body.broker_id].in_controlled_shutdown:
                    self.liveness.left(body.broker_id, last_offset)
                state = brokers.BrokerState.of(head.brokers[body.broker_id]).value
                self._outbox.trace("broker", broker=body.broker_id, state=state)
            case UnregisterBrokerRequest(), _:
                self.liveness.forget(body.broker_id)
                self._outbox.trace("unregistered", broker=body.broker_id)
            case (IncrementalAlterConfigsRequest() | AlterConfigsRequest()) as asked, _:
                if _may_allow_unclean(asked):
                    self._chores.elect_unclean_soon(now_ms)
            case _:
                pass

    def _hear(self, request: BrokerHeartbeatRequest, now_ms: int) -> None:
        """A broker lives, even if there is no time to answer it."""
        if present_life(self._images.head, request) is not None:
            self.liveness.heard(
                request.broker_id,
                request.broker_epoch,
                metadata_offset=request.current_metadata_offset,
                now_ms=now_ms,
            )

    def _allowance(self, request: Request, now_ms: int) -> Allowance:
        return self._mutation_quota.allowance(
            self.image.client_quotas,
            request.principal.name,
            request.client_id or "",
            is_strict=Capability.KNOWS_THROTTLING_QUOTA_EXCEEDED not in request.lacking,
            now_ms=now_ms,
        )

    def _situation(self, allowance: Allowance, now_ms: int) -> Situation:
        return Situation(
            head=self._images.head,
            config=self.config,
            random=self._random,
            quorum=Quorum(kraft_version=self._log.kraft_version, voter_ids=self._log.voter_ids),
            next_offset=self._accumulator.end_offset,
            liveness=self.liveness,
            allowance=allowance,
            now_ms=now_ms,
        )

    # --- what happens by itself -------------------------------------------------------------

    def _changes_at_start(self) -> tuple[Change, ...]:
        """What a new active controller writes before anything else."""
        images = self._images
        transaction = images.committed.transaction
        if transaction is None:
            return () if images.has_data else cluster.bootstrap_changes(self.config)
        abort = AbortTransactionRecord(reason="Controller failover")
        if not transaction.before.features:
            # The log holds the beginning of a bootstrap, and nothing else.
            return (abort, *cluster.bootstrap_changes(self.config))
        return (abort,)

    def _do_chores(self, now_ms: int) -> None:
        for work in self._chores.work(lambda: self._images.head, now_ms):
            self._append(work.changes, work.cause, is_atomic=False, now_ms=now_ms)
            if work.event is not None:
                self._outbox.trace(work.event, **dict(work.fields))

    def _register_itself(self, now_ms: int) -> None:
        leader_id = self._log.leader.leader_id
        if self._epoch is not None:
            request = self._registration.request()
            decision = cluster.decide_controller_registration(self._images.head, request)
            if decision.changes:
                self._append(decision.changes, _TAKE_OVER, is_atomic=True, now_ms=now_ms)
            self._registration.tried(now_ms)
            return
        to = None if leader_id is None else self._log.endpoint_of(leader_id)
        if to is None or leader_id == self.config.node_id:
            self._registration.tried(now_ms)
            return
        self._outbox.emit(self._registration.send(self._outbox.token(), to))

    # --- the log, answers -------------------------------------------------------------------

    def _append(
        self, changes: tuple[Change, ...], cause: Cause, *, is_atomic: bool, now_ms: int
    ) -> int:
        """Have it appended at the end of this turn, and apply it; returns the last offset."""
        assert self._epoch is not None, "only the active controller writes"
        head = self._images.head
        version = head.features.get(
            METADATA_VERSION, self.config.bootstrap_features[METADATA_VERSION]
        )
        records_max = BATCH_RECORDS_MAX  # they may all be about one broker, which is alive
        if cause.occasion is Occasion.BROKER_FAILED:
            records_max = spread_records_max(sum(map(head.is_active, head.brokers)))
        is_whole = is_atomic or record_count(changes) <= records_max
        parts = [changes] if is_whole else split_changes(changes, records_max)
        last_offset = -1
        for part in parts:
            last_offset = self._accumulator.add(
                part, records_max=records_max, metadata_version=version, now_ms=now_ms
            )
            self._images.append(part, last_offset=last_offset, epoch=self._epoch)
        self._outbox.effects += self._milestones.decided(changes, cause, last_offset=last_offset)
        return last_offset

    def _reply(self, request: Request, response: object) -> None:
        self._outbox.effects.append(Reply(token=request.token, body=response))

    def _refuse(self, request: Request, error: ErrorCode, message: str) -> None:
        self._reply(request, refuse(request.body, error, message))

    def _reply_not_controller(self, request: Request) -> None:
        leader_id = self._log.leader.leader_id
        if leader_id is None or leader_id == self.config.node_id:
            message = "No controller appears to be active."
        else:
            message = f"The active controller appears to be node {leader_id}."
        self._refuse(request, ErrorCode.NOT_CONTROLLER, message)


def _may_allow_unclean(body: IncrementalAlterConfigsRequest | AlterConfigsRequest) -> bool:
    """Looking for partitions to elect for costs as much as a small request does."""
    return isinstance(body, AlterConfigsRequest) or any(
        config.name == UNCLEAN_ELECTION
        for resource in body.resources
        for config in resource.configs
    )
