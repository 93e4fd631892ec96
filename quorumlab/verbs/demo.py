"""`quorumlab demo`: see a cluster survive two kills."""

import argparse
from itertools import count
from pathlib import Path

from quorumlab.arguments import declare

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    about = (
        "Start six processes, produce, kill -9 a partition leader and the active "
        "controller, restart both, and hold every acknowledged record against what is read back. "
        "Exit code 1 if one is missing. Its data stays."
    )
    table = "--dir D  its directory (default: a new one in ./demo-data)"
    declare(parser, run, table, about)


def run(args: argparse.Namespace) -> int:
    from quorumlab.verbs import two_kills  # it needs a Kafka client, which other verbs do not

    directory = args.dir
    if directory is None:
        numbered = (Path("demo-data") / str(number) for number in count(1))
        directory = next(path for path in numbered if not path.exists())
    return two_kills.run(directory.resolve())
