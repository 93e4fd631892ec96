"""server.properties: what a node is told, in Kafka's own keys.

Decides what a key means and which values are refused. A stock file works unchanged: keys that
Kafka knows and we do not use are named once in a warning, as are unknown ones. Every key may also
come from the environment as Kafka's images have it (`KAFKA_NODE_ID` for `node.id`), which wins.

Source: Kafka's configuration reference; `quorumlab.*` keys are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
from quorumlab.listed_principals import node_principals, super_users
from quorumlab.listener_protocols import (
    INTER_BROKER_PROTOCOL,
    PROTOCOL_MAP,
    bare_key,
    protocols_of,
)
from quorumlab.listeners import (
    Listener,
    advertised_listeners,
    host_and_port,
    inter_broker_listener,
    names_in,
    own_listeners,
)
from quorumlab.mode_config import ConfigError, design_of, raftos_addresses, zookeeper_given
from wire.security.security_protocol import SecurityProtocol
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
        *(_of_kafka(key) for key in NODE_KEYS),
        _of_kafka(BROKER_KEYS["group.consumer.assignment.interval.ms"]),
        _of_kafka(BROKER_KEYS["max.connection.creation.rate"]),
        # What the node is, and where it listens.
        Property("broker.id", int, None, 0),  # what node.id is called in ZooKeeper mode
        Property("cluster.id", str, None),
        Property("listeners", str, None),
        Property(PROTOCOL_MAP, str, None),
        Property(INTER_BROKER_PROTOCOL, str, None),
        # SASL: see quorumlab.security.sasl.
        Property("sasl.enabled.mechanisms", str, "GSSAPI"),
        Property("sasl.jaas.config", str, None),
        Property("sasl.mechanism.inter.broker.protocol", str, "GSSAPI"),
        Property("quorumlab.sasl.timeout.ms", int, 10_000, 1),  # for an exchange from its start
        # The same on all nodes; a password: see quorumlab.security.scram_users.
        Property("quorumlab.scram.decoy.secret", str, ""),
        # A listener's patience with those whom nobody knows yet.
        Property("quorumlab.tls.handshake.timeout.ms", int, 10_000, 1),
        Property("quorumlab.first.request.timeout.ms", int, 30_000, 1),
        Property("quorumlab.http.listener", str, "127.0.0.1:0"),  # port 0: any free one
        # Where all nodes of the cluster have that listener, this one too: id@host:port,... Nothing
        # but the page of the cluster needs it: each node serves that, of all of them.
        Property("quorumlab.http.nodes", str, ""),
        *(Property(f"quorumlab.http.{key}", str, None) for key in ("users.file", "token.file")),
        Property("quorumlab.http.auth", str, "none"),  # see quorumlab.http_settings
        Property("quorumlab.http.tls", bool, False),
        # Who may do what: see security/authorization.py. Any authorizer.class.name is the same.
        Property("super.users", str, ""),
        Property("allow.everyone.if.no.acl.found", bool, False),
        Property("quorumlab.node.principals", str, ""),  # 1=User:CN=broker-1;2=...
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node, validated. `values` holds every property of PROPERTIES, typed."""

    roles: frozenset[str]
    node_id: int
    listeners: tuple[Listener, ...]  # where we bind
    advertised: tuple[Listener, ...]  # what others are told, same names
    controller_listeners: tuple[str, ...]  # controller.listener.names: nodes dial the first
    protocols: Mapping[str, SecurityProtocol]  # of every listener, the controllers' too
    inter_broker_listener: str
    voters: tuple[Endpoint, ...]
    bootstrap_servers: tuple[Endpoint, ...]  # ids are negative: not known
    log_dirs: tuple[Path, ...]
    metadata_dir: Path
    http_host: str
    http_port: int
    http_nodes: Mapping[int, tuple[str, int]]  # by node id, in the order given; may be empty
    values: Mapping[str, int | str | bool | None] = field(repr=False)
    dial_overrides: Mapping[tuple[str, int], tuple[str, int]]
    # The file as it stands: the defaults beneath dynamic configs. It may hold passwords.
    given: Mapping[str, str] = field(repr=False)
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
    def controller_listener(self) -> str:
        """The one on which nodes talk to controllers; empty in ZooKeeper mode."""
        return self.controller_listeners[0] if self.controller_listeners else ""

    @property
    def advertised_brokers(self) -> tuple[Listener, ...]:
        """The listeners of the broker, which it registers."""
        return tuple(each for each in self.advertised if each.name not in self.controller_listeners)

    @property
    def advertised_controllers(self) -> tuple[Listener, ...]:
        """The listeners where the quorum finds this node; empty unless it is a controller."""
        return tuple(each for each in self.advertised if each.name in self.controller_listeners)

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
        raise ConfigError(
            f"cannot read {path}: {error.strerror}; name a server.properties by --config"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is no text in UTF-8 ({error.reason})") from error
    return node_config(parse_properties(text) | from_environment(environment))


def node_config(given: Mapping[str, str]) -> NodeConfig:
    design = design_of(given)
    if design is not None:
        given = zookeeper_given(given, design)
    values = {key: _typed(item, given.get(key)) for key, item in PROPERTIES.items()}
    _check_topic_defaults(given)
    _check_principals(values)
    roles = _roles(given)
    _check_application(values["quorumlab.application"], roles)
    controller_names = names_in(given.get("controller.listener.names"))
    if not controller_names and design is None:
        raise ConfigError("controller.listener.names is missing: name the controllers' listener")
    listeners = own_listeners(given, roles, controller_names)
    protocols = protocols_of(given, [each.name for each in listeners], controller_names)
    advertised = advertised_listeners(given, listeners)
    http_host, http_port = host_and_port(
        str(values["quorumlab.http.listener"]), "quorumlab.http.listener"
    )
    voters, bootstrap_servers = _quorum(given) if design is None else ((), ())
    node_id = _required_number(values, "node.id")
    _check_own_vote(node_id, roles, voters)
    log_dirs = tuple(
        Path(name) for name in names_in(given.get("log.dirs") or str(values["log.dir"]))
    )
    return NodeConfig(
        roles=roles,
        node_id=node_id,
        listeners=listeners,
        advertised=advertised,
        controller_listeners=controller_names,
        protocols=protocols,
        inter_broker_listener=inter_broker_listener(
            given, listeners, controller_names, roles, protocols
        ),
        voters=voters,
        bootstrap_servers=bootstrap_servers,
        log_dirs=log_dirs,
        metadata_dir=Path(given["metadata.log.dir"])
        if "metadata.log.dir" in given
        else log_dirs[0],
        http_host=http_host,
        http_port=http_port,
        http_nodes=_by_node_id(str(values["quorumlab.http.nodes"]), "quorumlab.http.nodes"),
        values=values,
        dial_overrides=_dial_overrides(str(values["quorumlab.dial.overrides"])),
        given=dict(given),
        raftos_addresses=raftos_addresses(given, roles, voters),
        design=design,
        warnings=_warnings(given),
    )


def _warnings(given: Mapping[str, str]) -> tuple[str, ...]:
    known = set(PROPERTIES) | TOPIC_DEFAULTS | _SILENT
    ignored = sorted(key for key in given if bare_key(key) not in known)
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


def _check_principals(values: Mapping[str, int | str | bool | None]) -> None:
    for key, parse in (
        ("super.users", super_users),
        ("quorumlab.node.principals", node_principals),
    ):
        try:
            parse(str(values[key]))
        except ValueError as error:
            raise ConfigError(f"{key}: {error}") from error


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
    names = names_in(given.get("process.roles"))
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


def _required_number(values: Mapping[str, int | str | bool | None], key: str) -> int:
    value = values[key]
    if not isinstance(value, int):
        raise ConfigError(f"{key} is missing")
    return value


def _by_node_id(raw: str | None, key: str) -> dict[int, tuple[str, int]]:
    """Reads id@host:port,... in its order."""
    found: list[tuple[int, tuple[str, int]]] = []
    for text in names_in(raw):
        node, separator, address = text.partition("@")
        if not separator or not node.isdecimal():
            raise ConfigError(f"{key}: {text!r} is not id@host:port")
        found.append((int(node), host_and_port(address, key)))
    ids = [node_id for node_id, _ in found]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{key}: a node id stands there twice: {ids}")
    return dict(found)


def _dial_overrides(raw: str) -> dict[tuple[str, int], tuple[str, int]]:
    key = "quorumlab.dial.overrides"
    overrides = {}
    for text in names_in(raw):
        address, separator, instead = text.partition("=")
        if not separator:
            raise ConfigError(f"{key}: {text!r} is not host:port=host:port")
        overrides[host_and_port(address, key)] = host_and_port(instead, key)
    return overrides


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
    addresses = _by_node_id(given.get(key), key)
    voters = tuple(Endpoint(node_id, *address) for node_id, address in addresses.items())
    key = "controller.quorum.bootstrap.servers"
    bootstrap = [host_and_port(text, key) for text in names_in(given.get(key))]
    if not voters and not bootstrap:
        raise ConfigError(
            "controller.quorum.voters is missing: name the controllers as id@host:port,…, or, "
            "where the voters live in the log, some as controller.quorum.bootstrap.servers"
        )
    # Kafka numbers servers whose id is unknown from -2 downwards.
    return voters, tuple(
        Endpoint(-2 - index, host, port) for index, (host, port) in enumerate(bootstrap)
    )
