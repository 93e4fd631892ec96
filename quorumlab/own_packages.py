"""Are the packages that Python finds by our names ours?

Their names are common words, and stand at the top: a file of the user's on PYTHONPATH, or another
distribution, may have one of them, too.
"""

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

__all__ = ["foreign", "overwritten"]

_NAMES = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark")
_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def foreign(names: Sequence[str] = _NAMES) -> str:
    """What stands in the place of one of our packages, and what to do; nothing if all are ours."""
    return next(_found_elsewhere(names), "")


def overwritten(error: ImportError) -> str:
    """Another distribution may also have put its files over ours. Nothing if that is not why."""
    name = (error.name or "").partition(".")[0]
    if name not in _NAMES or os.path.exists(os.path.join(_ROOT, "pyproject.toml")):
        return ""
    return (
        f"{error}: another distribution has a package {name}, too, and its files are among ours in "
        f"{os.path.join(_ROOT, name)}: install quorumlab into a virtual environment of its own"
    )


def _found_elsewhere(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        place = _place_of(name)
        if place and os.path.realpath(place) != os.path.join(_ROOT, name, "__init__.py"):
            yield (
                f"Python finds {place} in the place of quorumlab's package {name}: rename it, "
                "take its directory off PYTHONPATH, or install quorumlab into a virtual "
                "environment of its own"
            )


def _place_of(name: str) -> str:
    """The file, or the directory where that has no `__init__.py`."""
    spec = find_spec(name)
    if spec is None:
        return ""
    return spec.origin or next(iter(spec.submodule_search_locations or ()), "")
