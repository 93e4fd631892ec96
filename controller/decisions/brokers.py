"""Brokers: register, live from heartbeat to heartbeat, be fenced, shut down, be forgotten.

What the log does not say (who was heard of lately, who waits in a controlled shutdown) comes from
`controller.liveness`.

Source: KIP-631, KIP-841, KIP-858, KIP-966, KIP-1066; Kafka's ClusterControlManager,
BrokerHeartbeatManager.
"""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions import failover
from controller.decisions.cluster import recorded_endpoints, recorded_features
from controller.decisions.decision import Decision, refused
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.metadata_version import (
    CORDONED_DIRECTORIES,
    KRAFT_VERSION,
    METADATA_VERSION,
)
from wire.errors import ErrorCode
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from wire.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from wire.primitives import DIRECTORY_LOST

__all__ = [
    "BrokerState",
    "Heard",
    "decide_heartbeat",
    "decide_registration",
    "decide_unregister",
    "epoch_of_process",
    "fence",
    "is_caught_up",
    "is_duplicate",
    "next_state",
    "present_life",
]

_RESERVED_BELOW = 100  # uuids that Kafka keeps for itself


# --- registration ---------------------------------------------------------------------------


def decide_registration(
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    config: ControllerConfig,
    *,
    next_offset: int,
    has_live_session: bool,
    kraft_version: int,
) -> Decision[BrokerRegistrationResponse]:
    """Register a process as a broker. Its epoch is `next_offset`, where the changes will begin.

    The epoch only grows, so that whoever knows a newer one can tell an older life of the broker.
    """
    error = registration_error(
        image, request, config, has_live_session=has_live_session, kraft_version=kraft_version
    )
    if error is not ErrorCode.NONE:
        return Decision(response=BrokerRegistrationResponse(error_code=error))
    before = image.brokers.get(request.broker_id)
    epoch = epoch_of_process(before, request.incarnation_id, next_offset)
    amended: BrokerImage | None = None
    changes: tuple[Change, ...] = ()
    if before is not None and before.incarnation_id == request.incarnation_id:
        amended = before  # the same process, whose state is kept; a new process begins fenced
    elif before is not None:
        was_clean = request.previous_broker_epoch == before.epoch
        changes = failover.leave_isrs(image, before.id, config, lost=not was_clean)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=recorded_endpoints(request.listeners),
        features=recorded_features(request.features),
        rack=request.rack,
        fenced=True if amended is None else amended.fenced,
        in_controlled_shutdown=False if amended is None else amended.in_controlled_shutdown,
        log_dirs=request.log_dirs if image.has_directories else (),
    )
    response = BrokerRegistrationResponse(broker_epoch=epoch)
    return Decision(response=response, changes=(*changes, record))


def epoch_of_process(before: BrokerImage | None, incarnation_id: UUID, next_offset: int) -> int:
    """Every process has an epoch of its own; it keeps it when it registers again (KIP-380)."""
    is_same = before is not None and before.incarnation_id == incarnation_id
    return before.epoch if before is not None and is_same else next_offset


def registration_error(
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    config: ControllerConfig,
    *,
    has_live_session: bool,
    kraft_version: int,
) -> ErrorCode:
    if request.cluster_id != config.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if request.is_migrating_zk_broker:
        return ErrorCode.BROKER_ID_NOT_REGISTERED  # migration from ZooKeeper is not offered
    if is_duplicate(image, request, has_live_session=has_live_session):
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if image.has_directories and invalid_log_dirs(image, request):
        return ErrorCode.INVALID_REGISTRATION
    if has_unsupported_feature(image, request, kraft_version=kraft_version):
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def is_duplicate(
    image: MetadataImage, request: BrokerRegistrationRequest, *, has_live_session: bool
) -> bool:
    """Is another process alive under this id?

    One that was killed and comes back has to wait until its former session has run out.
    """
    known = image.brokers.get(request.broker_id)
    if known is None or known.incarnation_id == request.incarnation_id:
        return False
    return not known.fenced and has_live_session


def invalid_log_dirs(image: MetadataImage, request: BrokerRegistrationRequest) -> bool:
    """A broker names at least one directory, each once, each its own."""
    directories = request.log_dirs
    if not directories or len(set(directories)) < len(directories):
        return True
    if any(directory.int < _RESERVED_BELOW for directory in directories):
        return True
    return any(
        directory in broker.log_dirs
        for broker in image.brokers.values()
        if broker.id != request.broker_id
        for directory in directories
    )


def has_unsupported_feature(
    image: MetadataImage, request: BrokerRegistrationRequest, *, kraft_version: int
) -> bool:
    """Is a feature finalized at a level that the broker cannot live with?

    `kraft_version` is finalized in control records, which no image holds.
    """
    supported = {
        each.name: range(each.min_supported_version, each.max_supported_version + 1)
        for each in request.features
    }
    levels = {METADATA_VERSION: image.metadata_version, KRAFT_VERSION: kraft_version}
    unknown = {METADATA_VERSION: range(1, 2)}  # of a broker that does not name the feature
    return any(
        level not in supported.get(name, unknown.get(name, range(1)))
        for name, level in {**levels, **image.features}.items()
    )


# --- heartbeats -----------------------------------------------------------------------------


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @classmethod
    def of(cls, broker: BrokerImage) -> "BrokerState":
        if broker.fenced:
            return cls.FENCED
        return cls.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else cls.UNFENCED


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the log does not say of heartbeats."""

    shutdown_offset: int  # last offset of what moved this broker's leaderships away
    lowest_active_offset: int  # what every active broker has applied, inclusive


def decide_heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, config: ControllerConfig, heard: Heard
) -> Decision[BrokerHeartbeatResponse]:
    broker = present_life(image, request)
    if broker is None:
        stale = BrokerHeartbeatResponse(
            error_code=ErrorCode.STALE_BROKER_EPOCH, should_shut_down=False
        )
        return Decision(response=stale)
    may_go = request.want_shut_down or broker.in_controlled_shutdown
    leads = may_go and failover.leads_something(image, broker.id)
    state = next_state(broker, request, heard, leads_something=leads)
    changes = _transition(image, broker, state, config, leads_something=leads)
    if not changes and state is BrokerState.of(broker):
        changes = _offline_directories(image, broker, request, config)
    changes += _cordoned_directories(image, broker, request)
    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up(broker, request),
        is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=state is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(response=response, changes=changes, is_atomic=False)


def present_life(image: MetadataImage, request: BrokerHeartbeatRequest) -> BrokerImage | None:
    """The broker that sent a heartbeat, unless another process of it has registered since."""
    broker = image.brokers.get(request.broker_id)
    return broker if broker is not None and broker.epoch == request.broker_epoch else None


def is_caught_up(broker: BrokerImage, request: BrokerHeartbeatRequest) -> bool:
    """Has the broker applied its own registration? Not its epoch: that may be an earlier offset."""
    return request.current_metadata_offset >= broker.registered_at_offset


def next_state(
    broker: BrokerImage, request: BrokerHeartbeatRequest, heard: Heard, *, leads_something: bool
) -> BrokerState:
    match BrokerState.of(broker):
        case BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.SHUTDOWN_NOW
            may_run = not request.want_fence and is_caught_up(broker, request)
            return BrokerState.UNFENCED if may_run else BrokerState.FENCED
        case BrokerState.UNFENCED:
            if request.want_fence:
                wants_out = request.want_shut_down
                return BrokerState.SHUTDOWN_NOW if wants_out else BrokerState.FENCED
            if request.want_shut_down:
                moving = BrokerState.CONTROLLED_SHUTDOWN
                return moving if leads_something else BrokerState.SHUTDOWN_NOW
            return BrokerState.UNFENCED
        case _:
            # Others must know of their new leaders before the old one stops serving.
            known = heard.shutdown_offset <= heard.lowest_active_offset
            may_go = known and not leads_something
            return BrokerState.SHUTDOWN_NOW if may_go else BrokerState.CONTROLLED_SHUTDOWN


def _transition(
    image: MetadataImage,
    broker: BrokerImage,
    state: BrokerState,
    config: ControllerConfig,
    *,
    leads_something: bool,
) -> tuple[Change, ...]:
    now = BrokerState.of(broker)
    match state:
        case BrokerState.UNFENCED if now is BrokerState.FENCED:
            return (
                BrokerRegistrationChangeRecord(
                    broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1
                ),
                *failover.elect_with(image, broker.id, config),
            )
        case BrokerState.CONTROLLED_SHUTDOWN if now is BrokerState.UNFENCED:
            return (
                BrokerRegistrationChangeRecord(
                    broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
                ),
                *failover.leave_isrs(image, broker.id, config),
            )
        case BrokerState.CONTROLLED_SHUTDOWN if leads_something:
            # A controller died between the batches of the above: nobody else would go on with it.
            return failover.leave_isrs(image, broker.id, config)
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW if now is not BrokerState.FENCED:
            return fence(image, broker.id, config)
        case _:
            return ()


def _offline_directories(
    image: MetadataImage,
    broker: BrokerImage,
    request: BrokerHeartbeatRequest,
    config: ControllerConfig,
) -> tuple[Change, ...]:
    """Directories that were online, and that the broker now reports as failed."""
    lost = frozenset(request.offline_log_dirs) & frozenset(broker.log_dirs)
    if not lost:
        return ()
    remaining = tuple(directory for directory in broker.log_dirs if directory not in lost)
    if not remaining:
        # The record cannot say "none", so it says that what is left is lost.
        remaining = (DIRECTORY_LOST,)
    return (
        *failover.leave_directories(image, broker.id, lost, config),
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
        ),
    )


def _cordoned_directories(
    image: MetadataImage, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> tuple[Change, ...]:
    """Those that are to get no new replicas; a broker of before KIP-1066 tells none."""
    told = request.cordoned_log_dirs
    if image.metadata_version < CORDONED_DIRECTORIES or told is None:
        return ()
    if broker.cordoned_log_dirs is not None and set(told) == set(broker.cordoned_log_dirs):
        return ()
    return (
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=told
        ),
    )


def fence(
    image: MetadataImage,
    broker_id: int,
    config: ControllerConfig,
    *,
    one_by_one_max: int | None = None,
) -> tuple[Change, ...]:
    """Take an unfenced broker out of the ISRs, and record that it is gone.

    With `one_by_one_max` as in `failover.leave_isrs`: if that many changes were made, the
    broker may be in other ISRs still, and it is not recorded that it is gone.
    """
    broker = image.brokers[broker_id]
    assert not broker.fenced, f"broker {broker_id} is fenced already"
    changes = failover.leave_isrs(image, broker_id, config, one_by_one_max=one_by_one_max)
    if one_by_one_max is not None:
        made = sum(isinstance(each, PartitionChangeRecord) for each in changes)
        if made >= one_by_one_max:
            return changes
    return (
        *changes,
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=1),
    )


# --- unregistration -------------------------------------------------------------------------


def decide_unregister(
    image: MetadataImage, request: UnregisterBrokerRequest, config: ControllerConfig
) -> Decision[UnregisterBrokerResponse]:
    """Forget a broker. Partitions keep naming it as a replica until they are reassigned."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        return refused(request, Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    changes = (
        *failover.leave_isrs(image, broker.id, config, lost=True),
        UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch),
    )
    response = UnregisterBrokerResponse(error_message=None)
    return Decision(response=response, changes=changes, is_atomic=False)
