"""The log's client on aiokafka: a second implementation, which shares no code with the first.

Its event loop runs while an operation does, in the thread of the process. A record whose sending
was begun and not acknowledged is `info`, whatever the error: aiokafka repeats by itself.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from jepsen_like.histories.history import Kind, Value, key_of, place_of
from jepsen_like.real.client_handshakes import tls_context
from jepsen_like.real.client_settings import ClientSettings
from jepsen_like.real.clients.target import Target, known_offset
from jepsen_like.workloads.workload import Done, Wish

__all__ = ["AiokafkaClient"]

_POLL_MS = 200
_RECORDS_MAX = 500
_SECONDS = 5.0  # for anything but a send
_STOP_SECONDS = 1.0
_BACKOFF_MS = 50


class AiokafkaClient:
    def __init__(self, target: Target, *, idempotent: bool, timeout_seconds: float) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # broken connections are no news
        self._common = {
            "bootstrap_servers": target.bootstrap_servers,
            "retry_backoff_ms": _BACKOFF_MS,
            "metadata_max_age_ms": 1000,
            **_security(target.credentials.brokers),
        }
        self._idempotent = idempotent
        self._timeout_seconds = timeout_seconds
        self._runner = asyncio.Runner()
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None

    def invoke(self, wish: Wish) -> Done:
        match wish:
            case Wish(f="send", value=[["send", key, value]]):
                return self._runner.run(self._send(key, value))
            case Wish(f="poll"):
                return self._reading(self._poll(until_caught_up="until" in wish.extra))
            case Wish(f="assign", value=keys):
                from_zero = wish.extra.get("seek") == "beginning"
                return self._reading(self._assign(keys, from_zero=from_zero))
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")

    def close(self) -> None:
        try:
            self._runner.run(self._stop())
        finally:
            self._runner.close()

    async def _stop(self) -> None:
        opened = [each for each in (self._producer, self._consumer) if each is not None]
        self._producer = self._consumer = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await asyncio.gather(*map(_stopped, opened))

    # --- sending ---

    async def _send(self, key: str, value: int) -> Done:
        topic, partition = place_of(key)
        try:
            producer = await self._open_producer()
        except (KafkaError, TimeoutError):
            return Done(kind=Kind.FAIL, error="not connected")
        try:
            async with asyncio.timeout(self._timeout_seconds + 1.0):
                sent = await producer.send(topic, b"%d" % value, partition=partition)
                metadata = await sent
        except (KafkaError, TimeoutError, ValueError) as error:
            return Done(kind=Kind.INFO, error=_name(error))
        return Done(kind=Kind.OK, value=[["send", key, [known_offset(metadata.offset), value]]])

    async def _open_producer(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **self._common,
                acks="all",
                enable_idempotence=self._idempotent,
                request_timeout_ms=int(self._timeout_seconds * 1000),
            )
            await _started(producer)
            self._producer = producer
        return self._producer

    # --- polling ---

    def _reading(self, work: Coroutine[Any, Any, Done]) -> Done:
        """Run a read. A read that has no answer has failed: it changes nothing."""
        try:
            return self._runner.run(work)
        except (KafkaError, TimeoutError) as error:
            return Done(kind=Kind.FAIL, error=_name(error))

    async def _assign(self, keys: Sequence[str], *, from_zero: bool) -> Done:
        consumer = await self._open_consumer()
        kept = consumer.assignment()
        wanted = {TopicPartition(*place_of(key)) for key in keys}
        async with asyncio.timeout(_SECONDS):
            positions = {} if from_zero else {p: await consumer.position(p) for p in kept & wanted}
            consumer.assign(sorted(wanted))
            for place in wanted:
                if from_zero or place in positions:
                    consumer.seek(place, positions.get(place, 0))
            if not from_zero and (new := wanted - kept):
                await consumer.seek_to_end(*new)
        return Done(kind=Kind.OK, value=list(keys))

    async def _poll(self, *, until_caught_up: bool) -> Done:
        consumer = await self._open_consumer()
        batches = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_RECORDS_MAX)
        found = {
            key_of(place.topic, place.partition): [
                [record.offset, int(record.value or b"-1")] for record in records
            ]
            for place, records in batches.items()
        }
        extra: dict[str, Value] = {}
        if until_caught_up and not found:
            extra["caught_up"] = await self._has_caught_up(consumer)
        return Done(kind=Kind.OK, value=[["poll", found]], extra=extra)

    async def _has_caught_up(self, consumer: AIOKafkaConsumer) -> bool:
        places = consumer.assignment()
        async with asyncio.timeout(_SECONDS):
            ends = await consumer.end_offsets(places)
            return all([await consumer.position(place) >= ends[place] for place in places])

    async def _open_consumer(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._common,
                auto_offset_reset="none",  # an offset out of range is an event, not a detail
                enable_auto_commit=False,
                fetch_max_wait_ms=100,
            )
            await _started(consumer)
            self._consumer = consumer
        return self._consumer


def _security(settings: ClientSettings) -> dict[str, Any]:
    """What aiokafka is told of TLS and SASL."""
    told: dict[str, Any] = {"security_protocol": settings.protocol.name}
    if settings.tls is not None:
        told["ssl_context"] = tls_context(settings.tls)
    if settings.protocol.uses_sasl:
        told["sasl_mechanism"] = settings.mechanism
        told["sasl_plain_username"] = settings.username
        told["sasl_plain_password"] = settings.password
    return told


async def _started(opened: Any) -> None:
    try:
        async with asyncio.timeout(_SECONDS):
            await opened.start()
    except (KafkaError, TimeoutError):
        await _stopped(opened)
        raise


async def _stopped(opened: Any) -> None:
    """A fetch that aiokafka cancels within `stop` may end that, too: nobody has cancelled us."""
    ended: list[BaseException | None]
    ended = await asyncio.gather(opened.stop(), return_exceptions=True)
    for error in ended:
        if not isinstance(error, KafkaError | asyncio.CancelledError | None):
            raise error


def _name(error: BaseException) -> str:
    return type(error).__name__
