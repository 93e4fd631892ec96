"""A broker is an application on the metadata log: it routes between its parts.

    request          _serve          router.py finds the part that answers; early ones are held
    new image        _publish        replicas.py applies it; the changes of roles come back
    change of role   _apply_changes  replication, leaders, coordinators and waiters are told
    moved offsets    _settle         whoever waits for the partition is answered

Each part decides for itself; nothing is decided here but the order.

Source: Kafka's BrokerServer, BrokerMetadataPublisher and KafkaApis.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Self

from broker.config import BrokerConfig
from broker.log_chores import LogChores
from broker.membership.controller_channel import Whereabouts
from broker.membership.lifecycle import BrokerState
from broker.membership.membership import Membership, Timed
from broker.membership.metadata import MetadataFollower
from broker.membership.quorum_membership import QuorumMembership
from broker.partition.lag_watch import LagWatch
from broker.partition.leaders import Leaders
from broker.partition.partition import Change, FollowerOf, LeaderOf, Offline, Partition
from broker.parts import BrokerParts
from broker.replication.replication import Replication
from broker.requests.all_coordinators import AllCoordinators
from broker.requests.router import Router
from broker.shutdown_report import ShutdownReport
from broker.waiting import Deadlines
from controller.metadata.delta import MetadataDelta
from controller.metadata.own_configs import OwnConfigs
from quorum.core.application import MetadataLog, State
from quorum.core.config_effects import ConfigsChanged
from quorum.core.effects import Answer, Effect, Event, FoundLog, Request, Stop, StorageFailed
from quorum.core.types import OffsetAndEpoch
from wire.errors import ErrorCode
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import FetchRequest
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = ["Broker"]


class Broker:
    """This core owns the tokens of "broker"."""

    def __init__(self, membership: Membership, random: Random) -> None:
        parts = membership.parts
        self.membership = membership
        self.config, self.cluster = parts.config, parts.cluster
        self.log_dirs, self.outbox, self._moves = parts.log_dirs, parts.outbox, parts.moves
        self.lifecycle, self.metadata = membership.lifecycle, membership.metadata
        self.replicas = membership.replicas
        self._news = membership.news
        self._own_configs = OwnConfigs(self.config.node_id)
        self._controller_id: int | None = None
        self._has_stopped = False
        self.serves_clients = False  # for good, once it has run
        self._followers_to_invite: set[int] = set()  # brokers that follow what we lead anew
        self.lag_watch = LagWatch()
        deadlines = Deadlines(self.config.parked_requests_max)
        self.leaders = Leaders(
            keeper=membership.isr_keeper,
            check_interval_ms=self.config.replica_lag_time_max_ms // 2,
            outbox=self.outbox,
            lag_watch=self.lag_watch,
        )
        self._replication: Replication = Replication(
            cluster=self.cluster, outbox=self.outbox, incarnation=membership.incarnation
        )
        self._chores: LogChores = LogChores(
            replicas=self.replicas, cluster=self.cluster, outbox=self.outbox
        )
        self._coordinators: AllCoordinators = AllCoordinators(membership, deadlines)
        self.coordinators = self._coordinators.groups
        self.transactions = self._coordinators.transactions
        self._shutdown_report: ShutdownReport = ShutdownReport(
            lifecycle=self.lifecycle, leaders=self.leaders, outbox=self.outbox
        )
        self._router = Router(
            membership,
            leaders=self.leaders,
            coordinators=self._coordinators,
            deadlines=deadlines,
            lag_watch=self.lag_watch,
            random=random,
        )
        self._fetching = self._router.fetching
        self._timed: tuple[Timed, ...] = (
            deadlines,
            self.leaders,
            membership.isr_keeper,
            membership,
            self._replication,
            *self._router.timed,
            self._chores,
            *self._coordinators.timed,
            self._shutdown_report,
        )
        self._always_served = (ApiVersionsRequest, *membership.always_served)

    @classmethod
    def of_quorum(
        cls, config: BrokerConfig, log: MetadataLog, random: Random, found: Sequence[FoundLog] = ()
    ) -> Self:
        """It belongs to a quorum, the metadata log of which it follows."""
        return cls(QuorumMembership(BrokerParts.of(config, found), log, random), random)

    @property
    def broker_epoch(self) -> int:
        return self.membership.incarnation.broker_epoch

    @property
    def _controller(self) -> Whereabouts:
        return self.membership.controller.whereabouts

    # --- Core ---------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        match event:
            case Request():
                self._serve(event, now_ms)
            case StorageFailed():
                self._storage_failed(event, now_ms)
            case Answer():
                self.outbox.deliver(event.token, event, now_ms)
            case _:
                self.membership.receive(event, now_ms)
        self._apply_changes(now_ms)
        self._become_ready(now_ms)
        self._settle(now_ms)

    def tick(self, now_ms: int) -> None:
        self._notice_controller(now_ms)
        self.membership.tick_lifecycle(now_ms)
        self._stop_if_shut_down(now_ms)
        for part in self._timed:
            part.tick(now_ms)
        self._settle(now_ms)

    def _settle(self, now_ms: int) -> None:
        """Apply the decided roles and ISRs, then tell the waiters of each partition that has moved.

        What they do may move a partition in turn.
        """
        self._apply_changes(now_ms)
        self._stop_if_shut_down(now_ms)
        self.leaders.take_decided(now_ms)
        while moves := self._moves.take():
            for name, has_moved in moves.items():
                partition = self.replicas.of_log(name)
                self._chores.moved(name, partition)
                if partition is None:
                    continue
                if isinstance(partition.role, LeaderOf):
                    self.leaders.moved(partition)
                    self._router.progressed(partition)
                    self._coordinators.progressed(partition, now_ms)
                    if not has_moved:
                        self._fetching.updated(partition)
                elif not isinstance(partition.role, FollowerOf):
                    self.replicas.moved(partition, now_ms)
                    self._apply_changes(now_ms)
                elif has_moved:
                    self._replication.moved(partition)
            self._fetching.moved([name for name, moved in moves.items() if moved], now_ms)
        if self._followers_to_invite:
            invited, self._followers_to_invite = self._followers_to_invite, set()
            self._fetching.invite(sorted(invited), now_ms)

    def deadline_ms(self) -> int | None:
        first_ms = self.lifecycle.deadline_ms()
        # Asked at every turn: a loop is cheaper than `earliest` of a list.
        for part in self._timed:
            due_ms = part.deadline_ms()
            if due_ms is not None and (first_ms is None or due_ms < first_ms):
                first_ms = due_ms
        return first_ms

    def take_effects(self) -> list[Effect]:
        return self.outbox.take()

    # --- Application --------------------------------------------------------------------------

    def serves(self, body: object) -> bool:
        if isinstance(body, FetchRequest):
            for topic in body.topics:
                if topic.topic == METADATA_TOPIC or topic.topic_id.int == METADATA_TOPIC_ID.int:
                    return False
            return True
        return type(body) in self._router.routes

    def lead(self, epoch: int, now_ms: int) -> None:
        """Leading the metadata log is the controller's business."""

    def resign(self, now_ms: int) -> None:
        """As `lead`."""

    @property
    def _follower(self) -> MetadataFollower:
        assert isinstance(self.metadata, MetadataFollower), "there is no metadata log to follow"
        return self.metadata

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        if self._can_go_on(self._follower.committed(batches, now_ms)):
            self._publish(next_offset, now_ms)

    def load(self, batches: bytes, *, is_first: bool) -> None:
        self._can_go_on(self._follower.load(batches, is_first=is_first))

    def _can_go_on(self, problem: str | None) -> bool:
        if problem is not None:
            self.outbox.emit(Stop(reason=problem, exit_code=1))
        return problem is None

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        self._follower.loaded(end, now_ms)
        self._publish(end.offset, now_ms)

    def state(self) -> State | None:
        return self._follower.state()

    def _publish(self, next_offset: int, now_ms: int) -> None:
        was_published = self.cluster.is_published
        delta = self._follower.publish(next_offset)
        if delta is not None:
            self._apply_delta(delta, now_ms, is_first=not was_published)
        self._notice_controller(now_ms)
        self._become_ready(now_ms)
        self._settle(now_ms)

    def _apply_delta(self, delta: MetadataDelta, now_ms: int, *, is_first: bool) -> None:
        """Have the replicas and all other parts follow the newly published image."""
        if is_first or delta.features_changed:
            self._amend_registration(now_ms)
        configs = self._own_configs.changed(self.cluster.image)
        if configs is not None:
            self.outbox.emit(ConfigsChanged(values=configs))
        if is_first:
            self.outbox.trace("metadata-published", offset=self.metadata.published_offset)
            self._apply_each(self.replicas.apply_all(now_ms), now_ms)
            self._chores.start(now_ms)
            return
        self._router.views.forget(delta)
        self._apply_each(self.replicas.apply(delta, now_ms), now_ms)
        self._tell_of_delta(delta, now_ms)

    def _tell_of_delta(self, delta: MetadataDelta, now_ms: int) -> None:
        self._chores.obey(delta)
        self._coordinators.obey(delta, now_ms)
        if delta.brokers_changed:
            self.leaders.peers_changed(now_ms)
            self._fetching.peers_changed(delta.brokers_changed)

    def _amend_registration(self, now_ms: int) -> None:
        """Register the directories once the metadata.version has room for them (KIP-858)."""
        own = self.cluster.own_registration
        if own is not None and not own.log_dirs and self.cluster.image.has_directories:
            self.lifecycle.register_again(now_ms)
            self.replicas.confirm_directories()

    def begin_shutdown(self, now_ms: int) -> None:
        """Leave in order; `Stop` follows when the controller agrees, or the time is up."""
        self.lifecycle.begin_shutdown(now_ms)
        self._shutdown_report.begin(now_ms)
        self._stop_if_shut_down(now_ms)

    # --- requests -----------------------------------------------------------------------------

    def _serve(self, request: Request, now_ms: int) -> None:
        if self.serves_clients or isinstance(request.body, self._always_served):
            self._handle(request, now_ms)
        else:
            self._router.early_requests.hold(request, now_ms)

    def _handle(self, request: Request, now_ms: int) -> None:
        self._router.routes[type(request.body)](request, now_ms)
        self._settle(now_ms)

    def _become_ready(self, now_ms: int) -> None:
        """Ask to be unfenced when every log is open; serve clients once the metadata says so."""
        if self.cluster.is_published and self.replicas.are_open:
            self.membership.ready_to_unfence(now_ms)
        if self.serves_clients or self.lifecycle.state is not BrokerState.RUNNING:
            return
        own = self.cluster.own_registration
        if own is not None and not own.fenced:
            self.serves_clients = True
            for request in self._router.early_requests.release():
                self._handle(request, now_ms)

    # --- replicas -----------------------------------------------------------------------------

    def _apply_each(self, steps: Iterator[None], now_ms: int) -> None:
        for _ in steps:
            self._apply_changes(now_ms)

    def _apply_changes(self, now_ms: int) -> None:
        """Begin and end what comes with each change of a replica's role.

        First all fetching stops from former leaders: no leader may be asked before it is known
        which replicas follow it, and from which offset.
        """
        if not (self._news or self.replicas.changed):
            return
        while self._news:
            delta = self._news.popleft()
            self._router.views.forget(delta)
            self.replicas.reconfigure(delta, now_ms)
            self._tell_of_delta(delta, now_ms)
            self._chores.start(now_ms)
        changed, self.replicas.changed = self.replicas.changed, []
        for partition, change in changed:
            if change is not Change.UPDATED:
                self._replication.stop(partition)
        for partition, change in changed:
            self._role_changed(partition, change, now_ms)

    def _role_changed(self, partition: Partition, change: Change, now_ms: int) -> None:
        match partition.role:
            case Offline(error=error) if change is Change.GONE:
                self._stop_leading(partition, error, now_ms)
            case LeaderOf(followers=followers) if change is Change.ELECTED:
                self._followers_to_invite.update(followers)
                self._router.lost(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # led before, too
                self.leaders.elected(partition, now_ms)
                self._coordinators.elected(partition, now_ms)
            case FollowerOf() as role:
                if change is not Change.UPDATED:
                    self._stop_leading(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
                if change is Change.FOLLOWS:
                    self._replication.follow(partition, now_ms)
                if self._is_shutting_down() and not (role.is_in_sync and role.leader_id >= 0):
                    self._replication.stop(partition)
            case _:
                pass  # still leads; or it has changed again, and that change comes next

    def _stop_leading(self, partition: Partition, error: ErrorCode, now_ms: int) -> None:
        self.leaders.resigned(partition)
        self._router.lost(partition, error)
        self._coordinators.lost(partition, now_ms)

    def _storage_failed(self, event: StorageFailed, now_ms: int) -> None:
        """A data directory has failed: take its replicas offline, and go on with the others."""
        self.outbox.deliver(event.token, event, now_ms)
        failed = self.log_dirs.fail(event.directory_id)
        if not failed:
            return
        for directory_id in failed:
            self.outbox.trace("directory-offline", id=directory_id, reason=event.reason)
            self.replicas.fail_directory(directory_id, now_ms)
            self._apply_changes(now_ms)
        if self.log_dirs.are_all_offline:
            reason = f"no data directory is left; the last: log {event.log}: {event.reason}"
            self.outbox.emit(Stop(reason=reason, exit_code=1))
        else:
            self.lifecycle.directory_failed(now_ms)

    # --- life ---------------------------------------------------------------------------------

    def _is_shutting_down(self) -> bool:
        return self.lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN

    def _notice_controller(self, now_ms: int) -> None:
        leader_id = self._controller.leader.leader_id
        if leader_id is not None and leader_id != self._controller_id:
            is_another = self._controller_id is not None
            self._controller_id = leader_id
            if is_another:
                self.lifecycle.controller_changed(now_ms)

    def _stop_if_shut_down(self, now_ms: int) -> None:
        """End the process once the broker has shut down, in order or by a failure."""
        if self._has_stopped or self.lifecycle.state is not BrokerState.SHUTTING_DOWN:
            return
        self._has_stopped = True
        self._settle(now_ms)
        self._chores.save_checkpoint()
        self.replicas.save_producers()
        failure = self.lifecycle.failure
        self._shutdown_report.end()
        reason = failure or self._shutdown_report.reason
        self.outbox.emit(Stop(reason=reason, exit_code=0 if failure is None else 1))
