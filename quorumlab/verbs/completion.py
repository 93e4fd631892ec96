"""`quorumlab completion`: what a shell loads to complete command lines, and a man page.

Both are made from the tables of options that also make the help.
"""

from collections.abc import Iterator
from types import SimpleNamespace

import click
from click.shell_completion import get_completion_class

from quorumlab import __version__
from quorumlab.arguments import Verb, Verbs
from quorumlab.cli import COMPLETE, root
from quorumlab.output import say

__all__ = ["VERBS"]

_MAN = "man"


def run(args: SimpleNamespace) -> int:
    if args.shell == _MAN:
        say("\n".join(_page()))
        return 0
    shell = get_completion_class(args.shell)
    assert shell is not None, args.shell
    source = shell(root(), {}, "quorumlab", COMPLETE).source()
    # click's script for fish cuts a description off at its first comma.
    say(source.replace('string split ","', 'string split --max 1 ","').rstrip())
    return 0


VERBS = {
    "completion": """completion:run
        Write what a shell loads to complete verbs, options, choices and files; or write a man page,
        with the help of every verb.

        shell bash|zsh|fish|man  whose script; `man` is a man page
        $ bash >>~/.bashrc
        $ zsh >~/.zsh/_quorumlab  in a directory of $fpath
        $ fish >~/.config/fish/completions/quorumlab.fish
        $ man >~/.local/share/man/man1/quorumlab.1"""
}


# --- the man page, in roff --------------------------------------------------------------------


def _page() -> Iterator[str]:
    context = _entered(root(), "quorumlab", None)
    yield f'.TH QUORUMLAB 1 "" "quorumlab {__version__}"'
    yield f".SH NAME\nquorumlab \\- {_escaped(context.command.short_help or '')}"
    yield ".SH SYNOPSIS\n.B quorumlab\n.I VERB\n[OPTIONS] ..."
    yield ".SH DESCRIPTION"
    yield from _described(context)
    yield ".SH VERBS"
    yield from _below(context)
    yield ".SH EXIT STATUS"
    yield (
        "0 fine, 1 error, 2 usage, 3 unhealthy, 4 a check was violated, 5 verdict unknown, 130 "
        "interrupted."
    )


def _below(context: click.Context) -> Iterator[str]:
    assert isinstance(context.command, Verbs)
    for name in context.command.listed:
        inner = _entered(context.command.commands[name], name, context)
        pieces = inner.command.collect_usage_pieces(inner)
        yield f'.SS "{_escaped(" ".join([inner.command_path, *pieces]))}"'
        yield from _described(inner)
        if isinstance(inner.command, Verbs):
            yield from _below(inner)


def _described(context: click.Context) -> Iterator[str]:
    command = context.command
    assert isinstance(command, Verb | Verbs)
    yield _escaped(command.help or "")
    for param in command.params:
        name, told = param.get_help_record(context) or ("", "")
        yield f".TP\n.B {_escaped(name)}\n{_escaped(told)}"
    yield ".PP\nExamples:\n.PP\n.nf"
    yield from map(_escaped, command.example_lines(context))
    yield ".fi"


def _entered(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """Loads the module of the verb."""
    return command.make_context(name, [], parent=parent, resilient_parsing=True)


def _escaped(text: str) -> str:
    """roff reads ASCII; a line that begins with a period or an apostrophe is a request to it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    text = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in text)
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in text.split("\n"))
