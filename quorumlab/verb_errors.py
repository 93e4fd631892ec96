"""How a verb ends that cannot do what it is for: the message is all that the user is told."""

__all__ = ["Failed", "UsageError"]


class Failed(Exception):
    """The verb has failed, and its message says all: exit code 1."""


class UsageError(Exception):
    """The command line asks for something that cannot be: exit code 2."""
