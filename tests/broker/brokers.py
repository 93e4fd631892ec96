"""Real broker cores back to back, on a disk and a network in memory and a scripted controller.

The controller here is no rule under test: it appends the records it is told to, as real encoded
batches, and answers what brokers ask in the simplest way that Kafka's would.
"""

from collections import Counter, deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any
from uuid import UUID

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.membership.lifecycle import BrokerState
from broker.partition.partition import LeaderOf, Partition
from controller.metadata.changes import encode_changes
from quorum.core.config_effects import CheckConfigs, ConfigsChanged, ConfigsChecked
from quorum.core.effects import (
    Effect,
    Event,
    Failure,
    HangUp,
    Reply,
    Request,
    RequestFailed,
    Response,
    Send,
    Stop,
    Stored,
    Token,
    Trace,
)
from quorum.core.types import Endpoint, LeaderAndEpoch
from tests.broker.memory_disk import Disk
from wire import metadata_records as records
from wire.batch import Record, assign, build_batch, read_header, records_of
from wire.capabilities import NOTHING_LACKING, lacking
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from wire.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryPartitionResult,
    DirectoryResult,
    DirectoryTopicResult,
)
from wire.messages.partitions import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrPartition,
    IsrPartitionResult,
    IsrTopicResult,
)
from wire.messages.producing import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    RegisteredListener,
)
from wire.primitives import ZERO_UUID

CONTROLLER = 100
NO_LEADER = -1
METADATA_VERSION = 25
LISTENER = "PLAINTEXT"
CONSUMER = ReplicaState()
CLUSTER_ID = "tests-cluster"


class Followed:
    """The metadata log as a broker's engine shows it."""

    def __init__(self, node_id: int, cluster: "Brokers") -> None:
        self._node_id = node_id
        self._cluster = cluster

    @property
    def node_id(self) -> int:
        return self._node_id

    @property
    def leader(self) -> LeaderAndEpoch:
        return LeaderAndEpoch(CONTROLLER if self._cluster.has_controller else None, 1)

    @property
    def high_watermark(self) -> int | None:
        return self._cluster.metadata_end

    @property
    def end_offset(self) -> int:
        return self._cluster.metadata_end

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return Endpoint(node_id, "controller", 9093) if node_id == CONTROLLER else None

    def append(self, batch: bytes, now_ms: int) -> int:
        raise AssertionError("brokers do not append to the metadata log")

    def resign(self, now_ms: int) -> None:
        raise AssertionError("brokers do not lead the metadata log")

    @property
    def kraft_version(self) -> int:
        return 0

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return (CONTROLLER,)

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        raise AssertionError("brokers do not lead the metadata log")


class Brokers:
    """Brokers 1 to `count`, unfenced once `start` returns."""

    def __init__(self, count: int = 3, **settings: Any) -> None:
        self.now_ms = 1_000_000
        self.settings = settings
        self.has_controller = True
        self.metadata: list[bytes] = []
        self.metadata_end = 0
        self.brokers: dict[int, Broker] = {}
        self.disks = {node_id: Disk() for node_id in range(1, count + 1)}
        self.log_dirs: dict[int, tuple[UUID, ...]] = {}  # of brokers that have several
        self.cut: set[tuple[int, int]] = set()  # (from, to): requests are lost on the way
        self.deaf: set[int] = set()  # brokers that hear nothing new of the metadata log
        self.answers: dict[int, object] = {}
        self.config_problem: str | None = None  # with whatever configs are tried
        self.hung_up: set[int] = set()  # requests whose connections were closed
        self.stops: dict[int, Stop] = {}
        self.traces: list[tuple[int, Trace]] = []
        self.configs_told: list[tuple[int, dict[str, str]]] = []
        self.asked: list[object] = []  # of the controller
        self.fetches: Counter[int] = Counter()  # by the broker that has sent them
        self.answer_alteration: Callable[[AlterPartitionRequest], object] | None = None
        self.epochs: dict[int, int] = {}
        self.fenced: set[int] = set()
        self.states: dict[tuple[UUID, int], records.PartitionRecord] = {}
        self.topics: dict[str, UUID] = {}
        self.held: list[tuple[Send, int]] = []  # requests to the controller that wait
        self.holds_controller = False
        self.loses_answers = False  # of the controller: it has done what it was asked
        self.latency_ms: Callable[[], int] = lambda: 0  # of a message, one way
        self.rewrite_ms = 0  # of a truncation or a new beginning
        self._events: deque[tuple[int, Event]] = deque()
        self._later: list[tuple[int, int, int, Event]] = []  # due, number, node, event
        self._tokens = 0
        self._origin: dict[int, tuple[int, Token, int]] = {}  # asker, its token, asked
        self._delivered: dict[int, int] = {}
        self.write(records.FeatureLevelRecord(name="metadata.version", feature_level=25))

    # --- driving

    def start(self, *node_ids: int) -> "Brokers":
        for node_id in node_ids or tuple(self.disks):
            listener = RegisteredListener(
                name=LISTENER, host=f"b{node_id}", port=9092, security_protocol=0
            )
            disk = self.disks[node_id]
            directories = self.log_dirs.get(node_id, (UUID(int=1000 + node_id),))
            config = BrokerConfig(
                node_id=node_id,
                cluster_id=CLUSTER_ID,
                listeners=(listener,),
                log_dirs=tuple(each for each in directories if each not in disk.failed),
                has_offline_log_dirs=bool(disk.failed),
                **self.settings,
            )
            log = Followed(node_id, self)
            incarnation = Random(f"{node_id}/{self.now_ms}")
            self.brokers[node_id] = Broker.of_quorum(config, log, incarnation, disk.found)
            self._delivered[node_id] = 0
            self.stops.pop(node_id, None)
        for _ in range(20):
            self.run(20)
        for node_id in node_ids or tuple(self.disks):
            state = self.brokers[node_id].lifecycle.state
            assert state is BrokerState.RUNNING or node_id in self.deaf, node_id
        return self

    def kill(self, node_id: int) -> None:
        """As kill -9: what it was asked fails, what it asked is forgotten."""
        del self.brokers[node_id]
        for request, (asker, token, to) in tuple(self._origin.items()):
            if to == node_id:
                del self._origin[request]
                failed = RequestFailed(token=token, failure=Failure.DISCONNECTED)
                self._events.append((asker, failed))
            elif asker == node_id:
                del self._origin[request]
        self._events = deque(item for item in self._events if item[0] != node_id)
        self._later = [item for item in self._later if item[2] != node_id]
        heapify(self._later)

    def settle(self) -> None:
        """Until nothing is under way."""
        for _ in range(10_000):
            for node_id, broker in tuple(self.brokers.items()):
                self._deliver_metadata(node_id, broker)
                for effect in broker.take_effects():
                    self._perform(node_id, effect)
            if not self._events:
                return
            node_id, event = self._events.popleft()
            if node_id in self.brokers:
                self.brokers[node_id].receive(event, self.now_ms)
        raise AssertionError("never quiet")

    def run(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        self.settle()
        while (next_ms := self._next_ms()) <= until_ms:
            self.now_ms = max(self.now_ms, next_ms)
            while self._later and self._later[0][0] <= self.now_ms:
                _, _, node_id, event = heappop(self._later)
                self._events.append((node_id, event))
            for broker in tuple(self.brokers.values()):
                broker.tick(self.now_ms)
            self.settle()
            if self.now_ms == until_ms and self._next_ms() <= until_ms:
                self.now_ms += 1  # a broker that asks for a tick at once, for ever, would hang us
                until_ms += 1
        self.now_ms = until_ms
        self.settle()

    def _next_ms(self) -> int:
        due = [broker.deadline_ms() for broker in self.brokers.values()]
        due.append(self._later[0][0] if self._later else None)
        return min((at for at in due if at is not None), default=1 << 62)

    def _arrive(self, node_id: int, event: Event) -> None:
        """A message comes in, after the time that it takes."""
        latency_ms = self.latency_ms()
        if latency_ms:
            self._come(node_id, event, latency_ms)
        else:
            self._events.append((node_id, event))

    def _come(self, node_id: int, event: Event, in_ms: int) -> None:
        self._tokens += 1
        heappush(self._later, (self.now_ms + in_ms, self._tokens, node_id, event))

    def _deliver_metadata(self, node_id: int, broker: Broker) -> None:
        while node_id not in self.deaf and self._delivered[node_id] < len(self.metadata):
            batch = self.metadata[self._delivered[node_id]]
            self._delivered[node_id] += 1
            broker.committed(batch, read_header(batch).next_offset, self.now_ms)

    def skip_metadata(self, node_id: int) -> None:
        """What the log holds by now came to the broker in a snapshot."""
        self._delivered[node_id] = len(self.metadata)

    def _perform(self, node_id: int, effect: Effect) -> None:
        match effect:
            case Trace():
                self.traces.append((node_id, effect))
            case CheckConfigs():
                checked = ConfigsChecked(token=effect.token, problem=self.config_problem)
                self._events.append((node_id, checked))
            case ConfigsChanged():
                self.configs_told.append((node_id, dict(effect.values)))
            case Stop():
                self.stops[node_id] = effect
                self.brokers.pop(node_id, None)
            case Reply():
                self._reply(effect)
            case HangUp():
                self.hung_up.add(effect.token)
            case Send():
                self._send(node_id, effect)
            case _:
                event = self.disks[node_id].perform(effect)
                if isinstance(event, Stored) and self.rewrite_ms:
                    self._come(node_id, event, self.rewrite_ms)
                elif event is not None:
                    self._events.append((node_id, event))

    def _reply(self, reply: Reply) -> None:
        origin = self._origin.pop(reply.token, None)
        if origin is None:
            assert reply.token not in self.answers, f"request {reply.token} is answered twice"
            self.answers[reply.token] = reply.body
        elif reply.body is not None:
            node_id, token, _ = origin
            self._arrive(node_id, Response(token=token, body=reply.body))

    def _send(self, node_id: int, send: Send) -> None:
        to = send.to.node_id
        if to == CONTROLLER and self.holds_controller:
            self.held.append((send, node_id))
        elif (node_id, to) in self.cut or (to != CONTROLLER and to not in self.brokers):
            failed = RequestFailed(token=send.token, failure=Failure.DISCONNECTED)
            self._events.append((node_id, failed))
        elif to == CONTROLLER:
            answer: Event = Response(token=send.token, body=self._control(send))
            if self.loses_answers:
                answer = RequestFailed(token=send.token, failure=Failure.TIMED_OUT)
            self._arrive(node_id, answer)
        else:
            self.fetches[node_id] += isinstance(send.body, FetchRequest)
            self._tokens += 1
            self._origin[self._tokens] = (node_id, send.token, to)
            request = Request(token=self._tokens, body=send.body, listener=LISTENER)
            self._arrive(to, request)

    def release_controller(self) -> None:
        self.holds_controller = False
        held, self.held = self.held, []
        for send, node_id in held:
            self._send(node_id, send)
        self.settle()

    # --- the controller

    def write(self, *changes: records.MetadataRecord) -> None:
        batch = encode_changes(changes, timestamp_ms=self.now_ms, metadata_version=METADATA_VERSION)
        self.metadata.append(assign(batch, base_offset=self.metadata_end, leader_epoch=1))
        self.metadata_end = read_header(self.metadata[-1]).next_offset

    def _control(self, send: Send) -> object:
        self.asked.append(send.body)
        match send.body:
            case BrokerRegistrationRequest() as body:
                return self._register(body)
            case BrokerHeartbeatRequest() as body:
                return self._heartbeat(body)
            case AlterPartitionRequest() as body:
                if self.answer_alteration is not None:
                    return self.answer_alteration(body)
                return self.alter_partition(body)
            case AssignReplicasToDirsRequest() as body:
                return self._assign_replicas(body)
            case AllocateProducerIdsRequest():
                return AllocateProducerIdsResponse(producer_id_start=7000, producer_id_len=1000)
            case other:
                raise AssertionError(f"the scripted controller does not answer {other}")

    def _assign_replicas(self, body: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        """Told, and taken note of by nobody."""
        return AssignReplicasToDirsResponse(
            directories=tuple(
                DirectoryResult(
                    id_=directory.id_,
                    topics=tuple(
                        DirectoryTopicResult(
                            topic_id=topic.topic_id,
                            partitions=tuple(
                                DirectoryPartitionResult(partition_index=each.partition_index)
                                for each in topic.partitions
                            ),
                        )
                        for topic in directory.topics
                    ),
                )
                for directory in body.directories
            )
        )

    def _register(self, body: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        epoch = self.metadata_end
        self.epochs[body.broker_id] = epoch
        self.fenced.add(body.broker_id)
        self.write(
            records.RegisterBrokerRecord(
                broker_id=body.broker_id,
                incarnation_id=body.incarnation_id,
                broker_epoch=epoch,
                end_points=tuple(
                    records.BrokerEndpoint(
                        name=item.name,
                        host=item.host,
                        port=item.port,
                        security_protocol=item.security_protocol,
                    )
                    for item in body.listeners
                ),
                features=(),
                rack=body.rack,
                fenced=True,
                log_dirs=body.log_dirs,
            )
        )
        return BrokerRegistrationResponse(broker_epoch=epoch)

    def _heartbeat(self, body: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        node_id = body.broker_id
        if body.broker_epoch != self.epochs[node_id]:
            return BrokerHeartbeatResponse(
                error_code=ErrorCode.STALE_BROKER_EPOCH, should_shut_down=False
            )
        caught_up = body.current_metadata_offset >= self.epochs[node_id]
        if body.want_shut_down:
            return BrokerHeartbeatResponse(is_caught_up=caught_up, should_shut_down=True)
        if caught_up and not body.want_fence and node_id in self.fenced:
            self.unfence(node_id)
        return BrokerHeartbeatResponse(
            is_caught_up=caught_up, is_fenced=node_id in self.fenced, should_shut_down=False
        )

    def unfence(self, node_id: int) -> None:
        self.fenced.discard(node_id)
        self._change_broker(node_id, -1)

    def fence(self, node_id: int) -> None:
        self.fenced.add(node_id)
        self._change_broker(node_id, 1)

    def _change_broker(self, node_id: int, fenced: int) -> None:
        self.write(
            records.BrokerRegistrationChangeRecord(
                broker_id=node_id, broker_epoch=self.epochs[node_id], fenced=fenced
            )
        )

    def create_topic(
        self, name: str, *assignments: tuple[int, ...], number: int = 0, **configs: str
    ) -> UUID:
        """Each assignment is a partition: its replicas, all in sync, led by the first."""
        topic_id = UUID(int=number or 0xABC000 + len(self.topics))
        self.topics[name] = topic_id
        changes: list[records.MetadataRecord] = [records.TopicRecord(name=name, topic_id=topic_id)]
        for key, value in configs.items():
            changes.append(
                records.ConfigRecord(
                    resource_type=2, resource_name=name, name=key.replace("_", "."), value=value
                )
            )
        for index, replicas in enumerate(assignments):
            state = records.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=tuple(UUID(int=1000 + replica) for replica in replicas),
            )
            self.states[(topic_id, index)] = state
            changes.append(state)
        self.write(*changes)
        self.settle()
        return topic_id

    def delete_topic(self, name: str) -> None:
        self.write(records.RemoveTopicRecord(topic_id=self.topics.pop(name)))
        self.settle()

    def configure(self, topic: str, key: str, value: str | None) -> None:
        self.write(
            records.ConfigRecord(resource_type=2, resource_name=topic, name=key, value=value)
        )
        self.settle()

    def change(
        self, topic: str, index: int, *, isr: tuple[int, ...] | None = None, leader: int = -2
    ) -> None:
        """A PartitionChange record; `leader` -2 leaves the leader, -1 means nobody."""
        topic_id = self.topics[topic]
        before = self.states[(topic_id, index)]
        self.write(
            records.PartitionChangeRecord(
                partition_id=index, topic_id=topic_id, isr=isr, leader=leader
            )
        )
        self.states[(topic_id, index)] = records.PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=before.replicas,
            isr=before.isr if isr is None else isr,
            leader=before.leader if leader == -2 else leader,
            leader_epoch=before.leader_epoch + (leader != -2),
            partition_epoch=before.partition_epoch + 1,
            directories=before.directories,
        )
        self.settle()

    def alter_partition(self, body: AlterPartitionRequest) -> AlterPartitionResponse:
        topics = []
        for topic in body.topics:
            results = tuple(self._alter(topic.topic_id, asked) for asked in topic.partitions)
            topics.append(IsrTopicResult(topic_id=topic.topic_id, partitions=results))
        return AlterPartitionResponse(topics=tuple(topics))

    def _alter(self, topic_id: UUID, asked: IsrPartition) -> IsrPartitionResult:
        state = self.states[(topic_id, asked.partition_index)]
        if asked.partition_epoch < state.partition_epoch:
            return IsrPartitionResult(
                partition_index=asked.partition_index,
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                leader_id=-1,
                leader_epoch=-1,
                partition_epoch=-1,
            )
        isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
        name = next(name for name, known in self.topics.items() if known == topic_id)
        if set(isr) != set(state.isr):
            self.write(
                records.PartitionChangeRecord(
                    partition_id=asked.partition_index, topic_id=topic_id, isr=isr
                )
            )
            state = records.PartitionRecord(
                partition_id=asked.partition_index,
                topic_id=topic_id,
                replicas=state.replicas,
                isr=isr,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch + 1,
                directories=state.directories,
            )
            self.states[(topic_id, asked.partition_index)] = state
        assert name
        return IsrPartitionResult(
            partition_index=asked.partition_index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            isr=isr,
            partition_epoch=state.partition_epoch,
        )

    # --- clients

    def ask(
        self,
        node_id: int,
        body: object,
        *,
        api_version: int | None = None,
        client_id: str | None = None,
    ) -> int:
        """Send a request and let everything settle; its answer may come later."""
        self._tokens += 1
        token = self._tokens
        request = Request(
            token=token,
            body=body,
            listener=LISTENER,
            lacking=NOTHING_LACKING if api_version is None else lacking(type(body), api_version),
            client_id=client_id,
        )
        self.brokers[node_id].receive(request, self.now_ms)
        self.settle()
        return token

    def answer(self, token: int) -> Any:
        assert token in self.answers, f"request {token} has not been answered"
        return self.answers[token]

    def call(self, node_id: int, body: object, *, api_version: int | None = None) -> Any:
        return self.answer(self.ask(node_id, body, api_version=api_version))

    def produce(
        self, node_id: int, topic: str, index: int, records_: bytes, *, acks: int = -1
    ) -> int:
        return self.ask(node_id, produce_request(topic, index, records_, acks=acks))

    def produced(self, token: int) -> PartitionProduceResponse:
        result: PartitionProduceResponse = self.answer(token).responses[0].partition_responses[0]
        return result

    def partition(self, node_id: int, topic: str, index: int) -> Partition:
        found = self.brokers[node_id].replicas.find(topic, UUID(int=0), index)
        assert isinstance(found, Partition), found
        return found

    def leader_role(self, node_id: int, topic: str, index: int) -> LeaderOf:
        role = self.partition(node_id, topic, index).role
        assert isinstance(role, LeaderOf), role
        return role

    def ends(self, topic: str, index: int) -> dict[int, tuple[int, int]]:
        """Log end offset and high watermark on every broker that has the partition."""
        found = {}
        for node_id, broker in self.brokers.items():
            partition = broker.replicas.find(topic, UUID(int=0), index)
            if isinstance(partition, Partition) and partition.log is not None:
                found[node_id] = (partition.log.end_offset, partition.log.high_watermark)
        return found

    def values(self, node_id: int, topic: str, index: int) -> list[bytes | None]:
        """What lies in the log, by value."""
        log = self.disks[node_id].logs[f"{topic}-{index}"]
        return [record.value for batch in log.batches for record in records_of(batch)]


def batch_of(*values: bytes, timestamp_ms: int = 1_000_000, **fields: Any) -> bytes:
    return build_batch(
        [Record(value=value) for value in values], timestamp_ms=timestamp_ms, **fields
    )


def produce_request(
    topic: str, index: int, records_: bytes | None, *, acks: int = -1, timeout_ms: int = 1000
) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=records_)
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )


def fetch_request(
    topic: str,
    index: int,
    offset: int,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    replica: ReplicaState = CONSUMER,
    topic_id: UUID = ZERO_UUID,
    **fields: Any,
) -> FetchRequest:
    partition = FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        **fields,
    )
    return FetchRequest(
        replica_state=replica,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=(partition,)),),
    )
