"""A cluster of processes for one experiment: requests to it, and faults in it.

Every wait calls `check` again and again, which raises when the time of the experiment is up. `cell`
starts the cluster and throws it away.
"""

import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from jepsen_like.real.client_settings import ClientSettings
from jepsen_like.real.kafka_client import Client, refusal
from jepsen_like.real.layout import Address, ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import end
from quorumlab import cluster_status
from quorumlab.client_properties import broker_settings
from quorumlab.compare.client import MeasuringClient
from quorumlab.compare.experiments import (
    DATA_MAX,
    Experiment,
    Topic,
    creation,
    placement,
    topics_for,
)
from quorumlab.compare.node_measurements import Counts, Milestone, milestone_of, phases_of
from quorumlab.compare.subjects import Subject
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from wire.messages.metadata import MetadataResponsePartition as Described
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

__all__ = ["GaveUp", "Stage", "beside"]

_CALM_SECONDS = 1.0
_POLL_SECONDS = 0.02
_PAGE_SECONDS = 10.0
_APPLIED_SECONDS = 0.25
_TRY_MS = 150  # short: whoever has no controller yet makes nobody wait
_GRACE_SECONDS = 5.0

Result = TypeVar("Result")


class GaveUp(Exception):
    """The time of an experiment is over; the message says how far it was."""


def beside(call: Callable[[], Result]) -> Future[Result]:
    """Runs the call in a thread that nobody has to wait for."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(call)
    finally:
        pool.shutdown(wait=False)


class Stage:
    def __init__(
        self,
        cluster: LocalCluster,
        subject: Subject,
        experiment: Experiment,
        partitions: int,
        seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self.cluster = cluster
        self.subject = subject
        self.experiment = experiment
        self.partitions = partitions
        self.topics: list[Topic] = list(topics_for(placement(experiment, partitions)))
        self.client: MeasuringClient | None = None
        self.distrusted: Collection[int] = ()  # brokers: what they know may be of long ago
        self._failed_nodes: set[int] = set()
        self._fault_ns: int | None = None
        self._affected: Sequence[int] = range(partitions)
        self._causes: Sequence[str] = ("topic",)  # at first, all that is new has to be served
        self._began = time.monotonic()
        self._deadline = self._began + seconds
        self._say = say

    @property
    def has_data(self) -> bool:
        return self.partitions <= DATA_MAX

    def check(self, how_far: str) -> None:
        self._say(how_far)
        for gone in self.cluster.exited():
            if gone.node_id not in self._failed_nodes:
                lines = "\n  ".join(gone.last_lines)
                raise ClusterError(f"node {gone.node_id} ended by itself:\n  {lines}")
        if time.monotonic() > self._deadline:
            raise self._late(how_far)

    def _late(self, how_far: str) -> GaveUp:
        """It has taken too long, for us or for the cluster itself."""
        seconds = time.monotonic() - self._began
        since = "before anything was done to it"
        if self._fault_ns is not None:
            since = f"{(time.monotonic_ns() - self._fault_ns) / 1e9:.0f} of them since the fault"
        return GaveUp(f"after {seconds:.0f} s, {since}: {how_far}")

    def wait(
        self, condition: Callable[[], Result], what: str, pause: float = _POLL_SECONDS
    ) -> Result:
        """Waits until the condition holds, and returns what it found."""
        while not (found := condition()):
            self.check(what)
            time.sleep(pause)
        return found

    def patiently(self, call: Callable[[], Result], what: str) -> Result:
        """Waits for a call that blocks; meanwhile, `check` is told `what`."""
        future = beside(call)
        while not wait([future], _POLL_SECONDS).done:
            self.check(what)
        return future.result()

    @cached_property
    def settings(self) -> ClientSettings:
        """How the brokers are asked; its files are there once the cluster is secured."""
        return broker_settings(self.cluster.layout)

    def _client(self, address: Sequence[Address], timeout_seconds: float) -> Client:
        return Client(address, timeout_seconds, settings=self.settings)

    # --- the cluster --------------------------------------------------------------------

    @property
    def brokers(self) -> tuple[NodeLayout, ...]:
        """The brokers that run."""
        running = self.cluster.running()
        return tuple(node for node in self.cluster.layout.brokers if node.id in running)

    def active_controller(self) -> int | None:
        return cluster_status.active_controller(self.cluster)

    def kill(self, node_id: int) -> None:
        self._failed_nodes.add(node_id)
        self.cluster.kill(node_id)
        if self.client is not None and self._fault_ns is not None:
            # What was acknowledged between the mark and the death tells nothing of what came after.
            self.client.mark(self._fault_ns, tuple(self.distrusted))

    def stop(self, node_id: int) -> None:
        """Stops a node in good order, and blocks until its process is gone, however long that
        takes."""
        self._failed_nodes.add(node_id)
        process = self.cluster.process(self.cluster.layout.node(node_id))
        assert process is not None, node_id
        if not end(process, how=signal.SIGTERM, timeout_seconds=self.patience_seconds):
            raise self._late(f"node {node_id} does not stop")

    @property
    def patience_seconds(self) -> float:
        """Returns how long to wait for one answer: longer than is left, so that `check` ends the
        wait."""
        return max(0.0, self._deadline - time.monotonic()) + _GRACE_SECONDS

    # --- topics -------------------------------------------------------------------------

    def create_topics(self) -> None:
        """Answered when this returns; that they have leaders, the client finds out."""
        asked = self._who_creates()
        for number, topic in enumerate(self.topics):
            what = f"creating topic {number + 1} of {len(self.topics)}"
            timeout_ms = round(1000 * self.patience_seconds)
            answer = self.ask(creation(topic, timeout_ms), CreateTopicsResponse, what, asked)
            told = answer.topics[0]
            if told.error_code is ErrorCode.REQUEST_TIMED_OUT:
                raise self._late(f"{what}: REQUEST_TIMED_OUT")
            if told.error_code is not ErrorCode.NONE:
                why = refusal(told.error_code, told.error_message)
                raise ClusterError(f"cannot create {topic.name}: {why}")
            self.topics[number] = replace(topic, id=told.topic_id)

    def _who_creates(self) -> Sequence[NodeLayout]:
        """Returns any broker; but for very many partitions the controller, where that is a broker:
        others ask it, and wait a minute at most."""
        active = None if self.has_data else self.active_controller()
        return [node for node in self.brokers if node.id == active] or self.brokers

    def ask(
        self, request: object, expected: type[Result], what: str, of: Sequence[NodeLayout] = ()
    ) -> Result:
        """One of these brokers, or any that lives, for as long as there is time."""
        address = [(node.host, node.port) for node in of or self.brokers]

        def ask() -> Result:
            with self._client(address, self.patience_seconds) as client:
                return client.ask(request, expected)

        return self.patiently(ask, what)

    def begin_serving(self) -> None:
        """Waits until every partition has taken a record, or every broker knows of all."""
        if self.has_data:
            self.client = MeasuringClient(
                self.cluster.layout.brokers, self.topics, settings=self.settings
            )
            if self._fault_ns is not None:
                self.client.mark(self._fault_ns)
            self.client.start()
        self.wait_served()

    # --- the fault ----------------------------------------------------------------------

    def led_by(self, broker: int) -> list[int]:
        """The client has found the leaders; without one they are as placed, for a controller keeps
        to that."""
        if self.client is not None:
            return self.client.led_by(broker)
        if not self.subject.has_controller:
            return [number for number, leader in self._leaders().items() if leader == broker]
        placed = placement(self.experiment, self.partitions)
        return [number for number, replicas in enumerate(placed) if replicas[0] == broker]

    def _leaders(self) -> dict[int, int]:
        """Asks a broker for the leader of each partition: where replicas elect, it has to read
        each."""
        found = {}
        for topic in self.topics:
            answer = self.ask(_about([topic.name]), MetadataResponse, f"who leads {topic.name}")
            for told in answer.topics:
                for each in told.partitions:
                    found[topic.first + each.partition_index] = each.leader_id
        return found

    def counted(self, affected: Sequence[int]) -> int:
        """Returns how many partitions milestones have to count. A controller also removes the
        failed broker from every ISR."""
        return self.partitions if affected and self.subject.has_controller else len(affected)

    def mark(self, *, failed_nodes: Sequence[int] = (), affected: Sequence[int] = ()) -> int:
        """The fault happens now; returns when that is."""
        now_ns = time.monotonic_ns()
        self._fault_ns, self._affected, self._causes = now_ns, affected, self.experiment.causes
        self.distrusted = failed_nodes
        if self.client is not None:
            self.client.mark(now_ns, failed_nodes)
        return now_ns

    def wait_served(self) -> None:
        """Waits until every partition has taken a record since the mark. Without data, it waits
        until every living broker has applied what became of the affected ones."""
        if self.client is not None:
            self.client.wait_written(self.check)
        elif self._affected:
            self.wait_applied()

    def wait_applied(self) -> None:
        """Waits until every living broker has applied what became of the affected partitions."""
        self.wait(self._have_all_applied, "not yet applied by every broker", _APPLIED_SECONDS)

    def _have_all_applied(self) -> bool:
        found = phases_of(
            self.milestones(),
            fault_ns=self._fault_ns or 0,
            partitions=self.counted(self._affected),
            brokers=[node.id for node in self.brokers],
            causes=self._causes,
        )
        return "applied" in found and found["applied"].done_ms is not None

    def calm(self) -> None:
        """Gives time to what goes on behind the first writes."""
        self.pass_time(_CALM_SECONDS, "waiting for calm")

    def pass_time(self, seconds: float, what: str) -> None:
        until = time.monotonic() + seconds
        self.wait(lambda: time.monotonic() > until, what)

    def try_to_create(self, name: str) -> bool:
        """A topic of one partition, asked for once, of any broker that lives. Is it there?"""
        for node in self.brokers:
            placed = CreatableReplicaAssignment(partition_index=0, broker_ids=(node.id,))
            request = CreateTopicsRequest(
                topics=(CreatableTopic(name=name, assignments=(placed,)),), timeout_ms=_TRY_MS
            )
            try:
                with self._client([(node.host, node.port)], 2 * _TRY_MS / 1000) as client:
                    told = client.ask(request, CreateTopicsResponse).topics[0]
            except ClusterError:
                continue
            if told.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return True
        return False

    def described(self, names: Sequence[str] = ()) -> Iterator[Described]:
        """Every partition of the experiment's topics (or of `names`), as a living broker tells
        that was there all the time."""
        request = _about(names or [topic.name for topic in self.topics])
        asked = [node for node in self.brokers if node.id not in self.distrusted]
        address = [(node.host, node.port) for node in asked]
        try:
            with self._client(address, _PAGE_SECONDS) as client:
                answer = client.ask(request, MetadataResponse)
        except ClusterError:
            return
        for topic in answer.topics:
            yield from topic.partitions

    # --- what nodes say of themselves ---------------------------------------------------

    def milestones(self) -> list[Milestone]:
        """The milestones of all nodes that live."""
        found = []
        for node_id, page in self._pages("/v1/milestones").items():
            found += [milestone_of(node_id, each) for each in page.get("milestones", ())]
        return found

    def counts(self) -> dict[int, Counts]:
        return {node: page.get("counts", {}) for node, page in self._pages("/v1/ledger").items()}

    def roles(self) -> dict[int, str]:
        return {
            node.id: "brokers" if node.is_broker else "controllers"
            for node in self.cluster.layout.nodes
        }

    def _pages(self, path: str) -> dict[int, Mapping[str, Any]]:
        """Asks every node that runs: a sum from which one is missing would be too small."""
        found: dict[int, Mapping[str, Any]] = {}

        def have_all_told() -> bool:
            running = self.cluster.running()
            for node in self.cluster.layout.nodes:
                if node.id not in running or node.id in found:
                    continue
                if page := self.cluster.page(node, path, _PAGE_SECONDS):
                    found[node.id] = page
            return running.keys() <= found.keys()

        self.wait(have_all_told, f"not every node tells {path}")
        return found


def _about(topics: Sequence[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in topics),
        allow_auto_topic_creation=False,
    )
