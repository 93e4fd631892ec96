"""Who may read a node's pages, and how the node itself asks those of others.

    quorumlab.http.tls=true          with the certificate of ssl.keystore.*, or, if they are given,
                                     of listener.name.http.ssl.keystore.*
    quorumlab.http.auth=basic        users of quorumlab.http.users.file, a line each: NAME:PASSWORD
    quorumlab.http.auth=bearer       tokens of quorumlab.http.token.file, a line each

Health checks are for everybody: what restarts a node that hangs has no password. A node shows to
others what stands first in its own file, which the nodes of a cluster have in common.
"""

import ssl
import stat
from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from quorumlab.config import NodeConfig
from quorumlab.mode_config import ConfigError
from quorumlab.security.tls_settings import server_tls, stores_of
from wire.http import HttpSecurity

if TYPE_CHECKING:
    from jepsen_like.real.pages import PageAccess

__all__ = ["HEALTH_PATHS", "http_security", "page_access_of", "warning"]

HEALTH_PATHS = ("/livez", "/readyz", "/v1/ready", "/v1/controller-ready")
_AUTH, _TLS = "quorumlab.http.auth", "quorumlab.http.tls"
_FILES: Mapping[str, tuple[str, str]] = {  # of ways to authenticate: the key, and a line
    "basic": ("quorumlab.http.users.file", "NAME:PASSWORD"),
    "bearer": ("quorumlab.http.token.file", "a token"),
}
_NONE = "none"
_LISTENER = "HTTP"


def http_security(config: NodeConfig) -> HttpSecurity:
    """Raises ConfigError."""
    tls = _server_tls(config) if config.flag(_TLS) else None
    way = config.text(_AUTH) or _NONE
    if way == _NONE:
        return HttpSecurity(tls=tls)
    secrets = tuple(_shown(way, line) for line in _lines(config, way))
    return HttpSecurity(tls=tls, scheme=way.capitalize(), secrets=secrets, open_paths=HEALTH_PATHS)


def page_access_of(config: NodeConfig) -> "PageAccess":
    """How this node's own credentials open the pages of others. Raises ConfigError."""
    from jepsen_like.real.pages import PageAccess  # once somebody looks at the page

    way = config.text(_AUTH) or _NONE
    shown = ""
    if way != _NONE:
        shown = f"{way.capitalize()} {_shown(way, _lines(config, way)[0]).decode()}"
    return PageAccess(authorization=shown, authorities=_authorities(config))


def warning(config: NodeConfig) -> str | None:
    """What anybody in the network may read."""
    if config.text(_AUTH) not in (None, _NONE) or _is_loopback(config.http_host):
        return None
    return (
        f"quorumlab.http.listener={config.http_host}:{config.http_port} is open to the network, "
        f"and {_AUTH}=none: set it to basic or bearer"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _lines(config: NodeConfig, way: str) -> list[str]:
    """Nothing is told of what stands in the file."""
    if way not in _FILES:
        raise ConfigError(f"{_AUTH}={way}: one of {_NONE}, {', '.join(_FILES)}")
    key, expected = _FILES[way]
    name = config.text(key)
    if not name:
        raise ConfigError(f"{_AUTH}={way}: set {key} to a file that has {expected} a line")
    path = Path(name)
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise ConfigError(f"{key}={name}: others may read it: `chmod 600 {name}`")
        lines = [line.strip() for line in path.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}={name}: cannot be read: {error}") from error
    found = [line for line in lines if line and not line.startswith("#")]
    if not found or (way == "basic" and not all(":" in line for line in found)):
        raise ConfigError(f"{key}={name}: expected {expected} a line")
    return found


def _shown(way: str, line: str) -> bytes:
    """What stands behind the scheme in a request's header."""
    return b64encode(line.encode()) if way == "basic" else line.encode()


def _server_tls(config: NodeConfig) -> ssl.SSLContext:
    """Nobody has to show a certificate: who asks shows a password or a token."""
    context = server_tls(config, _LISTENER).context
    context.verify_mode = ssl.CERT_NONE
    return context


def _authorities(config: NodeConfig) -> str | None:
    """Who signs the certificates of other nodes; empty: whom this machine trusts."""
    if not config.flag(_TLS):
        return None
    from quorumlab.security.store_texts import trusted_pem
    from wire.security.stores import StoreError

    store = stores_of(config, _LISTENER).trust_store
    try:
        return trusted_pem(store) if store.is_given else ""
    except StoreError as error:
        raise ConfigError(f"{_TLS}: {error}") from error
