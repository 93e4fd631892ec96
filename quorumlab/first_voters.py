"""The first voters of a quorum whose voters live in the log (KIP-853), from what is typed.

Source: Kafka's DynamicVoters and StorageTool.
"""

from uuid import UUID

from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.voters import SUPPORTED_KRAFT_VERSIONS, Voter, VoterSet
from quorumlab.config import ConfigError, NodeConfig, host_and_port
from wire.control_records import VoterEndpoint
from wire.primitives import ZERO_UUID, parse_uuid

__all__ = ["initial_controllers", "standalone"]

_OPTION = "--initial-controllers"


def standalone(config: NodeConfig, directory_id: UUID) -> VoterSet:
    """This controller alone."""
    (own,) = config.advertised_controllers
    return VoterSet.of([_voter(config, config.node_id, directory_id, own.host, own.port)])


def initial_controllers(text: str, config: NodeConfig) -> VoterSet:
    """`id@host:port:directory-id,…`, on the controllers' listener. Raises ConfigError."""
    found: dict[int, Voter] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        node, _, rest = item.partition("@")
        address, _, directory = rest.rpartition(":")
        if not node.isdigit() or not address:
            raise ConfigError(f"{_OPTION}: {item!r} is not id@host:port:directory-id")
        if int(node) in found:
            raise ConfigError(f"{_OPTION}: node {node} stands there twice")
        try:
            directory_id = parse_uuid(directory)
        except ValueError as error:
            raise ConfigError(f"{_OPTION}: {item!r}: {error}") from error
        if directory_id == ZERO_UUID:
            raise ConfigError(f"{_OPTION}: {item!r}: a directory id must not be zero")
        host, port = host_and_port(address, _OPTION)
        found[int(node)] = _voter(config, int(node), directory_id, host, port)
    if not found:
        raise ConfigError(f"{_OPTION}: names nobody")
    return VoterSet.of(found.values())


def _voter(config: NodeConfig, node_id: int, directory_id: UUID, host: str, port: int) -> Voter:
    listener = VoterEndpoint(name=config.controller_listener, host=host, port=port)
    return Voter(
        ReplicaKey(node_id, directory_id),
        Endpoint(node_id, host, port),
        (listener,),
        SUPPORTED_KRAFT_VERSIONS,
    )
