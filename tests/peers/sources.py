"""Where the sources of other people's suites are kept, and how a command fetches them."""

import subprocess
from pathlib import Path

__all__ = ["CACHE", "MissingError", "run"]

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "peers"
_SECONDS_MAX = 1800.0


class MissingError(RuntimeError):
    """A suite cannot be had; the message says which command failed, and with what."""


def run(*command: str, cwd: Path) -> None:
    """Raises MissingError."""
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise MissingError(f"{' '.join(command)}: {said[-1] if said else done.returncode}")
