"""A controller whose engine is raftos: the core that hosts it, and the library beside the driver.

Only such a node loads this module: raftos is no dependency of ours.
"""

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from quorum.core.storage import METADATA_LOG, Loaded, StorageError
from quorum.node.directories import DataDirectory
from quorum.node.driver import Driver
from quorum.node.listening import cannot_listen
from quorum.raftos.confirming_raftos_node import ConfirmingRaftosNode
from quorum.raftos.engines import why_not_installed
from quorum.raftos.raftos_effects import News, RaftosEvent, RaftosRequest
from quorum.raftos.raftos_node import RaftosNode
from quorumlab.config import ConfigError, NodeConfig
from quorumlab.settings import quorum_config

if TYPE_CHECKING:
    from quorum.raftos.library import RaftosLibrary

__all__ = ["connect", "raftos_node"]

_DIRECTORY = "raftos"  # beside the metadata log


def raftos_node(
    config: NodeConfig,
    metadata: DataDirectory,
    loaded: Loaded,
    random: Random,
    now_ms: int,
    *,
    serves_confirmed_reads: bool,
) -> RaftosNode:
    """Raises StorageError for a directory of another engine, ConfigError without raftos."""
    why = why_not_installed()
    if why is not None:
        raise ConfigError(f"quorumlab.engine=raftos: {why}")
    state = loaded.state
    is_ours = (Path(metadata.path) / _DIRECTORY).exists()
    if state.start_offset > 0 or state.snapshots or (state.end_offset > 0 and not is_ours):
        raise StorageError(
            f"the log {METADATA_LOG} in {metadata.path} is of quorumlab's own engine, which raftos "
            "cannot go on with: take out quorumlab.engine=raftos, or format another directory"
        )
    engine = ConfirmingRaftosNode if serves_confirmed_reads else RaftosNode
    return engine(
        quorum_config(config, cluster_id=metadata.cluster_id, directory_id=metadata.directory_id),
        state,
        random,
        now_ms,
    )


async def connect(config: NodeConfig, metadata: DataDirectory, driver: Driver) -> "RaftosLibrary":
    """Take part. From now on `driver` asks the library, and brings its core what it says."""
    from quorum.raftos.library import RaftosLibrary, Timing

    def hear(news: News) -> None:
        driver.hear(RaftosEvent(news=news))

    directory = Path(metadata.path) / _DIRECTORY
    try:
        library = RaftosLibrary(
            config.raftos_addresses,
            node_id=config.node_id,
            directory=directory,
            timing=Timing(
                step_down_ms=config.number("controller.quorum.fetch.timeout.ms"),
                election_spread_ms=config.number("controller.quorum.election.timeout.ms"),
            ),
            hear=hear,
        )
    except (OSError, ValueError) as error:
        raise StorageError(
            f"raftos cannot begin in {directory}: {error}. If a file there is damaged, remove the "
            "directory: the other controllers have its log"
        ) from error
    driver.perform_with(RaftosRequest, library.ask)
    try:
        await library.start()
    except OSError as error:
        host, port = config.raftos_addresses[config.node_id]
        raise cannot_listen(f"{host}:{port}", port, "quorumlab.raftos.voters", error) from error
    return library
