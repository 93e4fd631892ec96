"""Command lines and environments of our Python processes, safe from the current directory.

`python -m` and `python -c` look into the current directory first. A user's own `broker.py` would
be imported there in the place of our package, and a `selectors.py` in the place of Python's. So
every child, and every child of a child, leaves the current directory out (Python's -P), and finds
our packages where its parent has found them.
"""

import os
import site
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jepsen_like.installation import ROOT

__all__ = [
    "python_command",
    "python_environment",
    "python_script",
    "python_variables",
    "with_variables",
]


def python_command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", module, *arguments]


def python_script(script: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-P", str(script), *arguments]


def python_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {**environment, **python_variables(environment)}


def python_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment variables by which a child, and its children, find modules.

    Python's own folders are not named: a child looks there anyway, and PYTHONPATH would put them
    before the standard library.
    """
    given = environment.get("PYTHONPATH", "")
    paths = given.split(os.pathsep) if given else []
    pythons_own = (*site.getsitepackages(), site.getusersitepackages())
    if ROOT not in (Path(each).resolve() for each in pythons_own) and str(ROOT) not in paths:
        paths.insert(0, str(ROOT))
    variables = {"PYTHONSAFEPATH": "1"}
    return variables | ({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})


@contextmanager
def with_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets them in this process, for children that a library starts in its environment."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
