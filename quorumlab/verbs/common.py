"""Options that several verbs share: the cluster, the format, and values that are refused."""

from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from quorumlab.arguments import UsageError, did_you_mean

__all__ = [
    "BROKERS",
    "COMMAND_CONFIG",
    "DEFAULT_DIRECTORY",
    "DIRECTORY",
    "SECURITY",
    "addresses",
    "in_bounds",
    "one_of",
    "pairs",
    "take_defaults",
]

DEFAULT_DIRECTORY = "data"
_PORTS = range(1, 65_536)


# Lines of tables of options: see `quorumlab.arguments.declare`.
BROKERS = "--bootstrap-server HOST:PORT,…  brokers to ask"
COMMAND_CONFIG = "--command-config FILE  a client.properties, with its TLS and SASL"
SECURITY = (
    "--security ssl|sasl_plaintext|sasl_ssl  what clients speak, who then may do what ACLs allow; "
    "nodes show each other certificates, which are made (default: PLAINTEXT)"
)
DIRECTORY = f"--dir D  the cluster's directory (default: ./{DEFAULT_DIRECTORY})"


def take_defaults(args: SimpleNamespace, defaults: Mapping[str, Any]) -> None:
    """Give options a default that is not declared, so that it is known which ones were given."""
    for name, value in defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def in_bounds(args: SimpleNamespace, **bounds: tuple[int, int]) -> None:
    """Raises UsageError for an option that is given and lies outside its bounds, both inclusive."""
    for name, (least, most) in bounds.items():
        value = getattr(args, name)
        if value is not None and not least <= value <= most:
            raise UsageError(f"--{name.replace('_', '-')} {value}: from {least} to {most}")


def one_of(known: Collection[str], option: str, value: str) -> None:
    """Raises UsageError, which names the nearest known value."""
    if value not in known:
        nearest = did_you_mean(value, known)
        raise UsageError(f"{option} {value}: {nearest}one of {', '.join(known)}")


def pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Each is KEY=VALUE. Raises UsageError."""
    found = []
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise UsageError(f"{option} {text}: expected KEY=VALUE")
        found.append((key, value))
    return found


def addresses(text: str, option: str) -> list[tuple[str, int]]:
    """`host:port,…`, as an option has it."""
    servers = []
    for address in text.split(","):
        host, separator, port = address.strip().rpartition(":")
        if not separator or not port.isdecimal() or int(port) not in _PORTS:
            raise UsageError(f"{option}: {address!r} is not host:port")
        servers.append((host.strip("[]"), int(port)))
    return servers
