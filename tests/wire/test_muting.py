"""Connections that are muted: answers leave, and nothing is read. On a clock of the test's own."""

import asyncio
from collections.abc import Callable
from itertools import count

from tests.wire.test_tcp import HOST, Clock, answer, frame, run_on_clock
from wire.admission import Admission
from wire.api_table import ListenerKind
from wire.canonical import preload
from wire.serving import Received
from wire.tcp_server import Server


class Side:
    """A server, and one client of it that sends frames."""

    def __init__(self, clock: Clock, admit: Callable[[str], Admission]) -> None:
        self.received: list[Received] = []
        self._clock = clock
        self.server = Server(
            listener="L",
            kind=ListenerKind.CONTROLLER,
            receive=self.received.append,
            tokens=count(),
            admit=admit,
        )

    async def connect(self) -> None:
        preload()
        port = await self.server.start(HOST, 0)
        self.reader, self.writer = await asyncio.open_connection(HOST, port)

    async def send(self, *numbers: int) -> list[int]:
        """The numbers of all requests that the server has taken by now."""
        self.writer.write(b"".join(map(frame, numbers)))
        return await self.taken_after(0)

    async def taken_after(self, seconds: float) -> list[int]:
        await self._clock.pass_seconds(seconds)
        return [each.request.body.broker_id for each in self.received]

    async def answered(self, place: int, *, mute_ms: int = 0) -> bytes:
        token = self.received[place].token
        self.server.mute(token, mute_ms)
        self.server.reply(token, answer(f"a{place}"))
        length = int.from_bytes(await self.reader.readexactly(4))
        return await self.reader.readexactly(length)

    async def close(self) -> None:
        self.writer.close()
        await self.server.stop()


def served(*admitted: Admission) -> Callable[[Clock], Side]:
    left = list(admitted)
    return lambda clock: Side(clock, lambda _host: left.pop(0) if left else Admission())


def test_answer_leaves_first_and_nothing_is_read_until_the_time_is_up() -> None:
    async def test(clock: Clock) -> None:
        side = served()(clock)
        await side.connect()
        assert await side.send(1) == [1]
        assert b"a0" in await side.answered(0, mute_ms=700)
        assert await side.send(2) == [1]
        assert await side.taken_after(0.69) == [1]
        assert await side.taken_after(0.01) == [1, 2]
        assert b"a1" in await side.answered(1)
        assert await side.send(3) == [1, 2, 3]
        await side.close()

    run_on_clock(test)


def test_requests_that_were_read_already_wait_too_and_those_outstanding_are_answered() -> None:
    async def test(clock: Clock) -> None:
        side = served()(clock)
        side.server.limits = type(side.server.limits)(outstanding_max=2)
        await side.connect()
        assert await side.send(1, 2, 3) == [1, 2]
        await side.answered(0, mute_ms=500)
        assert await side.taken_after(0.1) == [1, 2]
        assert b"a1" in await side.answered(1)
        assert await side.taken_after(0.39) == [1, 2]
        assert await side.taken_after(0.01) == [1, 2, 3]
        await side.close()

    run_on_clock(test)


def test_longest_of_several_waits_counts() -> None:
    async def test(clock: Clock) -> None:
        side = served()(clock)
        await side.connect()
        assert await side.send(1, 2, 3) == [1, 2, 3]
        for place, mute_ms in enumerate((300, 900, 100)):
            await side.answered(place, mute_ms=mute_ms)
        assert await side.send(4) == [1, 2, 3]
        assert await side.taken_after(0.89) == [1, 2, 3]
        assert await side.taken_after(0.01) == [1, 2, 3, 4]
        await side.close()

    run_on_clock(test)


def test_connection_that_comes_too_soon_is_served_when_its_turn_has_come() -> None:
    async def test(clock: Clock) -> None:
        side = served(Admission(2000))(clock)
        await side.connect()
        assert await side.send(1) == []
        assert await side.taken_after(1.99) == []
        assert await side.taken_after(0.01) == [1]
        await side.close()

    run_on_clock(test)


def test_connection_that_is_refused_is_closed_later_and_unread() -> None:
    async def test(clock: Clock) -> None:
        side = served(Admission(1000, is_refused=True))(clock)
        await side.connect()
        assert await side.send(1) == []
        assert side.server.connection_count == 1
        assert await side.taken_after(1) == []
        assert side.server.connection_count == 0
        await side.close()

    run_on_clock(test)


def test_connection_that_is_to_end_is_not_served_after_a_longer_pause_either() -> None:
    async def test(clock: Clock) -> None:
        side = served(Admission(1000, is_refused=True))(clock)
        await side.connect()
        (connection,) = side.server.connections
        connection.mute(3)
        assert await side.send(1) == []
        assert await side.taken_after(2.9) == []
        assert side.server.connection_count == 1
        assert await side.taken_after(0.1) == []
        assert side.server.connection_count == 0
        await side.close()

    run_on_clock(test)


def test_muted_connection_ends_with_its_server_and_its_client() -> None:
    async def test(clock: Clock) -> None:
        side = served()(clock)
        await side.connect()
        await side.send(1)
        await side.answered(0, mute_ms=60_000)
        side.server.mute(side.received[0].token, 5)  # answered: it is nobody's token by now
        await side.close()
        assert side.server.connection_count == 0

    run_on_clock(test)
