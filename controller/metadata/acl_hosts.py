"""Hosts of ACLs: any (`*`), one address, or a network such as 10.1.0.0/16 or fe80::/10.

A network may be made from metadata.version 32 on. Who is in it is asked whatever the level: an
entry that a newer controller made must deny what it says.

Source: Kafka 4.4's CidrUtils, AclControlManager.validateHostPattern.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from controller.metadata.metadata_version import CIDR_HOSTS, LEVEL_NAMES

__all__ = ["NO_NETWORKS_YET", "address_of", "is_in", "network_problem"]

_V4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_V6 = re.compile(r"([0-9a-fA-F:.]+)(?:%[^/]+)?/(\d{1,3})", re.ASCII)
NO_NETWORKS_YET = (
    f"CIDR-based ACL host patterns require metadata version {LEVEL_NAMES[CIDR_HOSTS]} or higher."
)
Address = IPv4Address | IPv6Address


def network_problem(host: str) -> str | None:
    """Why a host with a slash in it is no network."""
    try:
        _network(host)
    except ValueError as error:
        return f"Invalid CIDR notation '{host}': {error}"
    return None


@lru_cache(maxsize=1024)
def _network(host: str) -> IPv4Network | IPv6Network:
    """Bits behind the prefix count for nothing. Raises ValueError."""
    if ":" not in host:
        found = _V4.fullmatch(host)
        if found is None:
            raise ValueError(f"Could not parse [{host}]")
        *parts, prefix = map(int, found.groups())  # zeros may lead
        return IPv4Network((".".join(map(str, parts)), prefix), strict=False)
    found = _V6.fullmatch(host)
    if found is None:
        raise ValueError(f"Could not parse [{host}]")
    network = IPv6Network((found[1], int(found[2])), strict=False)
    if IPv6Address(found[1]).ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{found[1]}] - not an IPv6 address")
    return network


def address_of(host: str) -> Address | None:
    """The address of a client; None for what is none."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def is_in(address: Address | None, host: str) -> bool:
    """Is `host` a network, and the address in it?"""
    if address is None or "/" not in host:
        return False
    try:
        return address in _network(host)
    except ValueError:
        return False
