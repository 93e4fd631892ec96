"""One node: its directories, its cores and their driver, composed. No other place joins them.

A part that not every node has is imported where it begins, so that each starts with its own parts
alone. A process of a cluster is one node; tests like to run a whole cluster inside one process.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from random import Random, SystemRandom
from types import TracebackType
from typing import Any, Self, cast

from quorum.core.application import Application
from quorum.core.door import Door
from quorum.core.effects import Stop, Trace
from quorum.core.storage import METADATA_LOG, Loaded, StorageError
from quorum.log.files.file_storage import FileStorage
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.confirmed_reads import ConfirmingLog
from quorum.node.directories import DataDirectories, DataDirectory, open_directories
from quorum.node.driver import Driver, describe_trace
from quorum.node.listening import cannot_listen
from quorum.node.member import Member
from quorum.node.register import Register
from quorum.raft.raft_node import RaftNode
from quorumlab.config import NodeConfig
from quorumlab.first_records import first_records
from quorumlab.http_settings import http_security, warning
from quorumlab.node_parts import NodeParts
from quorumlab.pages import posts, routes
from quorumlab.security.changing_security import ChangingSecurity
from quorumlab.security.driver_listeners import driver_listeners
from quorumlab.security.scram_users import ScramUsers, decoy_key_of
from quorumlab.settings import (
    client_throttle,
    controller_config,
    is_guarded,
    quorum_config,
    snapshot_settings,
    storage_settings,
)
from quorumlab.web.serving import Page
from wire.canonical import preload
from wire.http import HttpServer
from wire.primitives import METADATA_TOPIC_ID
from wire.varint import Malformed

__all__ = ["Node"]

Say = Callable[[str], None]


class Node(NodeParts):
    """`async with Node(config, say) as node: stop = await node.run()`.

    Entering recovers the metadata log and starts to listen. Raises StorageError or CannotListen
    with a sentence that says what to do.
    """

    def __init__(self, config: NodeConfig, say: Say, seed: int | None = None) -> None:
        super().__init__(config)
        self.http_port = 0
        self._say = say
        self._random = Random(SystemRandom().getrandbits(64) if seed is None else seed)
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._exit.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._exit.__aexit__(kind, error, trace)

    async def run(self) -> Stop:
        """Runs until the node has stopped, for whatever reason."""
        stop = await self.driver.run(self.member)
        if self.broker is not None:
            self.driver.broker_epoch = self.broker.broker_epoch
        return stop

    def begin_shutdown(self) -> None:
        """Leave in good order: `run` returns when that is done."""
        self.driver.call(self._leave)

    def _leave(self, now_ms: int) -> None:
        if self.broker is None:
            assert isinstance(self.member, Member), "brokers only, in ZooKeeper mode"
            self.member.shut_down(now_ms)
        else:
            self.broker.begin_shutdown(now_ms)  # the member leaves the quorum after it

    async def _open(self) -> None:
        preload()
        users = ScramUsers(lambda: self.known_image, lambda: decoy_key)
        security = ChangingSecurity(self.config, users, self._say)
        listeners = driver_listeners(self.config, users)
        directories = self._open_directories()
        metadata = directories.metadata
        decoy_key = decoy_key_of(self.config, directories.cluster_id)
        storage = self.storage = FileStorage(
            {each.path: each.directory_id for each in directories.data},
            metadata_directory=metadata.path,
            settings=storage_settings(self.config),
            say=self._say,
        )
        try:
            loaded = None
            if self.config.design is None:
                loaded = storage.load(METADATA_LOG, METADATA_TOPIC_ID)
        except StorageError:
            storage.close(broker_epoch=None)
            raise
        self.driver = Driver(
            storage,
            listeners=listeners,
            client_id=str(self.config.node_id),
            trace=self._trace,
            dial_overrides=self.config.dial_overrides,
            security_of=security.client,
            prioritises=self.config.design is None or self.config.design.prioritises_commands,
        )
        security.follow(self.driver)
        await self._exit.enter_async_context(self.driver)
        if loaded is None:
            self._join_zookeeper(directories, storage)
        else:
            await self._join_quorum(directories, storage, loaded)
        self._throttle_clients()
        await self._serve_http()

    def _throttle_clients(self) -> None:
        knower = self.broker.cluster if self.broker is not None else self.controller
        if knower is not None:
            self.throttle = client_throttle(self.config, lambda: knower.image)
            self.driver.throttle_with(self.throttle)

    async def _join_quorum(
        self, directories: DataDirectories, storage: FileStorage, loaded: Loaded
    ) -> None:
        metadata, is_raftos = directories.metadata, bool(self.config.raftos_addresses)
        if is_raftos:
            from quorumlab import raftos_side

            self.raft = raftos_side.raftos_node(
                self.config,
                metadata,
                loaded,
                self._random,
                self.driver.now_ms(),
                serves_confirmed_reads=self._serves_confirmed_reads,
            )
        else:
            self.raft = self._replica(metadata, loaded)
        kind = ConfirmingMember if self._serves_confirmed_reads else Member
        applications = self._applications(directories, storage)
        self.member = kind(
            self.raft,
            applications,
            self.config.controller_listeners,
            snapshots=snapshot_settings(self.config),
            door=self._door() if is_guarded(self.config) else None,
        )
        if is_raftos:
            library = await raftos_side.connect(self.config, metadata, self.driver)
            self._exit.push_async_callback(library.close)

    def _join_zookeeper(self, directories: DataDirectories, storage: FileStorage) -> None:
        from quorumlab.zk_side import ZkSide

        assert self.config.design is not None
        self.zk = ZkSide(self.config, self.config.design, directories, storage, self._random)
        self.broker = self.zk.broker
        self.member = self.zk.member
        self._exit.push_async_callback(self.zk.connect(self.driver).close)

    def _open_directories(self) -> DataDirectories:
        """Lock every data directory of the node."""
        opened = open_directories(
            str(self.config.metadata_dir),
            [str(path) for path in self.config.log_dirs],
            node_id=self.config.node_id,
            cluster_id=self.config.text("cluster.id"),
            say=self._say,
        )
        for directory in {id(each): each for each in (opened.metadata, *opened.data)}.values():
            self._exit.callback(directory.close)
        return opened

    def _replica(self, metadata: DataDirectory, loaded: Loaded) -> RaftNode:
        """Raises StorageError for what the quorum itself wrote and this release cannot read."""
        engine = ConfirmingRaftNode if self._serves_confirmed_reads else RaftNode
        try:
            return engine(
                quorum_config(
                    self.config, cluster_id=metadata.cluster_id, directory_id=metadata.directory_id
                ),
                loaded.state,
                loaded.election,
                self._random,
                self.driver.now_ms(),
            )
        except Malformed as error:
            raise StorageError(
                f"the log {METADATA_LOG} in {metadata.path} cannot be read: {error}. If a later "
                "release wrote it, start that one"
            ) from error

    def _applications(
        self, directories: DataDirectories, storage: FileStorage
    ) -> dict[str, Application]:
        applications: dict[str, Application] = {}
        cluster_id = directories.cluster_id
        if self._has_register:
            self.register = applications["register"] = Register(self._confirming_log)
        elif self.config.is_controller:
            from controller.controller import Controller

            self.controller = applications["controller"] = Controller(
                controller_config(
                    self.config,
                    cluster_id=cluster_id,
                    random=self._random,
                    first=first_records(directories.metadata),
                ),
                self.raft,
                self._random,
                self.driver.now_ms(),
            )
            if self._serves_confirmed_reads:
                from controller.committed_reads import CommittedReads

                applications["reads"] = CommittedReads(self._confirming_log, self.controller)
        if self.config.is_broker:
            from quorumlab import broker_side

            self.broker = applications["broker"] = broker_side.broker_of(
                self.config, directories, storage, self.raft, self._random
            )
        return applications

    def _door(self) -> Door | None:
        """By the controller's image where there is one: a broker comes in by it."""
        from quorumlab.security import authorization

        if self.controller is not None:
            known = authorization.committed_image(self.controller, self.raft)
        elif self.broker is not None:
            known = authorization.published_image(self.broker)
        else:
            return None  # a register has no metadata
        return authorization.door_of(self.config, known)

    @property
    def _has_register(self) -> bool:
        return self.config.text("quorumlab.application") == "register"

    @property
    def _serves_confirmed_reads(self) -> bool:
        return self.config.is_controller and (
            self._has_register or self.config.flag("quorumlab.confirmed.reads.enable")
        )

    @property
    def _confirming_log(self) -> ConfirmingLog:
        """The engine, of which one was made that can be asked."""
        return cast(ConfirmingLog, self.raft)

    async def _serve_http(self) -> None:
        page = Page(self._about_reader)
        served = {**routes(self), **page.routes()}
        security = http_security(self.config)
        if told := warning(self.config):
            self._say(f"warning: {told}")
        server = HttpServer(served, posts(self), page.streams(), security=security)
        self._exit.push_async_callback(server.stop)
        self._exit.push_async_callback(page.close)
        host, port = self.config.http_host, self.config.http_port
        try:
            self.http_port = await server.start(host, port)
        except OSError as error:
            raise cannot_listen(f"{host}:{port}", port, "quorumlab.http.listener", error) from error
        self._say(f"http listening on {host}:{self.http_port}")
        if self.register is not None:
            self._say("agent: this node changes registers for whoever may read its pages")

    def _about_reader(self) -> Mapping[str, Any]:
        from quorumlab.web.reader_keys import of_node  # once somebody looks

        return of_node(self.config, self.http_port)

    def _trace(self, trace: Trace) -> None:
        if not self.milestones.take(trace):
            self._say(describe_trace(trace))
