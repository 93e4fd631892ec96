"""All verbs of the command line, each with its context."""

from collections.abc import Iterator

import click

from quorumlab.arguments import Verb, Verbs
from quorumlab.cli import root

__all__ = ["contexts"]


def contexts() -> Iterator[click.Context]:
    """Loads the tables of options of every verb, and no verb itself."""
    yield from _below(root().make_context("quorumlab", [], resilient_parsing=True))


def _below(context: click.Context) -> Iterator[click.Context]:
    yield context
    assert isinstance(context.command, Verb | Verbs)
    if isinstance(context.command, Verbs):
        for name in context.command.listed:
            command = context.command.commands[name]
            inner = command.make_context(name, [], parent=context, resilient_parsing=True)
            yield from _below(inner)
