"""How a node's connections are secured while it runs: stores, users and limits may change.

Dynamic configs of the broker win over its file. New connections are secured as they say, those of
before live on. So it is with users of PLAIN (Apache Kafka 4.3.1 takes such a change, and does not
use it), whose sessions are renewed by the new ones. Files are read again whenever one of these
configs is set, to the same path, too. What cannot be loaded changes nothing, and is told in one
line: the broker that is asked for such a change tries it first, and refuses it.

Source: KIP-226; Kafka's DynamicListenerConfig.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from controller.metadata.config_keys import BROKER_KEYS, Update
from controller.metadata.tls_keys import SECURITY_NAMES
from quorum.core.config_effects import CheckConfigs, ConfigsChanged, ConfigsChecked
from quorum.node.driver import Driver
from quorum.node.listening import Listener
from quorumlab.config import NodeConfig
from quorumlab.listener_protocols import bare_key
from quorumlab.mode_config import ConfigError
from quorumlab.security.certificate_names import CertificateNames, certificate_names, check_names
from quorumlab.security.connection_security import client_security
from quorumlab.security.driver_listeners import driver_listeners
from quorumlab.security.scram_users import ScramUsers
from quorumlab.security.trial_handshake import Ends, check_handshakes, ends_between_brokers
from wire.security.protocols import ClientSecurity

__all__ = ["ChangingSecurity"]

_CHANGEABLE = frozenset(
    name for name in SECURITY_NAMES if BROKER_KEYS[name].update is not Update.READ_ONLY
)


class _Planned(NamedTuple):
    client: Callable[[str], ClientSecurity]
    listeners: list[Listener]
    shown: dict[str, CertificateNames]
    ends: Ends | None


class ChangingSecurity:
    """Raises ConfigError if what the file says cannot be used."""

    def __init__(self, config: NodeConfig, users: ScramUsers, say: Callable[[str], None]) -> None:
        self._config = config
        self._users = users
        self._say = say
        self._client_security = client_security(config)
        self._shown = certificate_names(config)
        self._ends = ends_between_brokers(config)
        if self._ends is not None:
            check_handshakes(self._ends, self._ends)
        self._driver: Driver | None = None
        self._values: dict[str, str] = {}  # dynamic ones, as last told

    def client(self, channel: str) -> ClientSecurity:
        return self._client_security(channel)

    def follow(self, driver: Driver) -> None:
        """Have the driver's listeners obey what its core tells of configs."""
        self._driver = driver
        driver.perform_with(ConfigsChanged, self._change)
        driver.perform_with(CheckConfigs, self._check)

    def _change(self, changed: ConfigsChanged) -> None:
        assert self._driver is not None, "nobody is followed"
        values = _of_security(changed.values)
        if not (values or self._values):
            return
        self._values = values
        try:
            planned = self._plan(values)
        except ConfigError as error:
            self._say(f"security stays as it was: {error}")
            return
        self._client_security, self._shown = planned.client, planned.shown
        self._ends = planned.ends
        for listener in planned.listeners:
            self._driver.secure(listener)
        self._say("security of new connections is as the dynamic configs of the node say")

    def _check(self, check: CheckConfigs) -> None:
        assert self._driver is not None, "nobody is followed"
        problem = None
        try:
            self._plan(_of_security(check.values))
        except ConfigError as error:
            problem = str(error)
        self._driver.hear(ConfigsChecked(token=check.token, problem=problem))

    def _plan(self, values: Mapping[str, str]) -> _Planned:
        """Load what the values name. Raises ConfigError."""
        config = replace(self._config, given={**self._config.given, **values})
        ends = ends_between_brokers(config)
        if ends is not None and self._ends is not None:
            check_handshakes(self._ends, ends)
        return _Planned(
            client=client_security(config),
            listeners=driver_listeners(config, self._users),
            shown={name: check_names(config, name, old) for name, old in self._shown.items()},
            ends=ends,
        )


def _of_security(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if bare_key(key) in _CHANGEABLE}
