"""The protocol on TCP: servers and client connections of frames, on asyncio.

The names for drivers; how each works is in `wire.tcp_server`, `wire.tcp_connection` and
`wire.tcp_client`.
"""

from wire.tcp_client import Address, ClientLimits, Connection, ConnectionPool, SendFailure
from wire.tcp_connection import Received, ServerLimits
from wire.tcp_server import Server

__all__ = [
    "Address",
    "ClientLimits",
    "Connection",
    "ConnectionPool",
    "Received",
    "SendFailure",
    "Server",
    "ServerLimits",
]
