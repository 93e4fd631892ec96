"""SASL as server.properties has it: which mechanisms a listener takes, and what is shown to peers.

A listener's mechanisms are in `sasl.enabled.mechanisms`; users of PLAIN stand in its login module
(`user_NAME`), those of SCRAM in the metadata log, and tokens of OAUTHBEARER are checked against
`sasl.oauthbearer.jwks.endpoint.url`. A node shows its peers what the login module of their listener
says: `username` and `password`, or `token`.

SCRAM between controllers cannot start: a controller knows of a user only what is committed, and to
commit anything, controllers must have spoken to each other. Brokers may use it towards controllers,
with a user of `format --add-scram`.

Source: Kafka's JaasContext, SaslConfigs, BrokerSecurityConfigs; KIP-900.
"""

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from quorumlab.config import ConfigError, NodeConfig
from quorumlab.listener_protocols import (
    MECHANISMS,
    mechanism_key,
    of_listener,
    of_mechanism,
)
from quorumlab.security.jaas import JaasEntry, parse_jaas
from quorumlab.security.scram_users import ScramUsers
from wire.security.authentication import SaslListener, SaslMechanism
from wire.security.client_authentication import SaslLogin
from wire.security.exchanges import ClientExchange, ServerExchange
from wire.security.plain import PLAIN, PlainClient, PlainServer
from wire.security.scram import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    Hash,
    ScramClient,
    ScramServer,
)

__all__ = ["sasl_listener", "sasl_login"]

_ENABLED = "sasl.enabled.mechanisms"
_JAAS = "sasl.jaas.config"
_REAUTH = "connections.max.reauth.ms"
_JWKS = "sasl.oauthbearer.jwks.endpoint.url"
_TO_CONTROLLERS = "sasl.mechanism.controller.protocol"
_BETWEEN_BROKERS = "sasl.mechanism.inter.broker.protocol"
_SCRAM = {family.mechanism: family for family in (SCRAM_SHA_256, SCRAM_SHA_512)}


def sasl_listener(config: NodeConfig, listener: str, users: ScramUsers) -> SaslListener:
    """What a listener that uses SASL asks of its clients. Raises ConfigError."""
    given = of_listener(config.given, listener, _ENABLED) or config.text(_ENABLED) or ""
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"{_ENABLED} is empty, but listener {listener} uses SASL")
    return SaslListener(
        mechanisms={
            name: SaslMechanism(
                begin=_server_exchange(config, listener, name, users),
                session_ms=_session_ms(config, listener, name),
            )
            for name in names
        },
        timeout_seconds=config.number("quorumlab.sasl.timeout.ms") / 1000,
        failure_delay_seconds=config.number("connection.failed.authentication.delay.ms") / 1000,
        received_bytes_max=config.number("sasl.server.max.receive.size"),
    )


def _session_ms(config: NodeConfig, listener: str, mechanism: str) -> int:
    text = of_mechanism(config.given, listener, mechanism, _REAUTH) or "0"
    try:
        return int(text)
    except ValueError as error:
        raise ConfigError(f"{_REAUTH}={text}: expected a whole number") from error


def _server_exchange(
    config: NodeConfig, listener: str, mechanism: str, users: ScramUsers
) -> Callable[[], ServerExchange]:
    _check(mechanism, _ENABLED)
    if mechanism == PLAIN:
        return partial(PlainServer, _jaas(config, listener, mechanism).users)
    if mechanism in _SCRAM:
        if config.design is not None:
            raise ConfigError(f"{_ENABLED}: {mechanism} needs a quorum, whose log has the users")
        return partial(_scram_server, _SCRAM[mechanism], users)
    return _oauthbearer_server(config, listener)


def _scram_server(family: Hash, users: ScramUsers) -> ScramServer:
    return ScramServer(
        family,
        partial(users.credential, family),
        nonce=_nonce(),
        decoy_of=partial(users.decoy, family),
    )


def _nonce() -> str:
    return secrets.token_urlsafe(24)


def _oauthbearer_server(config: NodeConfig, listener: str) -> Callable[[], ServerExchange]:
    # Loaded by those who use it: the cryptography behind it takes a while.
    from quorumlab.security.jwks import JwksAddress, JwksFile
    from wire.security.oauthbearer import KeysOf, OauthbearerServer, TokenRules

    def setting(name: str) -> str:
        key = f"sasl.oauthbearer.{name}"
        own = of_mechanism(config.given, listener, "OAUTHBEARER", key)
        return str(config.values[key] or "") if own is None else own

    url = setting("jwks.endpoint.url")
    try:
        if urlsplit(url).scheme == "file":
            keys: KeysOf = JwksFile(url)
        elif urlsplit(url).scheme in ("http", "https"):
            keys = JwksAddress(url, int(setting("jwks.endpoint.refresh.ms")) / 1000)
        else:
            raise ConfigError(
                f"{_JWKS}={url}: OAUTHBEARER needs public keys from a file:// or http(s):// address"
            )
        rules = TokenRules(
            audiences=tuple(filter(None, map(str.strip, setting("expected.audience").split(",")))),
            issuer=setting("expected.issuer"),
            clock_skew_seconds=int(setting("clock.skew.seconds")),
            subject_claim=setting("sub.claim.name"),
            scope_claim=setting("scope.claim.name"),
        )
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"OAUTHBEARER on listener {listener}: {url}: {error}") from error
    return partial(OauthbearerServer, keys, rules)


def sasl_login(config: NodeConfig, listener: str) -> SaslLogin:
    """What this node shows where it dials that listener of others. Raises ConfigError."""
    is_control = listener in config.controller_listeners
    key = _TO_CONTROLLERS if is_control else _BETWEEN_BROKERS
    mechanism = of_listener(config.given, listener, key) or config.text(key) or ""
    _check(mechanism, key)
    if is_control and mechanism in _SCRAM and config.is_controller:
        _check_starts_alone(config, key, mechanism)
    return SaslLogin(mechanism=mechanism, begin=_client_exchange(config, listener, mechanism))


def _check_starts_alone(config: NodeConfig, key: str, mechanism: str) -> None:
    if len(config.voters or config.bootstrap_servers) > 1:
        raise ConfigError(
            f"{key}={mechanism}: controllers cannot authenticate to each other by SCRAM, whose "
            "users they know only once they have a leader: use PLAIN or OAUTHBEARER, or SSL"
        )


def _client_exchange(
    config: NodeConfig, listener: str, mechanism: str
) -> Callable[[], ClientExchange]:
    entry = _jaas(config, listener, mechanism)
    if mechanism not in (PLAIN, *_SCRAM):
        return _oauthbearer_client(config, listener, entry)
    user, password = entry.options.get("username"), entry.options.get("password")
    if user is None or password is None:
        key = mechanism_key(listener, mechanism, _JAAS)
        raise ConfigError(f"{key}: this node dials that listener: it needs username and password")
    if mechanism == PLAIN:
        return partial(PlainClient, user, password)
    family = _SCRAM[mechanism]
    return lambda: ScramClient(family, user, password, nonce=_nonce())


def _oauthbearer_client(
    config: NodeConfig, listener: str, entry: JaasEntry
) -> Callable[[], ClientExchange]:
    """A token that stands in the login module, or in a file that others keep fresh."""
    from wire.security.oauthbearer import OauthbearerClient

    token = entry.options.get("token")
    if token is not None:
        return partial(OauthbearerClient, token)
    key = "sasl.oauthbearer.token.endpoint.url"
    url = of_mechanism(config.given, listener, "OAUTHBEARER", key) or config.text(key) or ""
    if urlsplit(url).scheme != "file":
        raise ConfigError(
            f"{key}={url}: tokens come from a file:// address, or as token in "
            f"{mechanism_key(listener, 'OAUTHBEARER', _JAAS)}"
        )
    path = Path(unquote(urlsplit(url).path))
    return lambda: OauthbearerClient(path.read_text().strip())


def _jaas(config: NodeConfig, listener: str, mechanism: str) -> JaasEntry:
    """The login module of a mechanism on a listener. Raises ConfigError."""
    key = mechanism_key(listener, mechanism, _JAAS)
    text = config.given.get(key)
    if text is None:
        raise ConfigError(f"{key} is missing: it names the login module of {mechanism}")
    try:
        entry = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from error
    wanted = _MODULES.get(mechanism, "ScramLoginModule")
    if entry.module != wanted:
        raise ConfigError(f"{key}: {mechanism} needs the login module {wanted}")
    return entry


_MODULES = {PLAIN: "PlainLoginModule", "OAUTHBEARER": "OAuthBearerLoginModule"}


def _check(mechanism: str, key: str) -> None:
    if mechanism not in MECHANISMS:
        raise ConfigError(f"{key}: {mechanism} is not served; choose of {', '.join(MECHANISMS)}")
