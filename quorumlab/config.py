"""server.properties: what a node is told, in Kafka's own keys.

Decides what a key means and which values are refused. A stock file works unchanged: keys that
Kafka knows and we do not use are named once in a warning, as are unknown ones. Every key may also
come from the environment as Kafka's images have it (`KAFKA_NODE_ID` for `node.id`), which wins.

Source: Kafka's configuration reference; `quorumlab.*` keys are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controller.metadata.config_keys import (
    BROKER_KEYS,
    NODE_KEYS,
    TOPIC_DEFAULTS,
    ConfigKey,
    ConfigType,
    problem,
)
from quorum.core.types import Endpoint
from quorumlab.mode_config import ConfigError, design_of, raftos_addresses, zookeeper_given
from wire.zk.designs import Design

__all__ = [
    "PROPERTIES",
    "ConfigError",
    "Listener",
    "NodeConfig",
    "from_environment",
    "host_and_port",
    "load",
    "node_config",
    "parse_properties",
]


@dataclass(frozen=True, slots=True)
class Property:
    """A key that we act on. `default` None: the key is absent unless given."""

    key: str
    kind: type[int] | type[str] | type[bool]
    default: int | str | bool | None
    minimum: int | None = None


APPLICATIONS = ("metadata", "register")
_UNENFORCED = "authorizer.class.name"  # says that there are ACLs, which nobody enforces


def _of_kafka(key: ConfigKey) -> Property:
    """A key as `controller.metadata.config_keys` declares it."""
    minimum = None if key.minimum is None else int(key.minimum)
    match key.type:
        case ConfigType.BOOLEAN:
            return Property(key.name, bool, key.default == "true")
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            default = None if key.default is None else int(key.default)
            return Property(key.name, int, default, minimum)
        case _:
            return Property(key.name, str, key.default or None)


PROPERTIES: dict[str, Property] = {
    item.key: item
    for item in (
        *(_of_kafka(key) for key in NODE_KEYS if key.name != _UNENFORCED),
        # What the node is, and where it listens.
        Property("broker.id", int, None, 0),  # what node.id is called in ZooKeeper mode
        Property("cluster.id", str, None),
        Property("listeners", str, None),
        Property("listener.security.protocol.map", str, None),
        Property("quorumlab.http.listener", str, "127.0.0.1:0"),  # port 0: any free one
        # The quorum.
        Property("quorumlab.metadata.log.preallocate", bool, True),
        Property("quorumlab.inline.sync.max.ms", int, 2, 0),  # see quorum.log.files.sync_pace
        Property("quorumlab.application", str, "metadata"),  # or "register", to test the quorum
        Property("quorumlab.confirmed.reads.enable", bool, False),  # of metadata, to test it
        Property("quorumlab.engine", str, "native"),  # or "raftos": see quorumlab.mode_config
        Property("quorumlab.raftos.voters", str, None),
        # ZooKeeper in the place of a quorum: see quorumlab.mode_config.
        Property("zookeeper.connect", str, None),
        Property("zookeeper.session.timeout.ms", int, 18_000, 1),
        Property("replica.lag.max.messages", int, 4000, 1),
        Property("quorumlab.design", str, None),
        Property("quorumlab.zk.without", str, ""),
        Property("quorumlab.reassignment.wake.ms", int, 30_000, 1),
        Property("quorumlab.replica.lag.min.messages", int, 1, 1),
        Property("quorumlab.leader.election.wait.ms", int, 1000, 0),
        Property("quorumlab.state.queue.max", int, 1000, 1),
        Property("quorumlab.close.replica.wait.ms", int, 30_000, 1),
        Property("quorumlab.isr.propagation.delay.ms", int, 0, 0),
        Property("inter.broker.protocol.version", str, None),
        # The controller and the broker.
        Property("unclean.leader.election.enable", bool, False),
        Property("unclean.leader.election.interval.ms", int, 300_000, 1),
        Property("quorumlab.broker.dataless", bool, False),  # has no logs, and fetches nothing
        Property("quorumlab.controlled.shutdown.timeout.ms", int, 300_000, 1),  # Kafka's: fixed
        Property("quorumlab.open.files.max", int, 4096, 16),  # descriptors for log segments
        # Defaults of topics: what they mean there, controller.metadata.configs decides.
        Property("min.insync.replicas", int, 1, 1),
        Property("message.max.bytes", int, 1_048_588, 0),
        Property("log.segment.bytes", int, 1 << 30, 14),
        Property("log.roll.ms", int, 7 * 24 * 3_600_000, 1),
        Property("log.cleanup.policy", str, None),
        Property("log.index.interval.bytes", int, None, 0),
        Property("log.index.size.max.bytes", int, None, 4),
        Property("log.retention.bytes", int, None, -1),
        Property("log.retention.hours", int, None, -1),
        Property("log.retention.minutes", int, None, -1),
        Property("log.retention.ms", int, None, -1),
        Property("log.roll.hours", int, None, 1),
        # Where to dial instead of a peer's address: host:port=host:port,... Fault injection lays
        # its proxies between nodes with it. What peers are told of addresses stays as it is.
        Property("quorumlab.dial.overrides", str, ""),
    )
}

# Read by Kafka, without effect here: a stock server.properties holds them.
_SILENT = frozenset(
    {
        "leader.imbalance.per.broker.percentage",  # of no effect in Kafka without ZooKeeper either
        "num.network.threads",
        "num.io.threads",
        "socket.send.buffer.bytes",
        "socket.receive.buffer.bytes",
        "num.recovery.threads.per.data.dir",
    }
)


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node, validated. `values` holds every property of PROPERTIES, typed."""

    roles: frozenset[str]
    node_id: int
    listeners: tuple[Listener, ...]  # where we bind
    advertised: tuple[Listener, ...]  # what others are told, same names
    controller_listener: str  # the first of controller.listener.names
    inter_broker_listener: str
    voters: tuple[Endpoint, ...]
    bootstrap_servers: tuple[Endpoint, ...]  # ids are negative: not known
    log_dirs: tuple[Path, ...]
    metadata_dir: Path
    http_host: str
    http_port: int
    values: Mapping[str, int | str | bool | None]
    dial_overrides: Mapping[tuple[str, int], tuple[str, int]]
    given: Mapping[str, str]  # the file as it stands: the defaults beneath dynamic configs
    raftos_addresses: Mapping[int, tuple[str, int]]  # of all; empty with our own engine
    design: Design | None = None  # of ZooKeeper mode; None: a quorum
    warnings: tuple[str, ...] = ()

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def advertised_controllers(self) -> tuple[Listener, ...]:
        """The listeners where the quorum finds this node; empty unless it is a controller."""
        return tuple(each for each in self.advertised if each.name == self.controller_listener)

    def number(self, key: str) -> int:
        value = self.values[key]
        assert isinstance(value, int), (key, value)
        return value

    def flag(self, key: str) -> bool:
        value = self.values[key]
        assert isinstance(value, bool), (key, value)
        return value

    def text(self, key: str) -> str | None:
        value = self.values[key]
        assert value is None or isinstance(value, str), (key, value)
        return value


def parse_properties(text: str) -> dict[str, str]:
    """Java's properties format as far as server.properties uses it: comments and joined lines."""
    values: dict[str, str] = {}
    joined = ""
    for raw in text.splitlines():
        line = joined + raw.lstrip()
        joined = ""
        if not line or line[0] in "#!":
            continue
        if line.endswith("\\") and not line.endswith("\\\\"):
            joined = line[:-1]
            continue
        key, separator, value = line.partition("=")
        if not separator:
            key, separator, value = line.partition(":")
        values[key.strip()] = value.strip()
    return values


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings given as KAFKA_NODE_ID and the like, for the keys that we know."""
    names = {"KAFKA_" + key.upper().replace(".", "_"): key for key in PROPERTIES}
    return {names[name]: value for name, value in environment.items() if name in names}


def load(path: Path, environment: Mapping[str, str]) -> NodeConfig:
    """Read and check a server.properties file. Raises ConfigError with a sentence for people."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    return node_config(parse_properties(text) | from_environment(environment))


def node_config(given: Mapping[str, str]) -> NodeConfig:
    design = design_of(given)
    if design is not None:
        given = zookeeper_given(given, design)
    values = {key: _typed(item, given.get(key)) for key, item in PROPERTIES.items()}
    _check_topic_defaults(given)
    roles = _roles(given)
    _check_application(values["quorumlab.application"], roles)
    controller_names = _names(given.get("controller.listener.names"))
    if not controller_names and design is None:
        raise ConfigError("controller.listener.names is missing: name the controllers' listener")
    listeners = _own_listeners(given, roles, controller_names)
    advertised = _advertised(given, listeners)
    http_host, http_port = host_and_port(
        str(values["quorumlab.http.listener"]), "quorumlab.http.listener"
    )
    voters, bootstrap_servers = _quorum(given) if design is None else ((), ())
    node_id = _required_number(values, "node.id")
    _check_own_vote(node_id, roles, voters)
    log_dirs = tuple(Path(name) for name in _names(given.get("log.dirs") or str(values["log.dir"])))
    return NodeConfig(
        roles=roles,
        node_id=node_id,
        listeners=listeners,
        advertised=advertised,
        controller_listener=controller_names[0] if controller_names else "",
        inter_broker_listener=_inter_broker_listener(given, listeners, controller_names, roles),
        voters=voters,
        bootstrap_servers=bootstrap_servers,
        log_dirs=log_dirs,
        metadata_dir=Path(given["metadata.log.dir"])
        if "metadata.log.dir" in given
        else log_dirs[0],
        http_host=http_host,
        http_port=http_port,
        values=values,
        dial_overrides=_dial_overrides(str(values["quorumlab.dial.overrides"])),
        given=dict(given),
        raftos_addresses=raftos_addresses(given, roles, voters),
        design=design,
        warnings=_warnings(given),
    )


def _warnings(given: Mapping[str, str]) -> tuple[str, ...]:
    ignored = sorted(set(given) - set(PROPERTIES) - TOPIC_DEFAULTS - _SILENT)
    if not ignored:
        return ()
    return (f"these settings have no effect here: {', '.join(ignored)}",)


def _check_topic_defaults(given: Mapping[str, str]) -> None:
    """Checks the defaults of topics that are no numbers: PROPERTIES has the ranges of numbers."""
    for key in sorted(TOPIC_DEFAULTS & given.keys()):
        if key not in PROPERTIES or PROPERTIES[key].kind is str:
            wrong = problem(BROKER_KEYS[key], given[key])
            if wrong is not None:
                raise ConfigError(wrong)


def _typed(item: Property, raw: str | None) -> int | str | bool | None:
    if raw is None:
        return item.default
    if item.kind is str:
        return raw
    if item.kind is bool:
        if raw.lower() not in ("true", "false"):
            raise ConfigError(f"{item.key}={raw}: expected true or false")
        return raw.lower() == "true"
    try:
        number = int(raw)
    except ValueError as error:
        raise ConfigError(f"{item.key}={raw}: expected a whole number") from error
    if item.minimum is not None and number < item.minimum:
        raise ConfigError(f"{item.key}={raw}: must be at least {item.minimum}")
    return number


def _roles(given: Mapping[str, str]) -> frozenset[str]:
    names = _names(given.get("process.roles"))
    if not names:
        raise ConfigError(
            "process.roles is missing: set process.roles=controller, broker, or broker,controller, "
            "or zookeeper.connect for a broker in ZooKeeper mode"
        )
    unknown = sorted(set(names) - {"broker", "controller"})
    if unknown:
        raise ConfigError(f"process.roles: {unknown[0]!r} is neither broker nor controller")
    return frozenset(names)


def _check_application(application: object, roles: frozenset[str]) -> None:
    if application not in APPLICATIONS:
        raise ConfigError(
            f"quorumlab.application={application}: must be one of {', '.join(APPLICATIONS)}"
        )
    if application != "metadata" and "broker" in roles:
        raise ConfigError(
            f"quorumlab.application={application}: brokers live by the metadata; "
            "set process.roles=controller"
        )


def _names(raw: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (raw or "").split(",") if name.strip())


def _required_number(values: Mapping[str, int | str | bool | None], key: str) -> int:
    value = values[key]
    if not isinstance(value, int):
        raise ConfigError(f"{key} is missing")
    return value


def host_and_port(text: str, key: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{key}: {text!r} is not host:port")
    return host.strip("[]"), int(port)


def _dial_overrides(raw: str) -> dict[tuple[str, int], tuple[str, int]]:
    key = "quorumlab.dial.overrides"
    overrides = {}
    for text in _names(raw):
        address, separator, instead = text.partition("=")
        if not separator:
            raise ConfigError(f"{key}: {text!r} is not host:port=host:port")
        overrides[host_and_port(address, key)] = host_and_port(instead, key)
    return overrides


def _listener(text: str, key: str) -> Listener:
    name, separator, address = text.partition("://")
    if not separator:
        raise ConfigError(f"{key}: {text!r} is not NAME://host:port")
    host, port = host_and_port(address, key)
    return Listener(name.strip(), host, port)


def _own_listeners(
    given: Mapping[str, str], roles: frozenset[str], controller_names: tuple[str, ...]
) -> tuple[Listener, ...]:
    raw = _names(given.get("listeners"))
    if not raw and "broker" in roles and "controller" not in roles:
        raw = ("PLAINTEXT://:9092",)  # Kafka's default
    listeners = tuple(_listener(text, "listeners") for text in raw)
    names = [listener.name for listener in listeners]
    if "controller" in roles and controller_names[0] not in names:
        raise ConfigError(
            f"listeners: a controller needs a listener {controller_names[0]}://host:port"
        )
    if "broker" in roles and not set(names) - set(controller_names):
        raise ConfigError("listeners: a broker needs a listener of its own for clients")
    if "controller" not in roles and set(names) & set(controller_names):
        raise ConfigError(
            "listeners: a node that is only a broker may not have a controller listener"
        )
    return listeners


def _advertised(given: Mapping[str, str], listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
    stated = {
        item.name: item
        for item in (
            _listener(text, "advertised.listeners")
            for text in _names(given.get("advertised.listeners"))
        )
    }
    unknown = sorted(set(stated) - {listener.name for listener in listeners})
    if unknown:
        raise ConfigError(f"advertised.listeners: {unknown[0]} is not one of listeners")
    return tuple(
        stated.get(item.name, Listener(item.name, item.host or "localhost", item.port))
        for item in listeners
    )


def _inter_broker_listener(
    given: Mapping[str, str],
    listeners: tuple[Listener, ...],
    controller_names: tuple[str, ...],
    roles: frozenset[str],
) -> str:
    if "broker" not in roles:
        return ""
    names = [item.name for item in listeners if item.name not in controller_names]
    wanted = given.get(
        "inter.broker.listener.name", "PLAINTEXT" if "PLAINTEXT" in names else names[0]
    )
    if wanted not in names:
        raise ConfigError(f"inter.broker.listener.name: {wanted} is not one of listeners")
    return wanted


def _check_own_vote(node_id: int, roles: frozenset[str], voters: tuple[Endpoint, ...]) -> None:
    """With static voters, the controllers are the voters: one too many would wait for ever."""
    ids = [voter.node_id for voter in voters]
    if "controller" in roles and voters and node_id not in ids:
        raise ConfigError(
            f"node.id={node_id} is a controller but not one of controller.quorum.voters, which are "
            f"{ids}: correct node.id or the voters"
        )
    if "controller" not in roles and node_id in ids:
        raise ConfigError(
            f"node.id={node_id} is one of controller.quorum.voters but no controller: "
            "correct node.id, or add controller to process.roles"
        )


def _quorum(given: Mapping[str, str]) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    key = "controller.quorum.voters"
    voters: list[Endpoint] = []
    for text in _names(given.get(key)):
        node, separator, address = text.partition("@")
        if not separator or not node.isdigit():
            raise ConfigError(f"{key}: {text!r} is not id@host:port")
        voters.append(Endpoint(int(node), *host_and_port(address, key)))
    key = "controller.quorum.bootstrap.servers"
    bootstrap = [host_and_port(text, key) for text in _names(given.get(key))]
    if not voters and not bootstrap:
        raise ConfigError(
            "controller.quorum.voters is missing: name the controllers as id@host:port,…, or, "
            "where the voters live in the log, some as controller.quorum.bootstrap.servers"
        )
    ids = [voter.node_id for voter in voters]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"controller.quorum.voters: a node id stands there twice: {ids}")
    # Kafka numbers servers whose id is unknown from -2 downwards.
    return tuple(voters), tuple(
        Endpoint(-2 - index, host, port) for index, (host, port) in enumerate(bootstrap)
    )
