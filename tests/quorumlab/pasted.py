"""Checks that the commands which a message advises can be pasted into a shell."""

import re
import shlex
from pathlib import Path

from quorumlab.cli import _parser
from quorumlab.verbs.inspect import with_default_verb

__all__ = ["pasted"]


def pasted(text: str) -> list[list[str]]:
    """The words of each command between backquotes; fails for one that cannot be parsed."""
    commands = [shlex.split(each) for each in re.findall("`(quorumlab [^`]+)`", text)]
    for _, *words in commands:
        given = with_default_verb(words) if words[0] == "inspect" else words
        _parser().parse_args(given)
        if "--dir" in words:
            assert Path(words[words.index("--dir") + 1]).is_absolute(), words
    return commands
