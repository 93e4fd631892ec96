"""More clients of a stage: they read while a schedule is under way, and ask the controller.

A register is a topic's config, as in the workload of that name.
"""

from controller.committed_reads import ReadCommittedRequest, ReadCommittedResponse
from jepsen_like.clients.admin_client import register_write
from jepsen_like.histories.history import Kind
from jepsen_like.sim.cluster.client import TOPIC
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.stage import Stage
from jepsen_like.sim.schedules.stage_clients import StageClients
from jepsen_like.sim.schedules.stage_settings import WAIT_MS
from jepsen_like.workloads.metadata_workloads import CONFIG
from wire.errors import ErrorCode
from wire.messages.configs import IncrementalAlterConfigsResponse
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

__all__ = ["Visitors"]


class Visitors:
    """Each question is asked at once. All but `begin_write` and `reassign` await the answer."""

    def __init__(self, production: Production, stage: Stage) -> None:
        self._production = production
        self._stage = stage
        self._clients = StageClients(production, stage.cluster.judge, timeout_ms=WAIT_MS)
        self._host = stage.cluster.world.add_client(self._clients)
        self._host.start()

    def read(self, of: int) -> None:
        """All that the leader `of` shows to consumers."""
        reader = self._clients.read(self._stage.key, of)
        self._send()
        self._stage.until(lambda: reader.is_done, "a reader has come to the end")

    def reassign(self, *replicas: int) -> None:
        names = ", ".join(map(self._stage.name, replicas))
        self._production.note(f"an administrator wants the replicas to be {names}")
        partition = ReassignablePartition(partition_index=self._stage.key[1], replicas=replicas)
        topic = ReassignableTopic(name=TOPIC, partitions=(partition,))
        move = AlterPartitionReassignmentsRequest(topics=(topic,))
        self._clients.ask(self._stage.controller, move, lambda _answer, _now_ms: None)
        self._send()

    # --- a register ---------------------------------------------------------------------

    def begin_write(self, value: int, to: int) -> int:
        """Returns the process that does it, which may be left waiting."""
        production = self._production
        production.note(f"a client asks {self._stage.name(to)} to write {value}")
        process = production.invoke("write", [TOPIC, value])

        def answered(answer: object, _now_ms: int) -> None:
            is_done = (
                isinstance(answer, IncrementalAlterConfigsResponse)
                and answer.responses[0].error_code is ErrorCode.NONE
            )
            production.complete(process, Kind.OK if is_done else Kind.INFO)

        self._clients.ask(to, register_write(TOPIC, value), answered)
        self._send()
        return process

    def write(self, value: int, to: int) -> None:
        process = self.begin_write(value, to)
        self._stage.until(lambda: not self._production.is_open(process), f"{value} is written")

    def look_up(self, of: int) -> None:
        """What a controller says is committed, which must first be sure that it leads."""
        production = self._production
        process = production.invoke("read", [TOPIC, None])

        def answered(answer: object, _now_ms: int) -> None:
            if isinstance(answer, ReadCommittedResponse) and answer.error is ErrorCode.NONE:
                value = None if answer.value is None else int(answer.value)
                production.note(f"{self._stage.name(of)} says that it is {value}")
                production.complete(process, Kind.OK, [TOPIC, value])
            else:
                production.complete(process, Kind.FAIL, error="no answer")

        self._clients.ask(of, ReadCommittedRequest(topic=TOPIC, config=CONFIG), answered)
        self._send()
        self._stage.until(lambda: not production.is_open(process), "a client has looked it up")

    def _send(self) -> None:
        """Have the clients' core send what it wants."""
        self._host.command(lambda _now_ms: None)
