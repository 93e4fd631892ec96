"""A broker of a quorum registers with the active controller and follows the metadata log."""

from collections import deque
from collections.abc import Mapping
from random import Random

from broker.cluster import Incarnation
from broker.membership.alterations import Alterations
from broker.membership.assignments import Assignments
from broker.membership.controller_channel import ControllerChannel
from broker.membership.lifecycle import Lifecycle
from broker.membership.membership import Handler
from broker.membership.metadata import MetadataFollower
from broker.partition.isr_rules import EligibleReplicas
from broker.parts import BrokerParts
from broker.replicas import Replicas
from controller.metadata.delta import MetadataDelta
from quorum.core.application import MetadataLog
from quorum.core.effects import Event
from wire.primitives import random_uuid

__all__ = ["QuorumMembership"]


class QuorumMembership:
    always_served: tuple[type, ...] = ()

    def __init__(self, parts: BrokerParts, log: MetadataLog, random: Random) -> None:
        config, cluster = parts.config, parts.cluster
        self.parts = parts
        self.news: deque[MetadataDelta] = deque()  # none: every change is in the log
        self.controller = ControllerChannel(log, parts.outbox)
        self.incarnation = Incarnation(cluster, random_uuid(random))
        self.metadata = MetadataFollower(
            cluster=cluster, log=log, incarnation_id=self.incarnation.id
        )
        self.lifecycle = Lifecycle(
            config=config,
            controller=self.controller,
            outbox=parts.outbox,
            random=random,
            incarnation=self.incarnation,
            metadata=self.metadata,
            log_dirs=parts.log_dirs,
        )
        self.isr_keeper = Alterations(
            self.incarnation,
            self.controller,
            retry_backoff_ms=config.controller_retry_backoff_ms,
            timeout_ms=config.session_timeout_ms,
        )
        self.assignments = Assignments(
            self.incarnation,
            self.controller,
            retry_backoff_ms=config.controller_retry_backoff_ms,
            timeout_ms=config.session_timeout_ms,
        )
        rules = EligibleReplicas(cluster, config.replica_lag_time_max_ms)
        self.replicas = Replicas(parts, rules, self.assignments)

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        return routes

    def ready_to_unfence(self, now_ms: int) -> None:
        self.lifecycle.ready_to_unfence(now_ms)

    def tick_lifecycle(self, now_ms: int) -> None:
        self.lifecycle.tick(now_ms)

    def receive(self, event: Event, now_ms: int) -> None:
        raise AssertionError(f"no metadata log says {event}")

    def tick(self, now_ms: int) -> None:
        """The broker ticks the life-cycle and the ISR keeper."""
        self.assignments.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return self.assignments.deadline_ms()
