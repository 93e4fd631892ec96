"""`quorumlab demo`: see a cluster survive two kills."""

import argparse

from quorumlab.arguments import declare, later


def add_options(parser: argparse.ArgumentParser) -> None:
    about = (
        "Start six processes, produce, kill -9 a partition leader and the active "
        "controller, restart both, and hold every acknowledged record against what is read back. "
        "Exit code 1 if one is missing. Its data stays."
    )
    table = "--dir D  its directory (default: a new one in ./demo-data)"
    # It needs a Kafka client, which other verbs do not.
    declare(parser, later("two_kills:run"), table, about)
