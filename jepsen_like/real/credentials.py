"""The credentials for a cluster's nodes: certificates, passwords, and what opens their pages.

Whoever secures a cluster makes one; it is no part of a layout, and nothing of it is written.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.pages import PageAccess

__all__ = ["NO_CREDENTIALS", "Credentials", "ProxyTls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    brokers: ClientSettings = PLAIN
    controllers: ClientSettings = PLAIN  # at the quorum's listener
    as_node: Callable[[int], ClientSettings] = lambda _: PLAIN  # there, as one of the nodes
    pages: PageAccess | None = None
    librdkafka: Mapping[str, str] = field(default_factory=dict, repr=False)  # as `brokers`
    # A new key and certificate of a node, in PEM, by its id; None: its authority is not at hand.
    issue: Callable[[int], bytes] | None = None
    proxied: "ProxyTls | None" = None  # where proxies must read what passes; None: no TLS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyTls:
    """TLS that ends at a proxy: what it shows, how it asks, and what those show who meet it."""

    shown: ssl.SSLContext
    asking: ssl.SSLContext
    credentials: Credentials


NO_CREDENTIALS = Credentials()
