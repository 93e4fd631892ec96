"""Effects and events about the dynamic configs of a node, between its core and its driver."""

from collections.abc import Mapping

from quorum.core.effects import Answer, Effect
from quorum.core.types import Token

__all__ = ["CheckConfigs", "ConfigsChanged", "ConfigsChecked"]


class ConfigsChanged(Effect):
    """The node's own dynamic configs are these now; some may have been set to the same again."""

    values: Mapping[str, str]


class CheckConfigs(Effect):
    """Could the node go by these dynamic configs? `ConfigsChecked` says so; nothing is changed."""

    token: Token
    values: Mapping[str, str]


class ConfigsChecked(Answer):
    problem: str | None  # why not
