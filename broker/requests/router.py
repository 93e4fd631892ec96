"""The router gives each request to the part of the broker that answers its type.

Each part parses a request, asks partitions, coordinators or the image, waits if it has to, and
answers once. The broker tells the parts what has happened meanwhile: a partition has moved, or is
led elsewhere.
"""

from collections.abc import Callable, Mapping
from random import Random

from broker.config import BrokerConfig
from broker.membership.membership import Handler, Membership, Timed
from broker.partition.lag_watch import LagWatch
from broker.partition.leaders import Leaders
from broker.partition.partition import Partition
from broker.requests.administration import DESCRIBED, describe
from broker.requests.all_coordinators import AllCoordinators
from broker.requests.auto_creation import AutoCreation
from broker.requests.config_checks import ConfigChecks
from broker.requests.consumer_coordination import ConsumerCoordination
from broker.requests.coordination import Coordination
from broker.requests.deletions import Deletions
from broker.requests.described_producers import describe_producers
from broker.requests.fetching import Fetching
from broker.requests.forwarding import FORWARDED, Forwarding
from broker.requests.list_offsets import Offsets
from broker.requests.log_dir_changes import alter_replica_log_dirs
from broker.requests.log_dir_contents import describe_log_dirs
from broker.requests.producing import Producing
from broker.requests.sessions import FetchSessions
from broker.requests.transaction_markers import TransactionMarkers
from broker.requests.transactions import Transactions
from broker.requests.views import Views
from broker.waiting import Deadlines
from quorum.core.early_requests import EarlyRequests
from quorum.core.effects import Reply, Request
from wire.errors import ErrorCode
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from wire.messages.log_dirs import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from wire.messages.producing import ProduceRequest
from wire.messages.topics import DeleteRecordsRequest
from wire.messages.transactions import DescribeProducersRequest, WriteTxnMarkersRequest

__all__ = ["Router"]


class Router:
    def __init__(
        self,
        membership: Membership,
        *,
        leaders: Leaders,
        coordinators: AllCoordinators,
        deadlines: Deadlines,
        lag_watch: LagWatch,
        random: Random,
    ) -> None:
        parts, controller = membership.parts, membership.controller
        config, cluster, outbox = parts.config, parts.cluster, parts.outbox
        replicas = membership.replicas
        self._parts = parts
        self._replicas = replicas
        self._controller = controller
        self._producing = Producing(
            replicas=replicas,
            cluster=cluster,
            outbox=outbox,
            deadlines=deadlines,
            verifier=coordinators.verification,
        )
        self._transaction_markers = self._markers(coordinators, deadlines)
        self._deletions = Deletions(
            replicas=replicas, peers=cluster, outbox=outbox, deadlines=deadlines
        )
        self._offsets = Offsets(replicas=replicas, outbox=outbox)
        self.fetching = Fetching(
            replicas=replicas,
            leaders=leaders,
            cluster=cluster,
            outbox=outbox,
            deadlines=deadlines,
            sessions=_fetch_sessions(config, random, lag_watch),
        )
        self._forwarding = Forwarding(
            config=config, controller=controller, outbox=outbox, deadlines=deadlines
        )
        self._transactions = Transactions(
            cluster=cluster,
            coordinators=coordinators.transactions,
            group_coordinators=coordinators.groups,
            producer_ids=coordinators.producer_ids,
            outbox=outbox,
        )
        self._config_checks = ConfigChecks(
            cluster=cluster, outbox=outbox, forward=self._forwarding.handle
        )
        self.auto_creation = AutoCreation(cluster=cluster, controller=controller, outbox=outbox)
        self.views = Views(cluster=cluster, random=random, auto_creation=self.auto_creation)
        self._coordination = Coordination(
            config=config.groups,
            cluster=cluster,
            coordinators=coordinators.groups,
            transactions=coordinators.transactions,
            auto_creation=self.auto_creation,
            outbox=outbox,
            random=random,
        )
        self._consumer_coordination = ConsumerCoordination(
            config=config.groups,
            cluster=cluster,
            coordinators=coordinators.groups,
            outbox=outbox,
            random=random,
        )
        self.early_requests = EarlyRequests(outbox.emit, hold_max_ms=config.hold_max_ms)
        self.timed: tuple[Timed, ...] = (self._forwarding, self.early_requests)
        self.routes = membership.routes(self._routes())

    def _routes(self) -> Mapping[type, Handler]:
        views, cluster = self.views, self._parts.cluster
        described = self._answered_by(lambda request, _: describe(cluster, request.body))
        return {
            ProduceRequest: self._producing.handle,
            FetchRequest: self.fetching.handle,
            WriteTxnMarkersRequest: self._transaction_markers.handle,
            DescribeProducersRequest: self._answered_by(
                lambda request, _: describe_producers(
                    request.body, cluster=cluster, replicas=self._replicas
                )
            ),
            ListOffsetsRequest: self._offsets.list_offsets,
            DeleteRecordsRequest: self._deletions.handle,
            OffsetForLeaderEpochRequest: self._offsets.offset_for_leader_epoch,
            MetadataRequest: self._answered_by(views.metadata),
            DescribeClusterRequest: self._answered_by(lambda request, _: views.cluster(request)),
            DescribeTopicPartitionsRequest: self._answered_by(
                lambda request, _: views.topic_partitions(request)
            ),
            DescribeLogDirsRequest: self._of_log_dirs(describe_log_dirs),
            AlterReplicaLogDirsRequest: self._of_log_dirs(alter_replica_log_dirs),
            ApiVersionsRequest: self._answered_by(
                lambda _request, _: views.api_versions(self._controller.whereabouts.kraft_version)
            ),
            **dict.fromkeys(DESCRIBED, described),
            **self._coordination.routes,
            **self._consumer_coordination.routes,
            **self._transactions.routes,
            **dict.fromkeys(FORWARDED, self._forwarding.handle),
            **dict.fromkeys(
                (AlterConfigsRequest, IncrementalAlterConfigsRequest), self._config_checks.handle
            ),
        }

    def _markers(self, coordinators: AllCoordinators, deadlines: Deadlines) -> TransactionMarkers:
        return TransactionMarkers(
            replicas=self._replicas,
            outbox=self._parts.outbox,
            deadlines=deadlines,
            timeout_ms=self._parts.config.replica_socket_timeout_ms,
            transaction_ended=coordinators.transaction_ended,
        )

    def _of_log_dirs(self, answer: Callable[..., object]) -> Handler:
        parts, replicas = self._parts, self._replicas
        return self._answered_by(
            lambda request, _: answer(
                request.body, replicas=replicas, log_dirs=parts.log_dirs, config=parts.config
            )
        )

    def _answered_by(self, answer: Callable[[Request, int], object]) -> Handler:
        def handle(request: Request, now_ms: int) -> None:
            self._parts.outbox.emit(Reply(token=request.token, body=answer(request, now_ms)))

        return handle

    # --- what has happened ----------------------------------------------------------------------

    def progressed(self, partition: Partition) -> None:
        """The end or the high watermark of a led partition has moved."""
        self._producing.progressed(partition)
        self._transaction_markers.progressed(partition)
        self._deletions.progressed(partition)

    def lost(self, partition: Partition, error: ErrorCode) -> None:
        """The leader epoch has ended in which this broker led the partition."""
        self._producing.lost(partition, error)
        self._transaction_markers.lost(partition, error)
        self._deletions.lost(partition, error)


def _fetch_sessions(config: BrokerConfig, random: Random, lag_watch: LagWatch) -> FetchSessions:
    return FetchSessions(
        slots=config.session_cache_slots,
        eviction_ms=config.session_eviction_ms,
        random=random,
        lag_watch=lag_watch,
    )
