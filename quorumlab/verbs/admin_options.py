"""The options of `topics` and `quorum`, which ask a running cluster as Kafka's tools do.

Loads little: what a verb runs is imported once its command line is understood.
"""

from quorumlab.arguments import group
from quorumlab.output import FORMAT
from quorumlab.verbs.common import BROKERS, COMMAND_CONFIG, DIRECTORY

__all__ = ["VERBS"]

_OF_BROKERS = f"{BROKERS}\n{DIRECTORY}\n{COMMAND_CONFIG}\n{FORMAT}"
_OF_TOPIC = f"topic_name TOPIC [?]  its name\n{_OF_BROKERS}"
_TOPIC = f"{_OF_TOPIC}\n--topic NAME  the same, as Kafka's tools have it"
_CONFIG = "--config KEY=VALUE [*]  set this for the topic (may be repeated)"
_INTERNAL = "--include-internal  also those that brokers keep for themselves, as __consumer_offsets"
_OF_QUORUM = f"""{BROKERS}
    {DIRECTORY}
    {COMMAND_CONFIG}
    --bootstrap-controller HOST:PORT,…  controllers to ask, not brokers
    {FORMAT}"""

VERBS = {
    "topics": group(
        """Topics of a running cluster, with the options and the layout of kafka-topics.
        $ create orders --partitions 3
        $ describe --under-replicated-partitions""",
        {
            "create": f"""topics:create  create a topic
                {_TOPIC}
                --partitions N  how many (default: num.partitions)
                {_CONFIG}
                --replication-factor N  replicas of each partition (default: \
                  default.replication.factor)
                --if-not-exists  do nothing if there is such a topic
                $ orders --partitions 3 --replication-factor 3 --config min.insync.replicas=2
                $ --topic orders --bootstrap-server localhost:9092  as with Kafka's tool""",
            "list": f"""topics:list_topics  the names of the topics
                {_OF_BROKERS}
                {_INTERNAL}
                $ --format json""",
            "describe": f"""topics:describe  partitions with leader, replicas and in-sync replicas
                {_OF_TOPIC}
                --topic NAME  the same, as Kafka's tools have it (default: all but internal ones)
                {_INTERNAL}
                --states  instead, the states of partitions and replicas: see docs/states.md
                --under-replicated-partitions  only those with replicas out of sync
                --unavailable-partitions  only those without a leader
                $ orders
                $ --under-replicated-partitions  in the whole cluster""",
            "delete": f"""topics:delete  delete a topic
                {_TOPIC}
                --if-exists  do nothing if there is no such topic
                $ orders --if-exists""",
            "alter": f"""topics:alter  add partitions, or change configs
                {_TOPIC}
                --partitions N  how many then
                {_CONFIG}
                --delete-config KEY [*]  back to the default of this key (may be repeated)
                $ orders --partitions 6
                $ orders --config retention.ms=60000 --delete-config cleanup.policy""",
        },
    ),
    "quorum": group(
        """The metadata quorum, with the options and the layout of kafka-metadata-quorum.
        $ describe --status
        $ add-controller --config controller4.properties""",
        {
            "describe": f"""quorum:describe  leader, epoch, high watermark, replicas
                Who leads the quorum, who votes, and how far each replica is: give --status or
                --replication.

                {_OF_QUORUM}
                --status  a summary of the quorum
                --replication  every replica and its lag
                --human-readable  times as seconds ago (with --replication)
                $ --status
                $ --replication --human-readable""",
            "add-controller/add-voter": f"""quorum:add_controller  make a controller that follows \
the quorum one of its voters
                Make a controller that runs and follows the quorum one of its voters. Its id,
                directory id and endpoints come from its server.properties and log directory: run
                this on its machine.

                --config FILE [!]  its server.properties
                --dry-run  say what would be done
                {_OF_QUORUM}
                $ --config controller4.properties --bootstrap-controller localhost:9093""",
            "remove-controller/remove-voter": f"""quorum:remove_controller  let a controller vote \
no longer
                Let a controller vote no longer. It goes on following the quorum until it is
                stopped.

                -i/--controller-id ID [! int]
                -d/--controller-directory-id DIRECTORY-ID  default: that of the voter
                --dry-run  say what would be done
                {_OF_QUORUM}
                $ --controller-id 3 --dry-run""",
        },
    ),
}
