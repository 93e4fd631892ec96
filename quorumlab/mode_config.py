"""server.properties of two other modes: controllers whose engine is raftos, brokers with ZooKeeper.

raftos knows a node by the address that its datagrams come from, so only numeric IPv4 addresses can
be had: those of controller.quorum.voters, unless quorumlab.raftos.voters names other places.
`quorum.raftos.engines` says how many controllers there may be.

As in Apache Kafka, a file without `process.roles` and with `zookeeper.connect` is one of ZooKeeper
mode, in which a broker's id is `broker.id`. `quorumlab.design` names the documented design that the
broker follows, and `quorumlab.zk.without` the improvements that are turned off in it
(`wire.zk.switches`).
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address

from quorum.core.types import Endpoint
from quorum.raftos.engines import ENGINES, NATIVE, RAFTOS, why_no_majority
from wire.zk.designs import DESIGNS, ZK_V3, Design, at_version
from wire.zk.switches import without

__all__ = ["WITHOUT", "ConfigError", "design_of", "raftos_addresses", "zookeeper_given"]

_ENGINE = "quorumlab.engine"
_VOTERS = "quorumlab.raftos.voters"
WITHOUT = "quorumlab.zk.without"


def raftos_addresses(
    given: Mapping[str, str], roles: frozenset[str], voters: Sequence[Endpoint]
) -> dict[int, tuple[str, int]]:
    """Returns them by node id; none with our own engine, or on brokers, which follow both alike."""
    engine = given.get(_ENGINE, NATIVE)
    if engine not in ENGINES:
        raise ConfigError(f"{_ENGINE}={engine}: must be one of {', '.join(ENGINES)}")
    if engine != RAFTOS or "controller" not in roles:
        return {}
    ids = [voter.node_id for voter in voters]
    if not ids:
        raise ConfigError(f"{_ENGINE}=raftos: name the controllers in controller.quorum.voters")
    why = why_no_majority(len(ids))
    if why is not None:
        raise ConfigError(f"{_ENGINE}=raftos: {why}: see controller.quorum.voters")
    addresses = dict(_addresses(given.get(_VOTERS) or given["controller.quorum.voters"]))
    if sorted(addresses) != sorted(ids):
        raise ConfigError(
            f"{_VOTERS}: names nodes {sorted(addresses)}, but controller.quorum.voters names "
            f"{sorted(ids)}"
        )
    if len(set(addresses.values())) < len(addresses):
        raise ConfigError(f"{_VOTERS}: each node needs an address of its own")
    return addresses


def _addresses(text: str) -> Iterator[tuple[int, tuple[str, int]]]:
    for name in filter(None, (each.strip() for each in text.split(","))):
        node, _, address = name.partition("@")
        host, _, port = address.rpartition(":")
        if not (node.isdecimal() and _is_ipv4(host) and port.isdecimal() and int(port) <= 65535):
            raise ConfigError(
                f"{_VOTERS}: {name!r} is not id@address:port with an IPv4 address, by which raftos "
                "knows a node"
            )
        yield int(node), (host, int(port))


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except AddressValueError:
        return False
    return True


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key and what to do."""


# --- ZooKeeper -------------------------------------------------------------------------------


def design_of(given: Mapping[str, str]) -> Design | None:
    """Returns None for a node of a quorum. Raises ConfigError."""
    name = given.get("quorumlab.design", "quorum")
    if "zookeeper.connect" not in given:
        if name != "quorum":
            raise ConfigError(
                f"quorumlab.design={name} needs a ZooKeeper: set zookeeper.connect=host:port"
            )
        if given.get(WITHOUT):
            raise ConfigError(f"{WITHOUT}={given[WITHOUT]}: the quorum design has no such switch")
        return None
    if given.get("process.roles"):
        raise ConfigError(
            "process.roles and zookeeper.connect: a node is of a quorum or of ZooKeeper mode; "
            "leave one of them out"
        )
    name = given.get("quorumlab.design", ZK_V3.name)
    design = DESIGNS.get(name)
    if design is None:
        raise ConfigError(f"quorumlab.design={name}: must be one of {', '.join(DESIGNS)}")
    try:
        switched = without(design, given.get(WITHOUT, ""))
    except ValueError as error:
        raise ConfigError(f"{WITHOUT}={given[WITHOUT]}: {error}") from error
    return _at_version(switched, given.get("inter.broker.protocol.version"))


def _at_version(design: Design, version: str | None) -> Design:
    if version is None:
        return design
    try:
        return at_version(design, version)
    except ValueError as error:
        raise ConfigError(
            f"inter.broker.protocol.version={version}: must be a version as 2.6 or 2.7-IV2"
        ) from error


def zookeeper_given(given: Mapping[str, str], design: Design) -> dict[str, str]:
    """The file, with the keys that a node of a quorum would have and the defaults of the design."""
    added = {"process.roles": "broker"}
    if "node.id" not in given and "broker.id" in given:
        added["node.id"] = given["broker.id"]
    return {"replica.lag.time.max.ms": str(design.lag_time_ms), **given, **added}
