"""Brokers without data: real registrations and real followers of the metadata log.

    python -m benchmarks.peers.followers DIRECTORY CLUSTER-ID VOTERS ID [ID ...]

Several in a process, each with its own connections, directory and image. One JSON line for every
state that a broker enters and for every image that it publishes, with the time on the clock and
the processor time of the process.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from random import Random
from uuid import UUID

from broker.config import BrokerConfig
from broker.membership.quorum_membership import QuorumMembership
from broker.parts import BrokerParts
from quorum.core.application import MetadataLog, State
from quorum.core.effects import Effect, Event, RequestFailed, Response
from quorum.core.storage import METADATA_LOG
from quorum.core.types import Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.log.files.file_storage import FileStorage
from quorum.node.driver import Driver
from quorum.node.member import Member
from quorum.raft.config import QuorumConfig
from quorum.raft.raft_node import RaftNode
from quorum.raft.voters import Voter, VoterSet
from wire.messages.registration import RegisteredListener
from wire.primitives import METADATA_TOPIC_ID

__all__ = ["DatalessBroker"]


class DatalessBroker:
    """An application: what a broker is to the controllers, and no replicas."""

    def __init__(
        self,
        config: BrokerConfig,
        log: MetadataLog,
        random: Random,
        say: Callable[..., None],
    ) -> None:
        self._say = say
        membership = QuorumMembership(BrokerParts.of(config), log, random)
        self._outbox = membership.parts.outbox
        self.metadata, self.lifecycle = membership.metadata, membership.lifecycle
        self._said = self.lifecycle.state

    def serves(self, body: object) -> bool:
        return False

    def lead(self, epoch: int, now_ms: int) -> None:
        raise AssertionError("an observer does not lead")

    def resign(self, now_ms: int) -> None:
        raise AssertionError("an observer does not lead")

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        problem = self.metadata.committed(batches, now_ms)
        assert problem is None, problem
        self._publish(next_offset, now_ms)

    def load(self, batches: bytes, *, is_first: bool) -> None:
        problem = self.metadata.load(batches, is_first=is_first)
        assert problem is None, problem

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        self.metadata.loaded(end, now_ms)
        self._publish(end.offset, now_ms)

    def state(self) -> State | None:
        return self.metadata.state()

    def receive(self, event: Event, now_ms: int) -> None:
        assert isinstance(event, Response | RequestFailed), event  # it asks for nothing else
        self._outbox.deliver(event.token, event, now_ms)
        self._say_state()

    def tick(self, now_ms: int) -> None:
        self.lifecycle.tick(now_ms)
        self._say_state()

    def deadline_ms(self) -> int | None:
        return self.lifecycle.deadline_ms()

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()

    def _publish(self, next_offset: int, now_ms: int) -> None:
        delta = self.metadata.publish(next_offset)
        if delta is None:
            return
        self.lifecycle.ready_to_unfence(now_ms)
        self._say_state()
        self._say(offset=next_offset)

    def _say_state(self) -> None:
        if self.lifecycle.state is not self._said:
            self._said = self.lifecycle.state
            self._say(state=self._said.name)


async def follow(directory: str, cluster_id: str, voters: VoterSet, node_id: int) -> None:
    """One broker, until the process ends."""
    storage = FileStorage(directory)
    loaded = storage.load(METADATA_LOG, METADATA_TOPIC_ID)
    random = Random(node_id)
    quorum = QuorumConfig(
        node_id=node_id,
        directory_id=UUID(int=0xD000 + node_id),
        cluster_id=cluster_id,
        voters=voters,
        syncs=False,
    )
    config = BrokerConfig(
        node_id=node_id,
        cluster_id=cluster_id,
        listeners=(RegisteredListener(name="PLAINTEXT", host="127.0.0.1", port=1),),
        log_dirs=(quorum.directory_id,),
    )

    def say(**fields: object) -> None:
        times = {"at_ns": time.time_ns(), "processor_ns": time.process_time_ns()}
        line = {"node": node_id, **times, **fields}
        os.write(sys.stdout.fileno(), (json.dumps(line) + "\n").encode())

    async with Driver(storage, listeners=(), client_id=str(node_id)) as driver:
        raft = RaftNode(quorum, loaded.state, loaded.election, random, driver.now_ms())
        broker = DatalessBroker(config, raft, random, say)
        stop = await driver.run(Member(raft, {"broker": broker}))
        say(stopped=stop.reason)


async def main(directory: str, cluster_id: str, voters: str, *node_ids: str) -> None:
    """`voters` as in controller.quorum.voters."""
    known = VoterSet.of(_voter(text) for text in voters.split(","))
    async with asyncio.TaskGroup() as group:
        for node_id in node_ids:
            path = os.path.join(directory, node_id)
            os.makedirs(path, exist_ok=True)
            group.create_task(follow(path, cluster_id, known, int(node_id)))


def _voter(text: str) -> Voter:
    node_id, _, address = text.partition("@")
    host, _, port = address.rpartition(":")
    return Voter(ReplicaKey(int(node_id)), Endpoint(int(node_id), host, int(port)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
