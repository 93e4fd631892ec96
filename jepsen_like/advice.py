"""The command lines that messages advise: pasted into a shell, they mean what they say."""

import shlex

__all__ = ["command"]


def command(*words: object) -> str:
    """A command line of quorumlab; a directory in it may have spaces."""
    return shlex.join(["quorumlab", *map(str, words)])
