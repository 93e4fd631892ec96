"""How this copy of quorumlab was installed, and the command lines that messages advise."""

import shlex
from pathlib import Path

__all__ = ["ROOT", "command", "has_history", "install_command"]

ROOT = Path(__file__).resolve().parent.parent  # the folder that holds our packages


def install_command(extra: str) -> str:
    """The command that installs an extra, in backquotes, for a message."""
    if (ROOT / "pyproject.toml").exists():
        return f"`pip install -e '.[{extra}]'` in the clone"
    return f"`pip install 'quorumlab[{extra}]'`"


def has_history() -> bool:
    """Is git's answer here about us? A wheel may be installed inside a repository of the user's."""
    return (ROOT / ".git").exists()


def command(*words: object) -> str:
    """A command line that can be pasted into a shell: a directory in it may have spaces."""
    return shlex.join(["quorumlab", *map(str, words)])
