"""The options of the verbs that are Kafka clients; what they run is loaded when it is needed."""

import argparse

from quorumlab.arguments import declare, later
from quorumlab.output import FORMAT
from quorumlab.verbs.common import BROKERS, DIRECTORY

__all__ = ["add_consume_options", "add_groups_options", "add_produce_options"]

_WHERE = (
    "beginning, end, an offset, -N for the last N of each partition, or @MS for a time since "
    "1970 (default: beginning)"
)


def add_produce_options(parser: argparse.ArgumentParser) -> None:
    declare(
        parser,
        later("produce:run"),
        f"""topic TOPIC  where to
            {BROKERS}
            {DIRECTORY}
            --partition P  to this one only
            --key-separator TEXT  the key is the part of a line before TEXT
            --header NAME=VALUE [*]  give each record this header (may be repeated)
            --timestamp MS  of every record, in ms since 1970 (default: now)
            --compression none|gzip|snappy|lz4|zstd [none]  of batches (default: none)
            --count N  stop after so many lines
            --timeout S [positive 30]  give up on a record after S seconds (default: 30)
            --quiet  do not tell where each record is
            --format text|jsonl [text]  of what is told (default: text)""",
        "Each line of the input becomes a record. Tells the partition and offset of each, once all "
        "replicas in sync have it. Idempotent: what is sent again is there once.",
    )


def add_consume_options(parser: argparse.ArgumentParser) -> None:
    declare(
        parser,
        later("consume:run"),
        f"""topic TOPIC  what to read
            {BROKERS}
            {DIRECTORY}
            --partition P [*]  only this one (may be repeated)
            --from WHERE [beginning]  {_WHERE}
            --count N  stop after so many records
            --until-end  stop once the end of every partition has been reached
            --group GROUP  as a member of this group, which keeps where it is
            --format text|jsonl|value [text]  a line a record, or values alone (default: text)""",
        "Reads records until Ctrl-C, --count or --until-end.",
    )


def add_groups_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Consumer groups of a running cluster."
    actions = parser.add_subparsers(required=True, metavar="VERB")
    shared = f"{BROKERS}\n{DIRECTORY}\n{FORMAT}"
    one = "group GROUP  which one"
    for name, about, run, words in (
        ("list", "the groups and their states", "list_groups", ""),
        ("describe", "members, and how far each partition is read", "describe_group", one),
        ("delete", "forget a group that has no members", "delete_group", one),
    ):
        action = actions.add_parser(name, help=about)
        declare(action, later(f"groups:{run}"), f"{words}\n{shared}", f"{about.capitalize()}.")
