"""Messages about foreign packages that have the names of ours.

Our names are common words at the top level: a file of the user's on PYTHONPATH, or another
distribution, may have one of them, too. Nothing of those packages is imported here, for it might
not be ours.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["foreign", "overwritten"]

_NAMES = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark")
_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def foreign(names: Sequence[str] = _NAMES) -> str:
    """Names what Python finds in the place of one of our packages; empty if all are ours."""
    for name in names:
        place = _place_of(name)
        if place and os.path.realpath(place) != os.path.join(_ROOT, name, "__init__.py"):
            return (
                f"Python finds {place} in the place of quorumlab's package {name}: rename it, "
                "take its directory off PYTHONPATH, or install quorumlab into a virtual "
                "environment of its own"
            )
    return ""


def overwritten(error: ImportError) -> str:
    """Names the package of ours that another distribution has put files into; empty if none."""
    name = (error.name or "").partition(".")[0]
    if name not in _NAMES or os.path.exists(os.path.join(_ROOT, "pyproject.toml")):
        return ""
    return (
        f"{error}: another distribution has a package {name}, too, and its files are among ours in "
        f"{os.path.join(_ROOT, name)}: install quorumlab into a virtual environment of its own"
    )


def _place_of(name: str) -> str:
    """Its file, or its directory if that has no `__init__.py`; empty if there is none."""
    spec = find_spec(name)
    if spec is None:
        return ""
    return spec.origin or next(iter(spec.submodule_search_locations or ()), "")
