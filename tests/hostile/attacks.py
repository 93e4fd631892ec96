"""Attacks on a port from outside: each a coroutine that ends by itself."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random

__all__ = ["announce", "handshakes", "hostile_sends", "slow_bytes"]

_REFUSED = (OSError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError)
_READ_SECONDS = 1.0
_SEED_FRAMES = (
    bytes.fromhex("0000001400120003000000010001610a71756f72756d6c61"),  # cut ApiVersions
    bytes.fromhex("00000012001200000000000100087175 6f72756d6c6162".replace(" ", "")),
    bytes.fromhex("0000001500030001000000020001610000000100016f0000"),
    b"GET /v1/node HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/agent HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{",
    bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 60,  # the beginning of a TLS handshake
    b"\x7f\xff\xff\xff" + b"\0" * 32,  # a frame of two gigabytes
    b"\x80\0\0\0",
    b"\0\0\0\0",
)


@asynccontextmanager
async def _connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def _hostile(random: Random) -> bytes:
    """Random bytes, or something nearly right: changed, cut, or with more behind it."""
    if random.random() < 0.3:
        return random.randbytes(random.choice((1, 4, 5, 40, 3000)))
    sent = bytearray(random.choice(_SEED_FRAMES))
    for _ in range(random.randrange(4)):
        sent[random.randrange(len(sent))] = random.randrange(256)
    if random.random() < 0.2:
        del sent[random.randrange(1, len(sent)) :]
    return bytes(sent) + random.randbytes(random.choice((0, 0, 1, 200)))


async def hostile_sends(ports: Sequence[int], count: int, seed: int, *, at_once: int = 50) -> int:
    """So many sends over all the ports; returns how many connections were made."""
    made = 0

    async def attacker(number: int) -> None:
        nonlocal made
        random = Random(f"{seed}-{number}")
        for _ in range(count // at_once):
            with suppress(*_REFUSED):
                async with _connected(random.choice(ports)) as (reader, writer):
                    made += 1
                    writer.write(_hostile(random))
                    if random.random() < 0.3:
                        async with asyncio.timeout(_READ_SECONDS / 20):
                            await reader.read(1 << 16)

    await asyncio.gather(*(attacker(number) for number in range(at_once)))
    return made


async def slow_bytes(port: int, count: int, seconds: float) -> int:
    """So many connections, each of which sends a byte a second; returns how many stayed open."""
    stayed = 0

    async def sender() -> None:
        nonlocal stayed
        with suppress(*_REFUSED):
            async with _connected(port) as (reader, writer):
                for byte in b"\0\0\x01\0" + b"\0" * max(0, int(seconds) - 4):
                    writer.write(bytes([byte]))
                    await asyncio.sleep(1.0)
                    if reader.at_eof() or reader.exception() is not None:
                        return
                stayed += 1

    await asyncio.gather(*(sender() for _ in range(count)))
    return stayed


async def announce(port: int, count: int, announced: int, seconds: float) -> None:
    """Frames of so many bytes are announced, and a few bytes of each are sent."""

    async def sender() -> None:
        with suppress(*_REFUSED):
            async with _connected(port) as (_, writer):
                writer.write(announced.to_bytes(4) + b"\0" * 1000)
                await asyncio.sleep(seconds)

    await asyncio.gather(*(sender() for _ in range(count)))


async def handshakes(port: int, per_minute: int, seconds: float) -> int:
    """TLS handshakes, each on a connection of its own; returns how many were completed."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    done = 0

    async def one() -> None:
        nonlocal done
        with suppress(*_REFUSED):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            done += 1
            writer.transport.abort()

    begun = [asyncio.create_task(one())]
    for _ in range(int(per_minute * seconds / 60)):
        await asyncio.sleep(60 / per_minute)
        begun.append(asyncio.create_task(one()))
    await asyncio.gather(*begun)
    return done
