"""Commands of the system that a fault is made with."""

import subprocess
from collections.abc import Sequence

from jepsen_like.real.layout import ClusterError

__all__ = ["run"]

_SECONDS = 20


def run(arguments: Sequence[str], *, told: str = "") -> str:
    """What it prints, `told` so much on its standard input. Raises ClusterError with its words."""
    done = subprocess.run(
        arguments, input=told, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
