"""The clients of a directed cluster of processes: one request each, and the history of it.

A record is sent in a thread of its own, since its answer may never come while the schedule goes on.
"""

import threading
from uuid import UUID

from jepsen_like.histories.history import Kind, Value
from jepsen_like.real.kafka_client import Client, NotConnected
from jepsen_like.real.layout import Address, ClusterError
from jepsen_like.scenarios.cluster.directed_clients import Produced, number_of, values_in
from jepsen_like.scenarios.stage.story import Production
from wire.batch import data_batch
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from wire.messages.producing import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["RealClients"]

_TIMEOUT_SECONDS = 15.0
_FETCH_BYTES = 1 << 20
_FETCHES_MAX = 20


class RealClients:
    """The clients of one partition."""

    def __init__(
        self, production: Production, topic: str, topic_id: UUID, lock: threading.Lock
    ) -> None:
        self._production = production
        self._topic = topic
        self._topic_id = topic_id
        self._key = f"{topic}-0"
        self._lock = lock  # around the production

    def produce(self, value: str, to: Address) -> Produced:
        produced = Produced(value)
        with self._lock:
            wish = [["send", self._key, number_of(value)]]
            process = self._production.invoke("send", wish)
        sending = threading.Thread(target=self._send, args=(produced, to, process), daemon=True)
        sending.start()
        return produced

    def _send(self, produced: Produced, to: Address, process: int) -> None:
        records = data_batch([produced.value.encode()], timestamp_ms=0)
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=self._topic, topic_id=self._topic_id, partition_data=(data,))
        body = ProduceRequest(acks=-1, timeout_ms=int(_TIMEOUT_SECONDS * 1000), topic_data=(topic,))
        try:
            with Client([to], _TIMEOUT_SECONDS + 1) as client:
                told = client.ask(body, ProduceResponse).responses[0].partition_responses[0]
        except NotConnected as error:
            self._ends(produced, process, Kind.FAIL, error=str(error))
        except ClusterError as error:
            self._ends(produced, process, Kind.INFO, error=str(error))
        else:
            if told.error_code is ErrorCode.NONE:
                done = [["send", self._key, [told.base_offset, number_of(produced.value)]]]
                self._ends(produced, process, Kind.OK, done)
            else:
                is_refused = told.error_code is ErrorCode.NOT_ENOUGH_REPLICAS
                kind = Kind.FAIL if is_refused else Kind.INFO
                self._ends(produced, process, kind, error=told.error_code.name)

    def _ends(
        self,
        produced: Produced,
        process: int,
        kind: Kind,
        value: Value = None,
        *,
        error: str | None = None,
    ) -> None:
        with self._lock:
            if not self._production.is_open(process):
                return  # the play is over
            self._production.complete(process, kind, value, error=error)
            said = f"acknowledged at offset {value[0][2][0]}" if value else f"not: {error}"
            self._production.note(f"{produced.value} is {said}")
        produced.error = ErrorCode.NONE if kind is Kind.OK else ErrorCode.UNKNOWN_SERVER_ERROR

    # --- reading ------------------------------------------------------------------------

    def read(self, of: Address) -> None:
        """Everything from zero to the high watermark, by a new process."""
        with self._lock:
            process = self._production.invoke("assign", [self._key], seek="beginning")
            self._production.complete(process, Kind.OK)
        position = 0
        try:
            with Client([of], _TIMEOUT_SECONDS) as client:
                for _ in range(_FETCHES_MAX):
                    before = position
                    position, is_done = self._poll(client, process, position)
                    if is_done or position == before:
                        return
        except ClusterError as error:
            with self._lock:
                if self._production.is_open(process):
                    self._production.complete(process, Kind.FAIL, error=str(error))

    def is_served(self, by: Address) -> bool:
        """Does this node lead, and know it? Asked by nobody whose history counts."""
        try:
            with Client([by], _TIMEOUT_SECONDS) as client:
                return self._fetch(client, 0).error_code is ErrorCode.NONE
        except ClusterError:
            return False

    def _fetch(self, client: Client, position: int) -> FetchedPartition:
        place = FetchPartition(partition=0, fetch_offset=position, partition_max_bytes=_FETCH_BYTES)
        topic = FetchTopic(topic=self._topic, topic_id=self._topic_id, partitions=(place,))
        body = FetchRequest(max_wait_ms=100, min_bytes=0, topics=(topic,))
        return client.ask(body, FetchResponse).responses[0].partitions[0]

    def _poll(self, client: Client, process: int, position: int) -> tuple[int, bool]:
        """Where it is now, and whether that is the end."""
        with self._lock:
            self._production.go_on(process, "poll", [["poll"]])
        told = self._fetch(client, position)
        records = list(values_in(told.records or b""))
        if told.error_code is not ErrorCode.NONE:
            raise ClusterError(told.error_code.name)
        pairs: list[Value] = [[offset, number_of(value)] for offset, value in records]
        if records:
            position = records[-1][0] + 1
        is_done = position >= told.high_watermark
        with self._lock:
            done = [["poll", {self._key: pairs} if pairs else {}]]
            extra: dict[str, Value] = {"caught_up": True} if is_done else {}
            self._production.complete(process, Kind.OK, done, extra=extra)
            text = " ".join(f"{offset}:{value}" for offset, value in records)
            self._production.note(f"a reader gets {text or 'nothing'}")
        return position, is_done
