"""The protocol on TCP: servers and client connections of frames, on asyncio.

The names for drivers; how each works is in `wire.tcp_server` and `wire.tcp_client`.
"""

from wire.tcp_client import ClientLimits, Connection, ConnectionPool, SendFailure
from wire.tcp_server import Received, Server, ServerLimits

__all__ = [
    "ClientLimits",
    "Connection",
    "ConnectionPool",
    "Received",
    "SendFailure",
    "Server",
    "ServerLimits",
]
