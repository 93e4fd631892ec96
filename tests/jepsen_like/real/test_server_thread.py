"""Servers in a thread: they listen when it is entered, and nothing is left when it is not."""

import asyncio
import socket
import threading

import pytest

from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.layout import HOST
from jepsen_like.real.relay import ServerThread, Streams


async def echo(streams: Streams) -> None:
    reader, writer = streams
    try:
        while content := await reader.read(100):
            writer.write(content)
    finally:
        writer.close()


def test_every_port_is_served_by_its_own() -> None:
    async def shout(streams: Streams) -> None:
        streams[1].write(b"WHAT?")
        streams[1].close()

    ports = free_ports()
    one, other = next(ports), next(ports)
    with ServerThread("test", {one: echo, other: shout}):
        with socket.create_connection((HOST, one)) as connection:
            connection.sendall(b"hello")
            assert connection.recv(100) == b"hello"
        with socket.create_connection((HOST, other)) as connection:
            assert connection.recv(100) == b"WHAT?"


def test_connections_and_what_was_begun_end_with_it() -> None:
    port, ended = next(free_ports()), threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with ServerThread("test", {port: echo}) as thread:
        connection = socket.create_connection((HOST, port))
        connection.sendall(b"here")
        assert connection.recv(100) == b"here"
        thread.do(lambda: thread.begin(wait()))
    with connection:
        assert ended.is_set()
        assert connection.recv(100) == b""


def test_what_is_done_in_it_returns_and_raises_to_whoever_asked() -> None:
    with ServerThread("test", {}) as thread:
        assert thread.do(lambda: threading.current_thread().name) == "test"
        with pytest.raises(ZeroDivisionError):
            thread.do(lambda: 1 // 0)


def test_port_that_is_taken_is_told_at_once() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"), ServerThread("test", {port: echo}):
            pass
