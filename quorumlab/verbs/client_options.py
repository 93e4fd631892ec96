"""The options of the verbs that are Kafka clients; what they run is loaded when it is needed."""

from quorumlab.arguments import group
from quorumlab.output import FORMAT
from quorumlab.verbs.common import BROKERS, COMMAND_CONFIG, DIRECTORY

__all__ = ["VERBS"]

_WHERE = (
    "beginning, end, an offset, -N for the last N of each partition, or @MS for a time since "
    "1970 (default: beginning)"
)
_CLUSTER = f"{BROKERS}\n{DIRECTORY}\n{COMMAND_CONFIG}"
_OF_GROUPS = f"{_CLUSTER}\n{FORMAT}"
_ONE = f"group GROUP  which one\n{_OF_GROUPS}\n$ auditors"

VERBS = {
    "produce": f"""produce:run
        Each line of the input becomes a record. Tells the partition and offset of each, once all
        replicas in sync have it. Idempotent: what is sent again is there once.

        topic TOPIC  where to
        {_CLUSTER}
        --partition P  to this one only
        --key-separator TEXT  the key is the part of a line before TEXT
        --header NAME=VALUE [*]  give each record this header (may be repeated)
        --timestamp MS  of every record, in ms since 1970 (default: now)
        --compression none|gzip|snappy|lz4|zstd [none]  of batches (default: none)
        --count N  stop after so many lines
        --timeout S [positive 30]  give up on a record after S seconds (default: 30)
        --quiet  do not tell where each record is
        --format text|jsonl [text]  of what is told (default: text)
        $ orders <lines.txt
        $ orders --key-separator : --count 10  ten lines, each KEY:VALUE""",
    "consume": f"""consume:run
        Reads records until Ctrl-C, --count or --until-end.

        topic TOPIC  what to read
        {_CLUSTER}
        --partition P [*]  only this one (may be repeated)
        --from WHERE [beginning]  {_WHERE}
        --count N  stop after so many records
        --until-end  stop once the end of every partition has been reached
        --group GROUP  as a member of this group, which keeps where it is
        --isolation-level read_committed|read_uncommitted [read_committed]  are records of \
          transactions that are open, or were aborted, shown? (default: read_committed)
        --format text|jsonl|value [text]  a line a record, or values alone (default: text)
        $ orders --until-end  all that is there
        $ orders --from -10 --format value  from the last ten of each partition on
        $ orders --group auditors""",
    "groups": group(
        "Consumer groups of a running cluster.\n$ list\n$ describe auditors",
        {
            "list": f"""groups:list_groups  the groups and their states
                {_OF_GROUPS}
                $ --format json""",
            "describe": f"""groups:describe_group  members, and how far each partition is read
                {_ONE}""",
            "delete": f"groups:delete_group  forget a group that has no members\n{_ONE}",
        },
    ),
}
