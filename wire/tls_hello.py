"""Waits for the beginning of a TLS handshake, which costs nothing until it is there.

A TLS connection of asyncio has buffers of hundreds of kilobytes from its first moment on. Whoever
connects, and sends a byte now and then, must not get them.
"""

import asyncio
import socket

__all__ = ["NotTls", "NothingSaid", "wait_for_hello"]

_RECORD_HEAD_BYTES = 5
_RECORD_BYTES_MAX = 1 << 14
_HANDSHAKE = 0x16  # the type of the record that a client begins with
_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELET", b"OPTIO")
_HTTP = "an HTTP request on a listener of TLS"
_PLAIN = "the peer speaks no TLS: a client that speaks PLAINTEXT on a listener of TLS"


class NotTls(ConnectionError):
    """The client speaks something else; the message says what."""


class NothingSaid(ConnectionError):
    """The client has closed without a byte: it only looked whether anybody listens."""


async def wait_for_hello(accepted: socket.socket) -> None:
    """Returns as soon as a whole record has arrived. Nothing of it is taken.

    Raises NothingSaid or NotTls, and OSError if the client leaves within the record.
    """
    head = await _peek(accepted, _RECORD_HEAD_BYTES)
    size = int.from_bytes(head[3:])
    if head[0] != _HANDSHAKE or size > _RECORD_BYTES_MAX:
        raise NotTls(_HTTP if head.startswith(_METHODS) else _PLAIN)
    await _peek(accepted, _RECORD_HEAD_BYTES + size)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


async def _peek(accepted: socket.socket, size: int) -> bytes:
    """The next bytes of the stream, which stay where they are: the kernel wakes us once for all."""
    loop = asyncio.get_running_loop()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    arrived = asyncio.Event()
    loop.add_reader(accepted, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(accepted)
    content = accepted.recv(size, socket.MSG_PEEK)
    if not content:
        raise NothingSaid
    if len(content) < size:
        raise ConnectionResetError
    return content
