"""Membership by the metadata log: registered with the controller, heartbeats, AlterPartition."""

from collections.abc import Mapping
from random import Random

from broker.alterations import Alterations
from broker.isr_rules import EligibleReplicas
from broker.lifecycle import Lifecycle
from broker.membership import BrokerParts, Handler
from broker.metadata import MetadataFollower
from quorum.core.application import MetadataLog
from quorum.core.effects import Event

__all__ = ["QuorumMembership"]


class QuorumMembership:
    lifecycle: Lifecycle
    metadata: MetadataFollower
    isr_keeper: Alterations
    isr_rules: EligibleReplicas
    always_served: tuple[type, ...] = ()

    def __init__(self, log: MetadataLog, random: Random) -> None:
        self.whereabouts = log
        self._random = random

    def join(self, broker: BrokerParts) -> None:
        config = broker.config
        self.lifecycle = Lifecycle(
            config=config,
            controller=broker.controller,
            outbox=broker.outbox,
            random=self._random,
            entered=broker.entered,
            metadata_offset=lambda: self.metadata.published_offset,
            failed_log_dirs=lambda: broker.log_dirs.failed,
            published_epoch=broker.cluster.epoch_of,
        )
        self.metadata = MetadataFollower(
            cluster=broker.cluster,
            log=self.whereabouts,
            incarnation_id=lambda: self.lifecycle.incarnation_id,
        )
        self.isr_rules = EligibleReplicas(broker.cluster, config.replica_lag_time_max_ms)
        self.isr_keeper = Alterations(
            asker=broker.asker,
            controller=broker.controller,
            retry_backoff_ms=config.controller_retry_backoff_ms,
            timeout_ms=config.session_timeout_ms,
        )

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        return routes

    def receive(self, event: Event, now_ms: int) -> None:
        raise AssertionError(f"no metadata log says {event}")

    def tick(self, now_ms: int) -> None:
        """What is due is the life-cycle's, and the ISR keeper's."""

    def deadline_ms(self) -> int | None:
        return None
