"""The scenarios that come with quorumlab, in the order in which they teach."""

from importlib.resources import files

from jepsen_like.scenarios.script import Script, parse

__all__ = ["names", "scenario"]

_SUFFIX = ".txt"


def names() -> list[str]:
    """Without the suffix; each begins with its number."""
    return sorted(
        each.name.removesuffix(_SUFFIX)
        for each in files(__package__).iterdir()
        if each.name.endswith(_SUFFIX)
    )


def scenario(name: str) -> Script:
    text = files(__package__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")
    return parse(name + _SUFFIX, text)
