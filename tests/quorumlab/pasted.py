"""Checks that the commands which a message advises can be pasted into a shell."""

import re
import shlex
from pathlib import Path

from quorumlab.arguments import parse
from quorumlab.cli import root

__all__ = ["pasted"]


def pasted(text: str) -> list[list[str]]:
    """The words of each command between backquotes; fails for one that cannot be parsed."""
    commands = [shlex.split(each) for each in re.findall("`(quorumlab [^`]+)`", text)]
    for _, *words in commands:
        parse(root(), words)
        if "--dir" in words:
            assert Path(words[words.index("--dir") + 1]).is_absolute(), words
    return commands
