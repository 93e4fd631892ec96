"""server.properties of a broker in ZooKeeper mode: which design, and what the file then lacks.

As in Apache Kafka, a file without `process.roles` and with `zookeeper.connect` is one of ZooKeeper
mode, in which a broker's id is `broker.id`. Which of the documented designs it follows is
`quorumlab.design`.
"""

from collections.abc import Mapping

from wire.zk.designs import DESIGNS, ZK_V3, Design, at_version

__all__ = ["ConfigError", "design_of", "zookeeper_given"]


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key and what to do."""


def design_of(given: Mapping[str, str]) -> Design | None:
    """None for a node of a quorum. Raises ConfigError."""
    name = given.get("quorumlab.design", "quorum")
    if "zookeeper.connect" not in given:
        if name != "quorum":
            raise ConfigError(
                f"quorumlab.design={name} needs a ZooKeeper: set zookeeper.connect=host:port"
            )
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
    return _at_version(design, given.get("inter.broker.protocol.version"))


def _at_version(design: Design, version: str | None) -> Design:
    if version is None:
        return design
    try:
        return at_version(design, version)
    except ValueError as error:
        raise ConfigError(
            f"inter.broker.protocol.version={version}: must be a version as 2.6 or 2.7-IV2"
        ) from error


def zookeeper_given(given: Mapping[str, str]) -> dict[str, str]:
    """The file, with the keys that a node of a quorum would have."""
    added = {"process.roles": "broker"}
    if "node.id" not in given and "broker.id" in given:
        added["node.id"] = given["broker.id"]
    return {**given, **added}
