"""The controller's requests overtake a backlog of client requests, where the design has it so."""

from collections import deque

import pytest

from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import Message
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Event, Request
from quorum.core.inbox import is_control
from tests.sim.zookeeper import Administrator, Producer, Scene, begin
from wire.api_table import APIS, CONTROL_RPCS
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import FetchRequest, ReplicaState
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.zk import paths
from wire.zk.control_rpc import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, Design
from wire.zk.session import Create
from wire.zk.switches import without

PRIORITISED = (LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)
BACKLOG = 100  # requests of clients, more than a turn takes


class Crowded(Observer):
    """A broker that a command reaches only when `BACKLOG` requests of clients wait there.

    `overtaken`: by command, how many of these the broker was given after it.
    """

    received_kinds = (*PRIORITISED, MetadataRequest)

    def __init__(self, cluster: Scene, node: int) -> None:
        self._cluster, self._host = cluster, cluster.hosts[node]
        self._clients = Producer(cluster)
        self._commands: deque[Message] = deque()
        self._given: list[type] = []
        self.overtaken: dict[type, list[int]] = {each: [] for each in PRIORITISED}
        cluster.world.observe(self)
        cluster.network.takes = self._takes

    def _takes(self, message: Message) -> bool:
        is_command = message.target == self._host.node_id and isinstance(message.body, PRIORITISED)
        if is_command:
            self._commands.append(message)
        return is_command

    def received(self, host: Host, event: Event) -> None:
        if host is self._host and isinstance(event, Request):
            self._given.append(type(event.body))

    def run(self, ms: int) -> None:
        for _ in range(ms // 10):
            self._cluster.run(10)
            while self._commands:
                self._crowd(self._commands.popleft())

    def _crowd(self, command: Message) -> None:
        cluster, host = self._cluster, self._host
        host.pause()
        told = [self._clients.ask(host.node_id, MetadataRequest()) for _ in range(BACKLOG)]
        cluster.run_until(lambda: len(host.waiting.clients) == BACKLOG)
        cluster.network.schedule(command, 0)
        cluster.run(1)
        self._given.clear()
        host.resume()
        cluster.run_until(lambda: all(told))
        assert all(isinstance(answer, MetadataResponse) for (answer,) in told)
        place = self._given.index(type(command.body))
        self.overtaken[type(command.body)].append(self._given[place:].count(MetadataRequest))


def overtaken(design: Design) -> dict[type, list[int]]:
    """A topic is created and deleted, of which a crowded broker has a replica."""
    cluster = begin(design)
    admin = Administrator(cluster)
    follower = cluster.others[0]
    crowded = Crowded(cluster, follower)
    admin.create_topic("t", {0: (1, 2, 3)})
    crowded.run(300)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
    crowded.run(300)
    assert admin.children(paths.DELETE_TOPICS) == ()
    return crowded.overtaken


@pytest.mark.parametrize("design", [ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name)
def test_command_of_the_controller_overtakes_a_backlog_of_clients(design: Design) -> None:
    for command, found in overtaken(design).items():
        assert found, f"no {command.__name__} was sent"
        assert set(found) == {BACKLOG}, command.__name__


def test_command_waits_for_all_clients_that_came_before_where_it_has_no_priority() -> None:
    for command, found in overtaken(without(ZK_REDESIGN, "prioritised-commands")).items():
        assert found, f"no {command.__name__} was sent"
        assert set(found) == {0}, command.__name__


def test_what_brokers_ask_of_each_other_beyond_the_three_is_prioritised_too() -> None:
    """Follower fetches keep the ISR, the others keep a broker at its work."""
    of_brokers = [each for each in (*APIS, *CONTROL_RPCS) if each.control_plane and each.zookeeper]
    assert {each.title for each in of_brokers} == {
        *("LeaderAndIsr", "StopReplica", "UpdateMetadata"),
        *("AllocateProducerIds", "AlterIsr", "ControlledShutdown"),
    }
    fetches = {
        is_follower: FetchRequest(
            replica_state=ReplicaState(replica_id=2 if is_follower else -1),
            max_wait_ms=0,
            min_bytes=0,
            topics=(),
        )
        for is_follower in (True, False)
    }
    assert all(is_control(Request(token=1, body=fetches[each])) is each for each in fetches)
    assert is_control(Request(token=1, body=ApiVersionsRequest()))
